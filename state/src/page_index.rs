//! Summaries of the pieces of histories. A piece is a fixed range of bytes of a history page, about sixty jobs. A list
//! reads only pieces that contain a wanted job. Each commit updates the summaries for the lines it adds; other
//! summaries are made when the piece is first read. Each summary has about two hundred bytes, so all fit in memory. The
//! lines of recently read pieces are cached too: if jobs end in a different order than they were made, consecutive
//! lists read the same pieces.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::retention::{Position, Retention};
use model::{EndState, HistoryEntry, JobId, ScanKey, Timestamp};

use crate::backwards::{Place, piece_of};
use crate::history::{PieceLines, Wanted};
use crate::limits::READ_PIECES;

/// The summaries of all pieces that were read or written since the start. Summaries of removed pages are dropped.
#[derive(Default)]
pub(crate) struct PageIndex {
    known: Mutex<HashMap<ScanKey, Known>>,
    /// Recently read pieces, oldest first. Each is identified by its scan and the place after it.
    lines: Mutex<VecDeque<(ScanKey, Place, Arc<PieceLines>)>>,
}

#[derive(Default)]
struct Known {
    /// By page and number of the piece in the page.
    pieces: BTreeMap<(u64, u64), Summary>,
    /// The lengths of pages that do not grow any more.
    lengths: BTreeMap<u64, u64>,
}

/// A summary of the lines of a piece that are written so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// Where the first line of the piece begins.
    pub(crate) begin: Position,
    /// Where the last line of the piece ends.
    end: u64,
    /// The oldest and the newest job for each end state.
    jobs: [Option<(JobId, JobId)>; EndState::ALL.len()],
    /// The earliest end time of its jobs.
    pub(crate) earliest_end: Option<Timestamp>,
    /// How many of its lines could not be read.
    pub(crate) damaged: u64,
}

impl Summary {
    /// An empty summary for the lines from `begin` to `end`.
    pub(crate) fn new(begin: Position, end: u64) -> Self {
        Self {
            begin,
            end,
            jobs: [None; EndState::ALL.len()],
            earliest_end: None,
            damaged: 0,
        }
    }

    pub(crate) fn add(&mut self, job: JobId, state: EndState, finished_at: Timestamp) {
        for (jobs, of) in self.jobs.iter_mut().zip(EndState::ALL) {
            if of == state {
                let (oldest, newest) = jobs.unwrap_or((job, job));
                *jobs = Some((job.min(oldest), job.max(newest)));
            }
        }
        self.earliest_end = self.earliest_end.into_iter().chain([finished_at]).min();
    }

    /// An upper bound for the newest wanted job of the piece. `None` if the piece has no wanted job.
    pub(crate) fn newest(&self, wanted: &Wanted) -> Option<JobId> {
        let jobs = self.jobs.iter().zip(EndState::ALL);
        let jobs = jobs.filter(|(_, of)| wanted.state.is_none_or(|wanted| wanted == *of));
        let newest = jobs.filter_map(|(jobs, _)| {
            let (oldest, newest) = (*jobs)?;
            match wanted.before {
                Some(before) if oldest >= before => None,
                Some(before) => Some(newest.min(before)),
                None => Some(newest),
            }
        });
        newest
            .max()
            .filter(|newest| wanted.since.is_none_or(|since| *newest >= since))
    }
}

impl PageIndex {
    /// The summary of the piece before a place.
    pub(crate) fn get(&self, scan: &ScanKey, place: Place) -> Option<Summary> {
        let known = self.lock();
        let known = known.get(scan)?;
        let end = place
            .end
            .or_else(|| known.lengths.get(&place.page).copied())?;
        let piece = known.pieces.get(&(place.page, piece_of(end)))?;
        // The summary may belong to an earlier or later length of a growing piece.
        (piece.end == end).then_some(*piece)
    }

    /// Keeps the summary of the piece before a place, and drops summaries of removed pages.
    pub(crate) fn put(&self, retention: &Retention, place: Place, summary: Summary) {
        let mut known = self.lock();
        let known = known.entry(retention.key()).or_default();
        known
            .pieces
            .retain(|(page, _), _| !retention.is_done_with(*page));
        known
            .lengths
            .retain(|page, _| !retention.is_done_with(*page));
        // Without an end in `place`, the whole page was read, so it no longer grows.
        if place.end.is_none() {
            known.lengths.insert(place.page, summary.end);
        }
        let piece = (place.page, piece_of(summary.end));
        let is_newer = known
            .pieces
            .get(&piece)
            .is_none_or(|known| known.end <= summary.end);
        if is_newer {
            known.pieces.insert(piece, summary);
        }
    }

    /// Adds a new line of a history to the summary of its piece.
    pub(crate) fn added(&self, entry: &HistoryEntry) {
        let HistoryEntry {
            scan,
            page,
            at,
            line,
            text,
        } = entry;
        let end = at + text.len() as u64;
        let piece = (*page, piece_of(end));
        let begin = Position {
            page: *page,
            at: *at,
        };
        let mut known = self.lock();
        let pieces = &mut known.entry(scan.clone()).or_default().pieces;
        if *at == 0 || piece_of(*at) < piece.1 {
            pieces.insert(piece, Summary::new(begin, *at));
        }
        // A piece that was begun before the daemon started has no summary yet.
        if let Some(summary) = pieces.get_mut(&piece)
            && summary.end == *at
        {
            summary.end = end;
            summary.add(line.id, line.state, line.finished_at);
        }
    }

    /// Each change is one map operation, so the data is consistent even after a panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<ScanKey, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached lines of the piece before a place. Lines before a place never change.
    pub(crate) fn lines(&self, scan: &ScanKey, place: Place) -> Option<Arc<PieceLines>> {
        let kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = kept.iter();
        let (_, _, lines) = kept.find(|(of, before, _)| *before == place && of == scan)?;
        Some(lines.clone())
    }

    /// Caches the lines of the piece before a place.
    pub(crate) fn keep_lines(&self, scan: &ScanKey, place: Place, lines: Arc<PieceLines>) {
        let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= READ_PIECES {
            kept.pop_front();
        }
        kept.push_back((scan.clone(), place, lines));
    }
}

#[cfg(test)]
mod tests {
    use model::WorkflowId;

    use super::*;

    #[test]
    fn summaries_of_removed_pages_are_dropped() {
        let workflow = WorkflowId::from_uuid(uuid::Uuid::from_u128(1));
        let mut retention = Retention::new(workflow, "build".parse().unwrap());
        let index = PageIndex::default();
        let place = |page| Place::before(Position { page, at: 7 }, &retention).unwrap();
        let places: Vec<Place> = (0..4).map(place).collect();
        let put = |retention: &Retention, place: Place| {
            let page = place.page;
            index.put(retention, place, Summary::new(Position { page, at: 0 }, 7));
        };
        for place in &places {
            put(&retention, *place);
        }
        let known = |retention: &Retention| {
            let known = places
                .iter()
                .map(|place| index.get(&retention.key(), *place));
            known.map(|known| known.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(known(&retention), [true; 4]);
        retention.from.page = 2;
        put(&retention, places[3]);
        assert_eq!(known(&retention), [false, false, true, true]);
    }
}
