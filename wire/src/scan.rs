//! Scans with their jobs and next slots.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, FixedOffset, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{JobState, Resumption, Scan, Suspension, Trigger, WorkflowRef, is_zero};

/// A scan of an active workflow, and its current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanStatus {
    pub workflow: WorkflowRef,
    #[serde(flatten)]
    pub scan: Scan,
    /// Present while it or its workflow is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Present if its own latest suspension has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumption>,
    /// The next slot of its schedule. A slot in the past waits for a job to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_slot: Option<DateTime<Utc>>,
    /// Unfinished jobs.
    pub unfinished: u64,
    /// Finished jobs that are still stored.
    pub finished: FinishedJobs,
    /// What people expect of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectations>,
    /// What may be expected of it, from its newest successes. Only in the answer about one scan, and for readers of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Expectations>,
    /// The newest job, unless it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_job: Option<JobLine>,
}

/// The expectations of a scan, as durations such as `26h`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Expectations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_every: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_within: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<String>,
}

/// As a workflow file has them.
impl fmt::Display for Expectations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("success_every", &self.success_every),
            ("starts_within", &self.starts_within),
            ("at_least", &self.at_least),
            ("at_most", &self.at_most),
        ];
        let known = all.into_iter();
        let known = known.filter_map(|(key, value)| Some(format!("{key}: {}", value.as_ref()?)));
        write!(f, "{{ {} }}", known.collect::<Vec<_>>().join(", "))
    }
}

/// Finished jobs by their final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FinishedJobs {
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub skipped: u64,
}

/// A summary of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobLine {
    pub id: Uuid,
    pub state: JobState,
    pub trigger: Trigger,
    /// The id of the revision it ran.
    pub revision: Uuid,
    /// Stable name of the reason for its state. Absent in lines of an older daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the runner that executed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The job that retries it. Absent in lines of an older daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<Uuid>,
    /// The jobs whose ends made it, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Uuid>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    /// Its artifacts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, ArtifactLine>,
    /// Bytes of its log, inputs and artifacts at its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

/// A summary of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactLine {
    pub content_digest: String,
    pub size: u64,
}

/// A future slot of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// A slot in the past waits for a job to end.
    pub at: DateTime<Utc>,
    /// The same moment in the time zone of the schedule.
    pub local: DateTime<FixedOffset>,
    pub workflow: WorkflowRef,
    pub scan: String,
    /// The five fields of the schedule of this slot; with several schedules, of the first that is due at this time.
    pub schedule: String,
    pub timezone: String,
}
