//! Rules of notifications.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule in force: which events go to which channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    pub name: String,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub origin: RuleOrigin,
    pub definition: RuleDefinition,
}

names! {
    /// Where a rule stands.
    pub enum RuleOrigin {
        /// In `everscan.yaml`.
        File = "file",
        Api = "api",
    }
}

/// A rule without its name, as in `everscan.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleDefinition {
    /// The channel that gets the messages.
    pub channel: String,
    /// Such as `failing` or `artifact`. Absent: what fails or is broken, and artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Patterns of workflows, by their names, with or without the name of the source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// Patterns of scans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<String>,
    /// Patterns of callback servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<String>,
    /// Failures in a row before a failing scan is reported; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u8>,
    /// What follows a message within this time becomes one message, such as `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How often an open condition is reported again, such as `4h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
    /// The text of a message, with `${{ event.title }}` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// What a message says about new lines: `none`, `summary` or `lines`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// Hours in which messages are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// Such as `22:00`.
    pub from: String,
    /// Such as `07:00`. Before `from`: on the next day.
    pub to: String,
    /// An IANA name; `UTC` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// An event of the past that a channel would have got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewedEvent {
    pub at: DateTime<Utc>,
    /// Such as `failing`.
    pub event: String,
    /// True if it was the end of a condition.
    pub is_over: bool,
    /// What it was about.
    pub about: String,
    /// The problem as a sentence, or the name of an artifact.
    pub message: String,
    /// Absent if no rule names the channel: it gets the usual events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub channel: String,
}
