//! How the daemon is.

use serde::{Deserialize, Serialize};

/// The answer of `GET /healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// In a word.
    pub status: HealthStatus,
    /// Why it is not well, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How the daemon is, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// It is well.
    Ok,
    /// The disk of its state is getting full: no new jobs are taken.
    DiskLow,
    /// The disk of its state is full: only what runs is brought to its end.
    DiskFull,
    /// The wall clock jumped within the last hour: nothing is deleted by age.
    ClockJumped,
    /// Schedules were followed ahead of the wall clock, and wait until it is there.
    SchedulesAhead,
    /// What a newer daemon may say.
    #[serde(other)]
    Other,
}
