//! Facts from the parts that were checked so far, for the parts that come later.

use std::collections::{BTreeMap, BTreeSet};

use model::{RevisionId, ScanKey, Totals};
use store::Seq;

use super::check::Facts;
use super::ended::EndedJobs;

/// The facts so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The user that the state folder belongs to.
    pub(crate) owner: Option<u32>,
    /// The last commit when the check began. Changes of later ones are not compared across parts.
    pub(crate) began: Seq,
    /// Whether somebody has the store open, so that unfinished writes may be under way.
    pub(crate) is_used: bool,
    pub(crate) ended: EndedJobs,
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
