//! What the parts that were checked so far have told, for those that come after them.

use std::collections::{BTreeMap, BTreeSet};

use model::{RevisionId, ScanKey, Totals};
use store::Seq;

use super::check::Facts;
use super::ended::EndedJobs;

/// What is known so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The user that the state folder belongs to.
    pub(crate) owner: Option<u32>,
    /// The last commit as the check began: what later ones wrote is not compared across parts.
    pub(crate) began: Seq,
    /// Whether somebody has the store open, so that unfinished writes may be under way.
    pub(crate) is_used: bool,
    pub(crate) ended: EndedJobs,
    pub(crate) revisions: BTreeSet<RevisionId>,
    /// Scans whose histories do not have all of their lines any more.
    pub(crate) cut: BTreeSet<ScanKey>,
    /// What there is of a scan's finished jobs by its counters.
    pub(crate) counted: BTreeMap<ScanKey, Totals>,
    /// What there is of a scan's finished jobs.
    pub(crate) there: BTreeMap<ScanKey, Totals>,
    /// Scans with a job that cannot be read.
    pub(crate) doubtful: BTreeSet<ScanKey>,
}

impl Known {
    pub(crate) fn learn(&mut self, facts: &mut Facts) {
        self.ended.add(std::mem::take(&mut facts.ended));
        self.revisions.extend(facts.revisions.drain(..));
        self.cut.extend(facts.cut.drain(..));
        self.counted.extend(facts.counted.drain(..));
        for (scan, state, bytes) in facts.there.drain(..) {
            self.there.entry(scan).or_default().count(state, bytes);
        }
        self.doubtful.extend(facts.doubtful.drain(..));
    }
}
