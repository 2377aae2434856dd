//! The older jobs that wait for the same runners.

use serde::{Deserialize, Serialize};

use crate::limits::{COUNTED_JOBS, NAMED_SCANS};
use crate::{Abilities, JobId, ProjectId, ScanKey, Timestamp, WorkflowId, World};

/// Older jobs that also wait. A runner may take each of them first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// The number of jobs, counted up to [`COUNTED_JOBS`].
    pub jobs: u64,
    /// Some of their scans.
    pub scans: Vec<ScanKey>,
    /// True if `scans` lists all of their scans.
    pub are_all: bool,
}

impl Ahead {
    /// Jobs that are older than `job` and that `take` accepts by their project and needs. `time` is the world's time.
    pub(crate) fn of(
        world: &World,
        job: JobId,
        time: Timestamp,
        take: impl Fn(ProjectId, &Abilities) -> bool,
    ) -> Self {
        let mut ahead = Self {
            are_all: true,
            ..Self::default()
        };
        let mut older = world.older_waiting(job, time, &take);
        for older in older
            .by_ref()
            .take(COUNTED_JOBS)
            .filter_map(|id| world.job(id))
        {
            ahead.jobs += 1;
            let is_its =
                |scan: &ScanKey| scan.workflow == older.workflow.id && scan.scan == older.scan;
            if ahead.scans.iter().any(is_its) {
                continue;
            }
            if ahead.scans.len() < NAMED_SCANS {
                ahead.scans.push(older.scan_key());
            } else {
                ahead.are_all = false;
            }
        }
        // The uncounted jobs may belong to other scans.
        ahead.are_all &= older.next().is_none();
        ahead
    }

    /// Removes the scans that `keep` refuses.
    pub(crate) fn without_scans(mut self, keep: impl Fn(WorkflowId) -> bool) -> Self {
        let before = self.scans.len();
        self.scans.retain(|scan| keep(scan.workflow));
        self.are_all &= self.scans.len() == before;
        self
    }

    pub(crate) fn sentence(&self) -> Option<String> {
        let jobs = match self.jobs {
            0 => return None,
            1 => "1 older job".to_owned(),
            jobs if jobs >= COUNTED_JOBS as u64 => format!("at least {jobs} older jobs"),
            jobs => format!("{jobs} older jobs"),
        };
        let mut names: Vec<String> = self
            .scans
            .iter()
            .map(|scan| format!("`{}`", scan.scan))
            .collect();
        if !self.are_all {
            names.push("others".to_owned());
        }
        let verb = if self.jobs == 1 { "waits" } else { "wait" };
        Some(format!(
            "{jobs} of {} {verb} for the same runners",
            names.join(", ")
        ))
    }
}
