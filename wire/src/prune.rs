//! Removing finished jobs of a workflow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of a request to remove finished jobs. Without a limit, the policy of the daemon's configuration applies.
/// With any limit, only the given limits apply.
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

/// How much of a workflow's past is kept. Each given limit counts.
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
    /// Whether the request asked for a report only.
    pub dry_run: bool,
    /// The policy that was applied.
    pub policy: RetentionPolicy,
    pub scans: Vec<PrunedScan>,
    /// Whether more remains than one request removes. Repeat the request to go on.
    pub has_more: bool,
    /// Whether the age limit was skipped, because the daemon's clock jumped less than an hour ago.
    #[serde(default)]
    pub age_waits: bool,
}

/// What was removed of a scan or would be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedScan {
    pub scan: String,
    pub removed: Amount,
    /// The finished jobs that remain.
    pub kept: Amount,
    /// How many remain only because they are among the scan's newest two successes.
    pub newest_successes: u64,
    /// How many remain because they ended less than two minutes ago, and their runners may still add to their logs.
    #[serde(default)]
    pub just_ended: u64,
    /// How many remain because their records cannot be read.
    #[serde(default)]
    pub unreadable: u64,
    /// Jobs of the scan that are not over.
    pub unfinished: u64,
}

/// Jobs and the bytes they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    pub jobs: u64,
    /// Bytes of logs and artifacts.
    pub bytes: u64,
}
