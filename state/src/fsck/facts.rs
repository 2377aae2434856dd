//! Facts that a check learns from one part and uses in later parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{EndState, JobId, RevisionId, ScanKey, Timestamp, Totals};
use store::Seq;

use super::{Counts, Miscounted};

#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) counts: Counts,
    pub(crate) learned: Learned,
    /// Folders that are checked as parts of their own. Paths are relative to the state folder.
    pub(crate) folders: Vec<String>,
    pub(crate) miscounted: Miscounted,
}

/// The facts that are known before a part is checked.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The user who owns the state folder.
    pub(crate) owner: Option<u32>,
    /// The last commit when the check began. Changes of later commits are not compared across parts.
    pub(crate) began: Seq,
    /// Whether a process has the store open, so that writes may be in progress.
    pub(crate) is_used: bool,
    /// Facts from earlier parts.
    pub(crate) learned: Learned,
}

/// Facts with which later parts are compared.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) ended: Vec<EndedJob>,
    pub(crate) revisions: BTreeSet<RevisionId>,
    /// Scans whose histories have lost lines.
    pub(crate) cut: BTreeSet<ScanKey>,
    /// The finished jobs of a scan according to its counters.
    pub(crate) counted: BTreeMap<ScanKey, Totals>,
    /// The finished jobs of a scan whose records exist.
    pub(crate) present: BTreeMap<ScanKey, Totals>,
    /// Scans with a job that cannot be read.
    pub(crate) doubtful: BTreeSet<ScanKey>,
}

/// A finished job according to its history. It takes forty bytes, so a million of them fit into memory for the
/// comparison with the job records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndedJob {
    pub(crate) job: JobId,
    pub(crate) scan: Arc<ScanKey>,
    pub(crate) state: EndState,
    pub(crate) at: Timestamp,
}

impl Learned {
    pub(super) fn add(&mut self, mut more: Self) {
        self.ended.append(&mut more.ended);
        self.revisions.append(&mut more.revisions);
        self.cut.append(&mut more.cut);
        self.counted.append(&mut more.counted);
        for (scan, totals) in more.present {
            self.present.entry(scan).or_default().add(&totals);
        }
        self.doubtful.append(&mut more.doubtful);
    }

    /// Sorts the jobs that have ended. Call it once, before any lookup. Returns the jobs that occur twice.
    pub(super) fn sort_ended(&mut self) -> Vec<JobId> {
        self.ended.sort_unstable();
        let pairs = self.ended.windows(2);
        pairs
            .filter(|pair| pair[0].job == pair[1].job)
            .map(|pair| pair[0].job)
            .collect()
    }

    pub(super) fn ended(&self, job: JobId) -> Option<&EndedJob> {
        let at = self.ended.binary_search_by_key(&job, |ended| ended.job);
        at.ok().and_then(|at| self.ended.get(at))
    }
}
