//! Summaries of the pieces of histories that were read, so that a list can skip a piece without a wanted job. A piece has
//! some sixty jobs and its summary about two hundred bytes, so that all summaries fit in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use model::retention::{Position, Retention};
use model::{EndState, JobId, ScanKey, Tail, Timestamp};

use crate::backwards::Place;
use crate::history::Wanted;

/// The summaries of all pieces that were read since the start, by page. Removed pages are forgotten.
#[derive(Default)]
pub(crate) struct PageIndex(Mutex<HashMap<ScanKey, BTreeMap<u64, Known>>>);

/// What is known of a page.
struct Known {
    /// Where the history ended when the page was read.
    end: Tail,
    /// The piece that ends at each place.
    pieces: BTreeMap<Place, Summary>,
}

/// What a piece holds.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    /// Where it begins.
    pub(crate) begin: Position,
    /// The oldest job for each end state in the piece.
    oldest: BTreeMap<EndState, JobId>,
    /// The earliest end of any of its jobs.
    pub(crate) earliest_end: Option<Timestamp>,
    /// How many of its lines could not be read.
    pub(crate) damaged: u64,
}

impl Summary {
    pub(crate) fn new(begin: Position) -> Self {
        Self {
            begin,
            oldest: BTreeMap::new(),
            earliest_end: None,
            damaged: 0,
        }
    }

    pub(crate) fn add(&mut self, job: JobId, state: EndState, finished_at: Timestamp) {
        let oldest = self.oldest.entry(state).or_insert(job);
        *oldest = job.min(*oldest);
        self.earliest_end = self.earliest_end.into_iter().chain([finished_at]).min();
    }

    /// Whether a wanted job is in the piece.
    pub(crate) fn has(&self, wanted: &Wanted) -> bool {
        self.oldest.iter().any(|(state, oldest)| {
            wanted.state.is_none_or(|wanted| wanted == *state)
                && wanted.before.is_none_or(|before| *oldest < before)
        })
    }
}

impl PageIndex {
    /// The summary of the piece before a place, in a history that ends at `end`.
    pub(crate) fn get(&self, scan: &ScanKey, place: Place, end: Tail) -> Option<Summary> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(scan)?.get(&place.page)?;
        known
            .is_of(place, end)
            .then(|| known.pieces.get(&place).cloned())?
    }

    /// Remembers the piece before a place, in a history that ends at `end`, and forgets the pages that were removed.
    pub(crate) fn put(&self, retention: &Retention, place: Place, end: Tail, summary: Summary) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = known.entry(retention.key()).or_default();
        pages.retain(|page, _| !retention.is_done_with(*page));
        let known = pages.entry(place.page).or_insert_with(|| Known {
            end,
            pieces: BTreeMap::new(),
        });
        // A page that grows is cut into other pieces each time. The former ones are not kept.
        if !known.is_of(place, end) {
            known.end = end;
            known.pieces.clear();
        }
        known.pieces.insert(place, summary);
    }
}

impl Known {
    /// Whether the page is the same in a history that ends at `end`. The last page grows, the others do not.
    fn is_of(&self, place: Place, end: Tail) -> bool {
        let is_closed = place.page < self.end.page && place.page < end.page;
        is_closed || self.end == end
    }
}

#[cfg(test)]
mod tests {
    use model::WorkflowId;

    use super::*;

    #[test]
    fn pages_that_were_removed_are_forgotten() {
        let workflow = WorkflowId::from_uuid(uuid::Uuid::from_u128(1));
        let mut retention = Retention::new(workflow, "build".parse().unwrap());
        let (index, end) = (PageIndex::default(), Tail { page: 4, bytes: 9 });
        let place = |page| Place::before(Position { page, at: 7 }, &retention).unwrap();
        let places: Vec<Place> = (0..4).map(place).collect();
        let put = |retention: &Retention, place: Place| {
            let page = place.page;
            index.put(
                retention,
                place,
                end,
                Summary::new(Position { page, at: 0 }),
            );
        };
        for place in &places {
            put(&retention, *place);
        }
        let known = |retention: &Retention| {
            let known = places
                .iter()
                .map(|place| index.get(&retention.key(), *place, end));
            known.map(|known| known.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(known(&retention), [true; 4]);
        retention.from.page = 2;
        put(&retention, places[3]);
        assert_eq!(known(&retention), [false, false, true, true]);
    }
}
