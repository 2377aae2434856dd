//! Applying the retention policies: automatically after jobs have ended, and on request.

mod pass;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use model::decide::Pruned;
use model::retention::{RetentionPolicy, Stock};
use model::{ActiveWorkflow, WorkflowId};
use workflow::ScanName;

use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::PRUNED_AT_ONCE;
use pass::{Manner, Pass};

/// The retention policies of the daemon's configuration.
#[derive(Debug, Clone, Default)]
pub struct RetentionSettings {
    /// For every workflow that is not in `workflows`.
    pub default: RetentionPolicy,
    pub workflows: HashMap<WorkflowId, RetentionPolicy>,
}

impl RetentionSettings {
    /// The policy for a workflow.
    pub fn of(&self, workflow: WorkflowId) -> RetentionPolicy {
        self.workflows
            .get(&workflow)
            .copied()
            .unwrap_or(self.default)
    }

    /// Whether nothing is ever removed.
    pub(crate) fn keep_everything(&self) -> bool {
        let mut all = self.workflows.values().chain([&self.default]);
        all.all(RetentionPolicy::keeps_everything)
    }
}

/// What a policy removed of a workflow, or would remove.
#[derive(Debug, Clone)]
pub struct Retained {
    pub policy: RetentionPolicy,
    pub scans: Vec<ScanRetained>,
    /// Whether there is more to remove than one request removes.
    pub has_more: bool,
    /// Whether no job was removed by age, because the clock jumped less than an hour ago.
    pub age_waits: bool,
}

/// What a policy removed of a scan, or would remove.
#[derive(Debug, Clone)]
pub struct ScanRetained {
    pub scan: ScanName,
    /// What was removed.
    pub removed: Pruned,
    /// What is left.
    pub kept: Stock,
    /// How many stay only because they are among the newest two successes.
    pub newest_successes: u64,
    /// How many stay for two minutes after their end, because their runners may still add to their logs.
    pub just_ended: u64,
    /// How many stay because their records cannot be read.
    pub unreadable: u64,
    /// How many more stay because they have not ended.
    pub unfinished: u64,
}

impl Retained {
    /// What was removed of the whole workflow.
    pub fn removed(&self) -> Pruned {
        self.scans
            .iter()
            .fold(Pruned::default(), |sum, scan| Pruned {
                jobs: sum.jobs + scan.removed.jobs,
                bytes: sum.bytes + scan.removed.bytes,
            })
    }
}

impl Handle {
    /// Applies a policy to a workflow. Without `policy`, the configured one is used. A dry run removes nothing.
    pub async fn prune(
        &self,
        workflow: &ActiveWorkflow,
        policy: Option<RetentionPolicy>,
        dry_run: bool,
    ) -> Result<Retained, RemovalError> {
        let id = workflow.record.id;
        let policy = policy.unwrap_or_else(|| self.retention().of(id));
        let manner = if dry_run {
            Manner::DryRun
        } else {
            Manner::Remove
        };
        let mut pass = Pass::begin(self, id, policy, manner).await?;
        pass.run(PRUNED_AT_ONCE).await?;
        Ok(pass.report())
    }
}
