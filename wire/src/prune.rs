//! Removing finished jobs of a workflow, and what that removes.

use serde::{Deserialize, Serialize};

/// The body of a request to remove finished jobs. Without any limit the policy of the daemon's configuration applies;
/// with one, those that are given and no others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Only tell what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// Instead of the configuration's policy: keep so many finished jobs of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    /// Keep jobs for so many seconds after their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// Keep so many bytes of logs and artifacts of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// How much of a workflow's past is kept. Each limit that is given counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// What was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// Whether nothing was removed, because that was asked for.
    pub dry_run: bool,
    /// The policy that was applied.
    pub policy: RetentionPolicy,
    /// Scan by scan.
    pub scans: Vec<PrunedScan>,
    /// Whether there is more to remove than one request does: the same request again goes on.
    pub has_more: bool,
    /// Whether nothing goes by its age, since the daemon's clock jumped less than an hour ago.
    #[serde(default)]
    pub age_waits: bool,
}

/// What was removed of a scan, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedScan {
    /// Its name.
    pub scan: String,
    /// What goes.
    pub removed: Amount,
    /// What is left of its finished jobs.
    pub kept: Amount,
    /// How many of those are left only because they are among the scan's newest two successes.
    pub newest_successes: u64,
    /// How many are left for two minutes after their end, since their runners may add to their logs until then.
    #[serde(default)]
    pub just_ended: u64,
    /// How many are left because their records cannot be read.
    #[serde(default)]
    pub unreadable: u64,
    /// How many jobs are left beside them because they are not over.
    pub unfinished: u64,
}

/// Jobs and what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// How many.
    pub jobs: u64,
    /// Bytes of their logs and artifacts.
    pub bytes: u64,
}
