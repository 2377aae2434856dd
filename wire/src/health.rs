//! The daemon's health.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `GET /healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub status: HealthStatus,
    /// Why the status is not `ok`, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    Ok,
    /// The disk of the state is getting full: the daemon takes no new jobs.
    DiskLow,
    /// The disk of the state is full: only running jobs continue.
    DiskFull,
    /// The wall clock jumped within the last hour: nothing is deleted by age.
    ClockJumped,
    /// Schedules already ran for times ahead of the wall clock, and wait for it.
    SchedulesAhead,
    /// A status from a newer daemon.
    #[serde(other)]
    Other,
}

/// The answer of `GET /readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    pub status: ReadyStatus,
    /// Why the daemon is not ready, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyStatus {
    Ready,
    /// The daemon is stopping, or takes no new jobs. The HTTP status is 503.
    NotReady,
}
