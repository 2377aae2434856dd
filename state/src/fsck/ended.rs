//! The jobs that have ended by their histories. Each takes forty bytes, so that a million fit into memory while they are
//! compared with the jobs' own records.

use std::sync::Arc;

use model::{EndState, JobId, ScanKey, Timestamp};

/// What a history says of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndedJob {
    pub(crate) job: JobId,
    pub(crate) scan: Arc<ScanKey>,
    pub(crate) state: EndState,
    pub(crate) at: Timestamp,
}

/// All of them, in order of ids.
#[derive(Debug, Default)]
pub(crate) struct EndedJobs {
    jobs: Vec<EndedJob>,
}

impl EndedJobs {
    pub(crate) fn add(&mut self, mut jobs: Vec<EndedJob>) {
        self.jobs.append(&mut jobs);
    }

    /// Sorts the jobs. Call it once, before any lookup. Answers jobs that are there twice.
    pub(crate) fn sort(&mut self) -> Vec<JobId> {
        self.jobs.sort_unstable();
        let pairs = self.jobs.windows(2);
        pairs
            .filter(|pair| pair[0].job == pair[1].job)
            .map(|pair| pair[0].job)
            .collect()
    }

    pub(crate) fn get(&self, job: JobId) -> Option<&EndedJob> {
        let at = self.jobs.binary_search_by_key(&job, |ended| ended.job);
        at.ok().and_then(|at| self.jobs.get(at))
    }
}
