//! Suspending workflows and scans, and resuming them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkflowRef;

/// Why nothing starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspension {
    /// What is suspended. A scan starts nothing either way.
    pub part: SuspendedPart,
    pub since: DateTime<Utc>,
    /// Who did it, as `token NAME`.
    pub by: String,
    /// Why, in their words.
    pub reason: String,
}

names! {
    pub enum SuspendedPart {
        /// The whole workflow.
        Workflow = "workflow",
        /// The scan alone.
        Scan = "scan",
    }
}

impl SuspendedPart {}

/// The end of the latest suspension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumption {
    pub at: DateTime<Utc>,
    /// Who did it, as `token NAME`.
    pub by: String,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a workflow itself, or a scan, is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuspensionStatus {
    pub workflow: WorkflowRef,
    /// The scan; absent for the whole workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    /// Present while nothing of it starts. That of the workflow also stands for its scans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Present if its own latest suspension has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumption>,
}

/// The body of a suspension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Why, for those who wonder later; up to 500 characters.
    pub reason: String,
}

/// The body of a resumption.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Why; up to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
