//! Messages between a runner and the daemon, and runners as users see them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{JobState, WorkflowRef};

/// The body of a new registration token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRegistration {
    /// The projects of the runner, by name or id; absent: all in which the caller has `runner:write`. Of an administrator that
    /// includes future projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// The labels of the runner; absent: the runner chooses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// A registration token. Its holder may register one runner.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// Shown once; it can register one runner.
    pub token: String,
    pub expires_at: DateTime<Utc>,
    /// The names of the runner's projects; absent: all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// The labels of the runner; absent: the runner chooses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// The body of a registration. It contains the registration token, so the request needs no other token.
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
    /// The most jobs at the same time.
    pub capacity: u32,
    /// The version of the runner's program.
    pub version: String,
    /// Replace a runner of the same name and the same projects.
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
    /// The names of its projects; absent: all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// The labels that it got: those of the registration token, if that has some.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// The body of `/runners/hello` and `/runners/goodbye`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the runner's program.
    pub version: String,
    /// Identifies the process. A process keeps this id, and a restarted process may use it again. The daemon accepts one process
    /// at a time for a runner. All processes without an id count as the same process.
    #[serde(default)]
    pub instance: Uuid,
    /// The features of the program beyond the first version, such as `checkout`. The daemon does not offer jobs that need other
    /// features. Unknown names are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// A request for work. It has the whole state of the runner, so repeats are harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// Identifies the process, as in [`Hello`].
    #[serde(default)]
    pub instance: Uuid,
    /// Counts the polls of the process. The daemon ignores a poll if it already received a newer poll. A poll without a number
    /// counts as the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The most jobs at the same time.
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
    /// Stop this job. Repeated until `holding` no longer lists it.
    JobCancelled(JobCancelled),
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobAssigned {
    pub id: Uuid,
    /// The worker session token for this job.
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
    /// True if it only takes jobs of scans whose `runs_on` names one of its labels.
    #[serde(default)]
    pub exclusive: bool,
    /// The names of the projects whose jobs it takes, of those that the caller sees; absent: all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// True if it also takes jobs of projects that the caller does not see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_other_projects: bool,
    /// The most jobs at the same time.
    pub capacity: u32,
    /// The version that its program reported when it started.
    pub version: String,
    /// The features that its program reported when it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    pub registered_at: DateTime<Utc>,
    /// The last request since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<DateTime<Utc>>,
    /// True if it sent a request within the last two minutes.
    #[serde(default)]
    pub connected: bool,
    /// Its running jobs that the caller may see.
    pub running: Vec<Uuid>,
    /// Used slots: by running jobs of all projects, and by finished jobs that it has not released yet.
    #[serde(default)]
    pub taken: u64,
    /// The jobs in its slots that the caller may see. Only the answer about one runner includes finished ones.
    #[serde(default)]
    pub jobs: Vec<RunnerJob>,
}

/// The body that gives a runner other projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRunner {
    /// By name or id. The caller needs `runner:write` in them, and in the projects that the runner has.
    pub projects: Vec<String>,
}

impl Runner {
    /// True if its program is known to give steps the `SERVICE_TOKEN` of the runner, as earlier programs do, and not the token
    /// of their job. Of a runner that has not started yet the program is unknown.
    pub fn gives_its_own_token(&self) -> bool {
        let has_started = self.heard_at.is_some() || !self.capabilities.is_empty();
        has_started && !self.capabilities.iter().any(|it| it == "job_token")
    }
}

/// A job in a slot of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerJob {
    pub id: Uuid,
    pub workflow: WorkflowRef,
    pub scan: String,
    /// `running`, or the final state if the runner has not released it yet.
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
}

redacted!(
    Registration {
        expires_at,
        projects,
        labels
    },
    RegisterRunner {
        name,
        labels,
        exclusive,
        capacity,
        version,
        replace
    },
    RegisteredRunner {
        id,
        expires_at,
        projects,
        labels
    },
    JobAssigned { id }
);
