//! How many finished jobs of a workflow are kept.

use std::collections::HashMap;

use chrono::TimeDelta;

use crate::{Timestamp, Totals, WorkflowId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionPolicy {
    pub jobs: Option<u64>,
    /// Counted from the end of a job.
    pub age: Option<TimeDelta>,
    /// Bytes of logs and artifacts.
    pub bytes: Option<u64>,
}

impl RetentionPolicy {
    pub const fn keeps_everything(&self) -> bool {
        self.jobs.is_none() && self.age.is_none() && self.bytes.is_none()
    }

    /// True if the stock is larger than the policy allows.
    pub fn is_exceeded_by(&self, stock: Stock) -> bool {
        self.jobs.is_some_and(|jobs| stock.jobs > jobs)
            || self.bytes.is_some_and(|bytes| stock.bytes > bytes)
    }

    /// When a job that ended at this time becomes too old.
    pub fn due(&self, ended: Timestamp) -> Option<Timestamp> {
        ended.checked_add_signed(self.age?)
    }
}

#[derive(Debug, Clone, Default)]
pub struct RetentionSettings {
    /// For every workflow that is not in `workflows`.
    pub default: RetentionPolicy,
    pub workflows: HashMap<WorkflowId, RetentionPolicy>,
}

impl RetentionSettings {
    pub fn of(&self, workflow: WorkflowId) -> RetentionPolicy {
        let own = self.workflows.get(&workflow).copied();
        own.unwrap_or(self.default)
    }

    /// True if no job is ever removed.
    pub fn keep_everything(&self) -> bool {
        let mut all = self.workflows.values().chain([&self.default]);
        all.all(RetentionPolicy::keeps_everything)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stock {
    pub jobs: u64,
    /// Bytes of their logs, inputs and artifacts.
    pub bytes: u64,
}

impl Stock {
    pub const fn of(totals: &Totals) -> Self {
        Self {
            jobs: totals.jobs(),
            bytes: totals.bytes,
        }
    }

    pub const fn add(&mut self, more: Self) {
        self.jobs += more.jobs;
        self.bytes += more.bytes;
    }

    pub const fn subtract(&mut self, less: Self) {
        self.jobs = self.jobs.saturating_sub(less.jobs);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }
}
