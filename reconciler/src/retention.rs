//! Applies the retention policies: automatically after jobs have ended, and on request.

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

/// The jobs of a workflow that a policy removed, or would remove in a dry run.
#[derive(Debug, Clone)]
pub struct Retained {
    pub policy: RetentionPolicy,
    pub scans: Vec<ScanRetained>,
    /// True if one request cannot remove all jobs that exceed the policy.
    pub has_more: bool,
    /// True if no job was removed by age, because the clock jumped less than an hour ago.
    pub age_waits: bool,
}

/// The jobs of a scan that a policy removed, or would remove in a dry run.
#[derive(Debug, Clone)]
pub struct ScanRetained {
    pub scan: ScanName,
    pub removed: Stock,
    pub kept: Stock,
    /// The number of jobs that stay only because they are the newest two successes.
    pub newest_successes: u64,
    /// The number of jobs that stay for two minutes after their end, because their runners may still append to their logs.
    pub just_ended: u64,
    pub unreadable: u64,
    /// The number of additional jobs that stay because they have not ended.
    pub unfinished: u64,
}

impl Retained {
    pub fn removed(&self) -> Stock {
        self.sum(|scan| scan.removed)
    }

    /// The remaining jobs of the whole workflow, without jobs that ended after the last round began.
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
    /// Applies a policy to a workflow, by default the configured policy. A dry run removes nothing.
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
