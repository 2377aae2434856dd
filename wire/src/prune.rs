//! Removing finished jobs of a workflow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of a request to remove finished jobs. Without limits, the policy of the configuration applies; otherwise
/// only the given limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Only report what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// The number of finished jobs of the workflow to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    /// Seconds to keep a job after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// Bytes of the workflow's logs and artifacts to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The retention of a workflow. Each given limit applies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RetentionPolicy {
    /// Finished jobs of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    /// Seconds since a job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// Bytes of logs and artifacts of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What was removed or would be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pruned {
    /// True for a dry run: nothing was removed.
    pub dry_run: bool,
    /// The policy that was applied.
    pub policy: RetentionPolicy,
    pub scans: Vec<PrunedScan>,
    /// True if one request could not remove everything. Repeat it to continue.
    pub has_more: bool,
    /// True if the age limit was skipped, because the clock of the daemon jumped within the last hour.
    #[serde(default)]
    pub age_waits: bool,
}

/// The jobs of one scan that were removed, or that a dry run would remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedScan {
    pub scan: String,
    pub removed: Amount,
    /// The finished jobs that remain.
    pub kept: Amount,
    /// Jobs kept only because they are among the two newest successes of the scan.
    pub newest_successes: u64,
    /// Jobs kept because they ended less than two minutes ago, so their runners may still append to their logs.
    #[serde(default)]
    pub just_ended: u64,
    /// Jobs kept because their records are unreadable.
    #[serde(default)]
    pub unreadable: u64,
    /// Unfinished jobs.
    pub unfinished: u64,
}

/// Jobs and the bytes they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    pub jobs: u64,
    /// Bytes of logs and artifacts.
    pub bytes: u64,
}
