//! Goes through a scan's finished jobs, newest first.
//!
//! Lines are in the order in which jobs ended, and lists are in the order in which jobs were made. A job ends after it
//! was made. So a job that was made after the earliest end time read so far is newer than every unread job, and the
//! reader can return it. This does not help if many jobs were made before any of them ended. But a piece with a known
//! summary is read only if it may contain the next job.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use bytes::Bytes;
use model::retention::{Position, Retention};
use model::{
    EndState, HistoryLine, JobId, ScanHead, ScanKey, TailEnd, Timestamp, Totals, Trigger, World,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::Key;

use crate::backwards::{Lines, Place};
use crate::error::ReadError;
use crate::jobs::settled_job;
use crate::layout::Layout;
use crate::page_index::{PageIndex, Summary};
use crate::reader::StoreReader;
use crate::warned::{DamagedLines, Warned};

/// What the world knows about a scan's finished jobs.
#[derive(Debug, Clone)]
pub(crate) struct KnownPast {
    pub(crate) head: Arc<ScanHead>,
    pub(crate) retention: Arc<Retention>,
}

impl KnownPast {
    pub(crate) fn of(world: &World, head: &Arc<ScanHead>) -> Self {
        Self {
            head: head.clone(),
            retention: world.retention_or_new(&head.key()),
        }
    }
}

/// Selects lines of a history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Only jobs made before this one.
    pub(crate) before: Option<JobId>,
    /// Only this job and newer jobs.
    pub(crate) since: Option<JobId>,
    /// Only jobs with this end state.
    pub(crate) state: Option<EndState>,
    pub(crate) trigger: Option<Trigger>,
    /// Only jobs that ended with this reason code.
    pub(crate) reason: Option<String>,
    /// Only jobs executed by the runner with this name.
    pub(crate) runner: Option<String>,
}

impl Wanted {
    /// False if the line shows that its job is not wanted. Lines of older daemons lack reason and runner.
    fn takes(&self, line: &Line) -> bool {
        let is_old = line.reason.is_none();
        self.before.is_none_or(|before| line.id < before)
            && self.since.is_none_or(|since| line.id >= since)
            && self.state.is_none_or(|state| line.state == state)
            && self.trigger.is_none_or(|trigger| line.trigger == trigger)
            && (is_old || self.reason.is_none() || self.reason == line.reason)
            && (is_old || self.runner.is_none() || self.runner == line.runner)
    }
}

/// The result of a search for the next job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorResult {
    Job(JobId),
    /// There are no further wanted jobs.
    End,
    /// There may be more wanted jobs, but the limit of pieces was reached.
    TooFar,
}

/// Iterates over the finished jobs that a scan had when its head was read, newest first.
pub(crate) struct HistoryCursor {
    reader: StoreReader,
    index: Arc<PageIndex>,
    scan: ScanKey,
    wanted: Wanted,
    latest: JobId,
    /// Which jobs were removed.
    retention: Arc<Retention>,
    /// The end of the history when its head was read.
    end: TailEnd,
    /// How far the history was read. `None` if all of it was read.
    next: Option<Place>,
    /// Wanted jobs that were read and not taken yet.
    read: BinaryHeap<JobId>,
    /// Pieces that were passed without being read. Each has an upper bound for its newest wanted job.
    passed: BinaryHeap<(JobId, Place)>,
    /// The earliest end time of all lines read or passed.
    earliest_end: Option<Timestamp>,
    /// Lines that could not be read, by page.
    damaged: BTreeMap<u64, u64>,
}

/// The fields of a line that a cursor needs.
#[derive(Deserialize)]
struct Line {
    id: JobId,
    state: EndState,
    trigger: Trigger,
    finished_at: Timestamp,
    reason: Option<String>,
    runner: Option<String>,
}

impl HistoryCursor {
    pub(crate) fn new(
        reader: StoreReader,
        index: Arc<PageIndex>,
        past: &KnownPast,
        wanted: Wanted,
    ) -> Self {
        let KnownPast { head, retention } = past;
        Self {
            reader,
            index,
            scan: head.key(),
            wanted,
            latest: head.latest_job,
            end: head.history,
            next: Place::newest(head.history, retention),
            retention: retention.clone(),
            read: BinaryHeap::new(),
            passed: BinaryHeap::new(),
            earliest_end: None,
            damaged: BTreeMap::new(),
        }
    }

