//! What a check learns from its parts, for the parts that come later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{EndState, JobId, RevisionId, ScanKey, Timestamp, Totals};
use store::Seq;

use super::{Counts, Miscounted};

#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) counts: Counts,
    pub(crate) learned: Learned,
    /// Folders to be checked by themselves, below the state folder.
    pub(crate) folders: Vec<String>,
    pub(crate) miscounted: Miscounted,
}

/// What is known when a part is checked.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The user that the state folder belongs to.
    pub(crate) owner: Option<u32>,
    /// The last commit when the check began. Changes of later ones are not compared across parts.
    pub(crate) began: Seq,
    /// Whether somebody has the store open, so that unfinished writes may be under way.
    pub(crate) is_used: bool,
    /// From the parts before.
    pub(crate) learned: Learned,
}

/// What parts that come later are compared with.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) ended: Vec<EndedJob>,
    pub(crate) revisions: BTreeSet<RevisionId>,
    /// Scans whose histories have lost lines.
    pub(crate) cut: BTreeSet<ScanKey>,
    /// The finished jobs of a scan that should be there, by its counters.
    pub(crate) counted: BTreeMap<ScanKey, Totals>,
    /// The finished jobs of a scan that are there.
    pub(crate) there: BTreeMap<ScanKey, Totals>,
    /// Scans with a job that cannot be read.
    pub(crate) doubtful: BTreeSet<ScanKey>,
}

/// What a history says of a job. It takes forty bytes, so that a million fit into memory while they are compared with the
/// jobs' own records.
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
        for (scan, totals) in more.there {
            self.there.entry(scan).or_default().add(&totals);
        }
        self.doubtful.append(&mut more.doubtful);
    }

    /// Sorts the jobs that have ended. Call it once, before any lookup. Answers jobs that are there twice.
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
