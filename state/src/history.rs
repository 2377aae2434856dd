//! Reading a scan's history backwards, page by page.
//!
//! Lines stand in the order in which jobs ended, and lists show them in the order in which jobs were made. A job ends
//! after it was made, so whatever was made after the earliest end read so far is newer than all that is still unread:
//! that is how far back a reader must look before it hands a job out, and no further.

use std::collections::BinaryHeap;
use std::sync::Arc;

use bytes::Bytes;
use model::{JobId, ScanHead, ScanKey, Tail, Timestamp, Totals};
use serde::Deserialize;
use store::Key;

use crate::error::ReadError;
use crate::files::blocking;
use crate::layout::Layout;
use crate::page_index::{PageIndex, Summary};
use crate::reader::StoreReader;

/// Which lines of a history are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Only jobs made before this one.
    pub(crate) before: Option<JobId>,
    /// Only jobs that ended in the state of this name.
    pub(crate) state: Option<String>,
}

/// What a cursor finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The newest wanted job that was not handed out.
    Job(JobId),
    /// There is none.
    End,
    /// There may be one further back than the reader may look now.
    TooFar,
}

/// Goes through a scan's finished jobs as they were when its head was looked at, newest first.
pub(crate) struct HistoryCursor {
    reader: StoreReader,
    index: Arc<PageIndex>,
    scan: ScanKey,
    wanted: Wanted,
    latest: JobId,
    end: Tail,
    /// Pages below this number are still to be read.
    pages_left: u64,
    /// Wanted jobs that were read and not handed out.
    read: BinaryHeap<JobId>,
    /// The earliest end among all lines read.
    earliest_end: Option<Timestamp>,
}

/// What a cursor needs of a line.
#[derive(Deserialize)]
struct Line {
    id: JobId,
    state: String,
    finished_at: Timestamp,
}

impl HistoryCursor {
    pub(crate) fn new(
        reader: StoreReader,
        index: Arc<PageIndex>,
        head: &ScanHead,
        wanted: Wanted,
    ) -> Self {
        let end = head.history;
        Self {
            reader,
            index,
            scan: head.key(),
            wanted,
            latest: head.latest_job,
            end,
            pages_left: if end.bytes == 0 {
                end.page
            } else {
                end.page + 1
            },
            read: BinaryHeap::new(),
            earliest_end: None,
        }
    }

    /// A job that nothing in this history is newer than, known without reading; none when the history is empty.
    pub(crate) fn bound(&self) -> Option<JobId> {
        let latest = self
            .wanted
            .before
            .map_or(self.latest, |before| self.latest.min(before));
        (self.pages_left > 0).then_some(latest)
    }

    /// The newest wanted job that was not handed out. `in_vain` says how many pages may still be read without finding
    /// one, and is counted down. A page that was read in vain is remembered, so the next reader passes over it.
    pub(crate) async fn newest(&mut self, in_vain: &mut usize) -> Result<Look, ReadError> {
        while self.pages_left > 0 && !self.is_newest_read() {
            let page = self.pages_left - 1;
            match self.index.get(&self.scan, page, self.end) {
                Some(summary) if !summary.has(&self.wanted) => self.went_back_to(&summary),
                Some(_) | None if *in_vain == 0 => return Ok(Look::TooFar),
                Some(_) | None => {
                    let found = self.read.len();
                    self.read_page(page).await?;
                    if self.read.len() == found {
                        *in_vain -= 1;
                    }
                }
            }
            self.pages_left = page;
        }
        Ok(self
            .read
            .peek()
            .map_or(Look::End, |newest| Look::Job(*newest)))
    }

    /// Hands that job out.
    pub(crate) fn pop(&mut self) {
        self.read.pop();
    }

    /// Whether nothing unread can be newer than the newest job that was read.
    fn is_newest_read(&self) -> bool {
        match (self.read.peek(), self.earliest_end) {
            (Some(newest), Some(earliest_end)) => newest.moment() > earliest_end,
            (None, _) | (_, None) => false,
        }
    }

    async fn read_page(&mut self, page: u64) -> Result<(), ReadError> {
        let key = Layout::history(&self.scan, page);
        let mut bytes = self.reader.get(&key).await?.unwrap_or_default();
        if page == self.end.page {
            // What was appended since belongs to jobs that were unfinished when the head was looked at.
            bytes.truncate(usize::try_from(self.end.bytes).unwrap_or(usize::MAX));
        }
        let wanted = self.wanted.clone();
        let (jobs, summary) =
            blocking(move || Ok::<_, ReadError>(read_lines(&key, &bytes, &wanted))).await?;
        self.read.extend(jobs);
        self.went_back_to(&summary);
        self.index.put(&self.scan, page, self.end, summary);
        Ok(())
    }

    fn went_back_to(&mut self, page: &Summary) {
        let earlier = self.earliest_end.into_iter().chain(page.earliest_end);
        self.earliest_end = earlier.min();
    }
}

/// The wanted jobs of a page, and what is remembered of all of its lines.
fn read_lines(key: &Key, bytes: &[u8], wanted: &Wanted) -> (Vec<JobId>, Summary) {
    let mut jobs = Vec::new();
    let mut summary = Summary::default();
    for line in lines(key, bytes) {
        if wanted.before.is_none_or(|before| line.id < before)
            && wanted
                .state
                .as_deref()
                .is_none_or(|state| state == line.state)
        {
            jobs.push(line.id);
        }
        summary.add(line.id, line.state, line.finished_at);
    }
    (jobs, summary)
}

/// The lines of a page. One that is damaged is left out.
fn lines(key: &Key, bytes: &[u8]) -> impl Iterator<Item = Line> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .filter_map(move |line| match serde_json::from_slice::<Line>(line) {
            Ok(line) => Some(line),
            Err(error) => {
                tracing::error!(%key, %error, "a line of a history cannot be read and is left out");
                None
            }
        })
}

/// How the jobs in all `pages` of a history ended, and the newest of them. Reads everything: only for a scan whose head
/// is lost.
pub(crate) async fn recount(
    reader: &StoreReader,
    scan: &ScanKey,
    pages: u64,
) -> Result<(Totals, Option<JobId>), ReadError> {
    let (mut totals, mut newest) = (Totals::default(), None);
    for page in 0..pages {
        let key = Layout::history(scan, page);
        let bytes: Bytes = reader.get(&key).await?.unwrap_or_default();
        for line in lines(&key, &bytes) {
            totals.count(&line.state);
            newest = newest.max(Some(line.id));
        }
    }
    Ok((totals, newest))
}
