//! What is remembered of history pages that were read: enough to pass over a page that holds nothing wanted. A page is
//! up to 1 MiB and thousands of jobs, its summary about two hundred bytes, so all of them fit in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use model::{JobId, ScanKey, Tail, Timestamp};

use crate::history::Wanted;

/// The summaries of all pages that were read since the start.
#[derive(Default)]
pub(crate) struct PageIndex(Mutex<HashMap<ScanKey, BTreeMap<u64, Known>>>);

/// A summary and what it is of.
struct Known {
    /// Where the history ended when the page was read.
    end: Tail,
    summary: Summary,
}

/// What a page holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    /// The oldest job for each state that a job of the page ended in.
    oldest: BTreeMap<String, JobId>,
    /// The earliest end of any of its jobs.
    pub(crate) earliest_end: Option<Timestamp>,
}

impl Summary {
    pub(crate) fn add(&mut self, job: JobId, state: String, finished_at: Timestamp) {
        let oldest = self.oldest.entry(state).or_insert(job);
        *oldest = job.min(*oldest);
        self.earliest_end = self.earliest_end.into_iter().chain([finished_at]).min();
    }

    /// Whether a wanted job is in the page.
    pub(crate) fn has(&self, wanted: &Wanted) -> bool {
        self.oldest.iter().any(|(state, oldest)| {
            wanted.state.as_ref().is_none_or(|wanted| wanted == state)
                && wanted.before.is_none_or(|before| *oldest < before)
        })
    }
}

impl PageIndex {
    /// The summary of a page as it is in a history that ends at `end`. The last page grows, the others do not.
    pub(crate) fn get(&self, scan: &ScanKey, page: u64, end: Tail) -> Option<Summary> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(scan)?.get(&page)?;
        let is_closed = page < known.end.page && page < end.page;
        (is_closed || known.end == end).then(|| known.summary.clone())
    }

    pub(crate) fn put(&self, scan: &ScanKey, page: u64, end: Tail, summary: Summary) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = known.entry(scan.clone()).or_default();
        pages.insert(page, Known { end, summary });
    }
}
