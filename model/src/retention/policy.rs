//! How much of a workflow's past is kept.

use chrono::TimeDelta;

use crate::Timestamp;

/// How much of a workflow's past is kept. Every limit that is set applies. Without limits everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionPolicy {
    /// Finished jobs.
    pub jobs: Option<u64>,
    /// Time since a job ended.
    pub age: Option<TimeDelta>,
    /// Bytes of logs and artifacts.
    pub bytes: Option<u64>,
}

impl RetentionPolicy {
    /// Whether everything is kept.
    pub const fn keeps_everything(&self) -> bool {
        self.jobs.is_none() && self.age.is_none() && self.bytes.is_none()
    }

    /// Whether there is more than may be kept.
    pub fn is_exceeded_by(&self, stock: Stock) -> bool {
        self.jobs.is_some_and(|jobs| stock.jobs > jobs)
            || self.bytes.is_some_and(|bytes| stock.bytes > bytes)
    }

    /// When a job that ended at this time becomes too old.
    pub fn due(&self, ended: Timestamp) -> Option<Timestamp> {
        ended.checked_add_signed(self.age?)
    }
}

/// The finished jobs of a workflow that are still there, in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stock {
    pub jobs: u64,
    /// Bytes of their logs, inputs and artifacts.
    pub bytes: u64,
}
