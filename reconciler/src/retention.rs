//! Applying the retention policies: automatically after jobs have ended, and on request.

mod pass;
mod task;
#[cfg(test)]
mod tests;

use model::ActiveWorkflow;
use model::retention::{RetentionPolicy, Stock};
use workflow::ScanName;

use crate::error::RemovalError;
use crate::handle::Handle;
use pass::pass;
pub(crate) use task::enforce_retention;

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
    pub removed: Stock,
    pub kept: Stock,
    /// How many stay only because they are among the newest two successes.
    pub newest_successes: u64,
    /// How many stay for two minutes after their end, because their runners may still add to their logs.
    pub just_ended: u64,
    pub unreadable: u64,
    /// How many more stay because they have not ended.
    pub unfinished: u64,
}

impl Retained {
    pub fn removed(&self) -> Stock {
        self.sum(|scan| scan.removed)
    }

    /// What is left of the whole workflow. Jobs that ended since the last round began are not counted.
    fn kept(&self) -> Stock {
        self.sum(|scan| scan.kept)
    }

    fn sum(&self, part: impl Fn(&ScanRetained) -> Stock) -> Stock {
        let mut sum = Stock::default();
        self.scans.iter().for_each(|scan| sum.add(part(scan)));
        sum
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
        let policy = policy.unwrap_or_else(|| self.settings().retention.of(id));
        let (retained, _) = pass(self, id, policy, dry_run).await?;
        Ok(retained)
    }
}
