//! Suspension and resumption of workflows and scans.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkflowRef;

/// A suspension. A suspended workflow or scan starts no jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspension {
    /// The suspended part. The scan starts no jobs in either case.
    pub part: SuspendedPart,
    pub since: DateTime<Utc>,
    /// Who did it, as `token NAME`.
    pub by: String,
    /// The given reason.
    pub reason: String,
}

names! {
    pub enum SuspendedPart {
        /// The whole workflow.
        Workflow = "workflow",
        /// Only the scan.
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
    /// The given reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The suspension state of a workflow or a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuspensionStatus {
    pub workflow: WorkflowRef,
    /// The scan; absent for the whole workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    /// Present while it is suspended. A suspension of the workflow also applies to its scans.
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
    /// The reason; up to 500 characters.
    pub reason: String,
}

/// The body of a resumption.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// The reason; up to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
