//! Messages between a runner and the daemon, and runners as users see them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{JobState, WorkflowRef};

/// A registration token. Its holder may register one runner.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// Shown once, and good for one registration.
    pub token: String,
    pub expires_at: DateTime<Utc>,
}

/// The body of a registration. It holds the registration token, so the request needs no other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRunner {
    /// From `POST /runner-registrations`.
    pub token: String,
    /// Unique among runners.
    pub name: String,
    /// The labels that `runs_on` matches.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Take only jobs of scans whose `runs_on` names one of the labels.
    #[serde(default)]
    pub exclusive: bool,
    /// The number of jobs it runs at once.
    pub capacity: u32,
    /// The version of the runner's program.
    pub version: String,
    /// Replace a runner of the same name.
    #[serde(default)]
    pub replace: bool,
}

/// The answer to a registration.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegisteredRunner {
    pub id: Uuid,
    /// The runner session token. Shown once; renewed through [`crate::REFRESH_HEADER`].
    pub token: String,
    /// When the session ends, unless it is renewed.
    pub expires_at: DateTime<Utc>,
}

/// The body of `/runners/hello` and `/runners/goodbye`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the runner's program.
    pub version: String,
    /// Identifies the process. A process keeps this id while it lives and may hand it on to its successor. The daemon
    /// accepts one process at a time for a runner; all processes without an id count as one.
    #[serde(default)]
    pub instance: Uuid,
    /// What the program can do beyond the first version, such as `checkout`. A job that needs more is not offered. Names that
    /// the daemon does not know have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// A request for work. It carries the runner's whole state, so a repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// Identifies the process, as in [`Hello`].
    #[serde(default)]
    pub instance: Uuid,
    /// Counts the process's polls, so that one that was overtaken on its way is known and ignored. A poll without a number
    /// counts as the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The number of jobs the runner runs at once.
    pub capacity: u32,
    /// Every job that the runner has.
    pub holding: Vec<Uuid>,
}

/// A message to a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Claim this job.
    JobAssigned(JobAssigned),
    /// Stop this job. Repeated until `holding` no longer has it.
    JobCancelled(JobCancelled),
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobAssigned {
    pub id: Uuid,
    /// The worker session token to claim and execute the job with.
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobCancelled {
    pub id: Uuid,
}

/// A registered runner as users see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    pub id: Uuid,
    pub name: String,
    /// The labels that `runs_on` matches.
    pub labels: Vec<String>,
    /// Whether it takes only jobs of scans whose `runs_on` names one of its labels.
    #[serde(default)]
    pub exclusive: bool,
    /// The number of jobs it runs at once.
    pub capacity: u32,
    /// The version that its program said when it started.
    pub version: String,
    /// What its program can do beyond the first version, as it said when it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    pub registered_at: DateTime<Utc>,
    /// The last request since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<DateTime<Utc>>,
    /// Whether it was heard within the last two minutes.
    #[serde(default)]
    pub connected: bool,
    /// The ids of the jobs that it runs, as far as the caller sees them.
    pub running: Vec<Uuid>,
    /// How many of its slots are taken: by jobs of all projects, and by jobs that are over and that it still holds.
    #[serde(default)]
    pub taken: u64,
    /// The jobs that take its slots, as far as the caller sees them. Only the answer about one runner has those that are
    /// over.
    #[serde(default)]
    pub jobs: Vec<RunnerJob>,
}

/// A job that takes a slot of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerJob {
    pub id: Uuid,
    pub workflow: WorkflowRef,
    pub scan: String,
    /// `running`, or how it ended if the runner still holds it.
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
}

redacted!(
    Registration { expires_at },
    RegisterRunner {
        name,
        labels,
        exclusive,
        capacity,
        version,
        replace
    },
    RegisteredRunner { id, expires_at },
    JobAssigned { id }
);
