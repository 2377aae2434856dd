//! What a runner and the daemon say to each other about being a runner.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A registration token: whoever holds it may register one runner.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Shown once; good for one registration.
    pub token: String,
    /// After this it is worthless.
    pub expires_at: DateTime<Utc>,
}

/// The body of a registration. The registration token is in it, so it needs no other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterRunner {
    /// From `POST /runner-registrations`.
    pub token: String,
    /// Unique among runners.
    pub name: String,
    /// What `runs_on` is matched with.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How many jobs it runs at once.
    pub capacity: u32,
    /// The runner's own version.
    pub version: String,
    /// Take the place of a runner of the same name.
    #[serde(default)]
    pub replace: bool,
}

/// The answer to a registration.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredRunner {
    /// The runner's id.
    pub id: Uuid,
    /// The runner session token. Shown once; renewed through [`crate::REFRESH_HEADER`].
    pub token: String,
    /// When the session ends unless renewed.
    pub expires_at: DateTime<Utc>,
}

/// The body of a runner's first and last word (`/runners/hello`, `/runners/goodbye`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The runner's own version.
    pub version: String,
    /// The process that speaks, by a name it keeps while it lives and may hand on to its successor. The daemon takes one
    /// at a time for the runner; those that give no name count as one.
    #[serde(default)]
    pub instance: Uuid,
}

/// A request for work. It carries the runner's whole state, so a repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// The process that asks, as in [`Hello`].
    #[serde(default)]
    pub instance: Uuid,
    /// How many jobs the runner runs at once, in all.
    pub capacity: u32,
    /// Every job the runner has in hand.
    pub holding: Vec<Uuid>,
}

/// One message to a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Come and claim this job.
    JobAssigned(JobAssigned),
    /// Stop this job. Repeated until it has left `holding`.
    JobCancelled(JobCancelled),
}

/// An offer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAssigned {
    /// The job.
    pub id: Uuid,
    /// The worker session token to claim and execute it with.
    pub token: String,
}

/// A cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCancelled {
    /// The job.
    pub id: Uuid,
}

/// A registered runner as users see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// What it offers to `runs_on`.
    pub labels: Vec<String>,
    /// How many jobs it runs at once.
    pub capacity: u32,
    /// Its version when last heard.
    pub version: String,
    /// When it was registered.
    pub registered_at: DateTime<Utc>,
    /// When it was last heard since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<DateTime<Utc>>,
    /// The jobs it runs.
    pub running: Vec<Uuid>,
}

macro_rules! redacted {
    ($($kind:ident { $($shown:ident),* }),*) => {$(
        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($kind))$(.field(stringify!($shown), &self.$shown))*.finish_non_exhaustive()
            }
        }
    )*};
}

redacted!(
    Registration { expires_at },
    RegisterRunner {
        name,
        labels,
        capacity,
        version,
        replace
    },
    RegisteredRunner { id, expires_at },
    JobAssigned { id }
);