    /// Lines that could not be read, by page.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = DamagedLines> {
        self.damaged.iter().map(|(page, lines)| DamagedLines {
            file: Layout::history(&self.scan, *page).to_string(),
            lines: *lines,
        })
    }

    /// An upper bound for the newest job, without reading the history. `None` if the history is empty.
    pub(crate) fn bound(&self) -> Option<JobId> {
        let latest = self
            .wanted
            .before
            .map_or(self.latest, |before| self.latest.min(before));
        self.next.is_some().then_some(latest)
    }

    /// The newest wanted job that was not taken yet. `fruitless` is the number of pieces that may still be read without
    /// finding a job; it is counted down. Summaries of pieces are kept, so that the next reader can skip them.
    pub(crate) async fn newest(
        &mut self,
        fruitless: &mut usize,
    ) -> Result<CursorResult, ReadError> {
        loop {
            let job = self.read.peek().copied();
            let piece = self.passed.peek().map(|(newest, _)| *newest);
            let newest = job.max(piece);
            if let Some(place) = self.next
                && !self.is_newer_than_the_rest(newest)
                && !self.is_past_the_first()
            {
                match self.index.get(&self.scan, place) {
                    Some(summary) => {
                        let newest = summary.newest(&self.wanted);
                        self.passed.extend(newest.map(|newest| (newest, place)));
                        self.went_back_to(&summary);
                    }
                    None if *fruitless == 0 => return Ok(CursorResult::TooFar),
                    None => {
                        let summary = self.read_before(place, fruitless).await?;
                        self.went_back_to(&summary);
                    }
                }
            } else if piece <= job {
                return Ok(job.map_or(CursorResult::End, CursorResult::Job));
            } else if *fruitless == 0 {
                return Ok(CursorResult::TooFar);
            } else if let Some((_, place)) = self.passed.pop() {
                self.read_before(place, fruitless).await?;
            }
        }
    }

    pub(crate) fn pop(&mut self) {
        self.read.pop();
    }

    /// True if every unread job is older than this job.
    fn is_newer_than_the_rest(&self, newest: Option<JobId>) -> bool {
        match (newest, self.earliest_end) {
            (Some(newest), Some(earliest_end)) => newest.moment() > earliest_end,
            (None, _) | (_, None) => false,
        }
    }

    /// True if every unread job is older than `since`: a job ends after it was made.
    fn is_past_the_first(&self) -> bool {
        match (self.wanted.since, self.earliest_end) {
            (Some(since), Some(earliest_end)) => since.moment() > earliest_end,
            (None, _) | (_, None) => false,
        }
    }

    async fn read_before(
        &mut self,
        place: Place,
        fruitless: &mut usize,
    ) -> Result<Summary, ReadError> {
        let piece = match self.index.lines(&self.scan, place) {
            Some(piece) => piece,
            None => {
                let lines = place.read(&self.reader, &self.scan, self.end).await?;
                let piece = Arc::new(PieceLines::parse(self.reader.warned(), &lines));
                self.index.keep_lines(&self.scan, place, piece.clone());
                piece
            }
        };
        let (jobs, summary) = wanted_of(&piece, &self.wanted, &self.retention);
        *fruitless -= usize::from(jobs.is_empty());
        self.read.extend(jobs);
        self.index.put(&self.retention, place, summary);
        Ok(summary)
    }

    fn went_back_to(&mut self, piece: &Summary) {
        let earlier = self.earliest_end.into_iter().chain(piece.earliest_end);
        self.earliest_end = earlier.min();
        if piece.damaged > 0 {
            *self.damaged.entry(piece.begin.page).or_default() += piece.damaged;
        }
        self.next = Place::before(piece.begin, &self.retention);
    }
}

pub(crate) struct PieceLines {
    begin: Position,
    end: u64,
    is_cut: bool,
    /// `None` for a damaged line.
    lines: Vec<(Position, Option<Line>)>,
}

impl PieceLines {
    fn parse(warned: &Warned, lines: &Lines) -> Self {
        Self {
            begin: lines.begin,
            end: lines.begin.at + lines.bytes.len() as u64,
            is_cut: lines.is_cut,
            lines: self::lines(warned, &lines.key, lines.begin, &lines.bytes).collect(),
        }
    }
}

/// The wanted jobs of a piece, and a summary of all its lines except those of removed jobs.
fn wanted_of(piece: &PieceLines, wanted: &Wanted, retention: &Retention) -> (Vec<JobId>, Summary) {
    let mut jobs = Vec::new();
    let mut summary = Summary::new(piece.begin, piece.end);
    summary.damaged = u64::from(piece.is_cut);
    for (at, line) in &piece.lines {
        let Some(line) = line else {
            // Before `from`, the line may belong to a removed job.
            summary.damaged += u64::from(*at >= retention.from);
            continue;
        };
        if !retention.may_hold(line.id, *at) {
            continue;
        }
        if wanted.takes(line) {
            jobs.push(line.id);
        }
        summary.add(line.id, line.state, line.finished_at);
    }
    (jobs, summary)
}

/// The lines in `bytes`, each with its place; `None` for a damaged line. `from` is the place of the first line.
pub(crate) fn lines<L: DeserializeOwned>(
    warned: &Warned,
    key: &Key,
    from: Position,
    bytes: &[u8],
) -> impl Iterator<Item = (Position, Option<L>)> {
    let mut at = from.at;
    let lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let begin = Position {
                page: from.page,
                at,
            };
            at += line.len() as u64;
            (begin, line.trim_ascii_end())
        });
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(move |(begin, line)| {
            let line = serde_json::from_slice(line);
            if let Err(error) = &line {
                warned.warn(key, begin.at, error);
            }
            (begin, line.ok())
        })
}

#[derive(Default)]
pub(crate) struct Recount {
    /// The jobs whose records exist, by end state, with the bytes they take now.
    pub(crate) there: Totals,
    /// All lines, including lines of removed jobs.
    pub(crate) lines: Totals,
    pub(crate) newest: Option<JobId>,
}

/// Counts the jobs in these pages of a history. This reads all lines and job records, so it is only for a scan whose
/// records are damaged.
pub(crate) async fn recount(reader: &StoreReader, retention: &Retention, pages: &[u64]) -> Recount {
    let mut found = Recount::default();
    for page in pages {
        let key = Layout::history(&retention.key(), *page);
        let bytes: Bytes = match reader.get(&key).await {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => {
                tracing::error!(%key, %error, "a page of a history cannot be read and is not counted");
                continue;
            }
        };
        let begin = Position { page: *page, at: 0 };
        for (at, line) in lines::<HistoryLine>(reader.warned(), &key, begin, &bytes) {
            let Some(line) = line else {
                continue;
            };
            found.newest = found.newest.max(Some(line.id));
            found.lines.count(line.state, line.bytes);
            if !retention.may_hold(line.id, at) {
                continue;
            }
            match settled_job(reader, line.id).await {
                Ok(Some(job)) => found.there.count(line.state, job.bytes()),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(job = %line.id, %error, "a job cannot be read; its line is counted");
                    found.there.count(line.state, line.bytes);
                }
            }
        }
    }
    found
}
