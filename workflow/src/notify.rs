//! Rules of notifications: which events go to which channel. They stand in `everscan.yaml` or in the API, with one form.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::names::NameError;

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// What a rule may ask for. The word of a condition also stands for its end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EventName {
            $($(#[$doc])* $variant,)*
        }

        impl EventName {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

events! {
    Failing = "failing",
    Overdue = "overdue",
    Late = "late",
    TooShort = "too_short",
    TooLong = "too_long",
    Circle = "circle",
    Stuck = "stuck",
    HistoryDamaged = "history_damaged",
    Suspended = "suspended",
    SourceFailing = "source_failing",
    InvalidFile = "invalid_file",
    RemovalHeld = "removal_held",
    MissingVar = "missing_var",
    MissingSecret = "missing_secret",
    /// A rule names a channel that the project does not have.
    MissingChannel = "missing_channel",
    RunnerLost = "runner_lost",
    TokenExpires = "token_expires",
    CertificateExpires = "certificate_expires",
    DiskLow = "disk_low",
    BackupOld = "backup_old",
    ChannelFailing = "channel_failing",
    /// A slot of a schedule passed without a job.
    SlotMissed = "slot_missed",
    WorkflowRemoved = "workflow_removed",
    /// An artifact, as its `notify_on` says.
    Artifact = "artifact",
    /// The same, if it has lines that the success before did not have.
    NewLines = "new_lines",
}

/// The name of a channel or of a rule: letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NotifyName(String);

impl NotifyName {
    /// Takes the name of a channel or of a rule.
    ///
    /// # Errors
    /// Says which rule the text breaks.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        Ok(Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NotifyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for NotifyName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<NotifyName> for String {
    fn from(name: NotifyName) -> Self {
        name.0
    }
}

/// Which part of an artifact's new lines stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    None,
    /// Only how many there are.
    Summary,
    #[default]
    Lines,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub name: NotifyName,
    pub channel: NotifyName,
    /// Empty: the events of a channel without rules.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub events: BTreeSet<EventName>,
    #[serde(default)]
    pub content: Content,
}

impl Rule {
    /// Whether it asks for an event of this workflow (`SOURCE/NAME`) and scan.
    pub fn takes(&self, _event: EventName, _workflow: Option<&str>, _scan: Option<&str>) -> bool {
        true
    }

    /// Failures in a row before it reports a failing scan.
    pub fn after(&self) -> u64 {
        1
    }

    /// What follows a message within this time becomes one message.
    pub fn group(&self) -> TimeDelta {
        TimeDelta::seconds(30)
    }

    /// How often an open condition is reported again.
    pub fn repeat(&self) -> Option<TimeDelta> {
        None
    }

    /// The end of the quiet hours in which `now` lies.
    pub fn quiet_until(&self, _now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        None
    }
}
