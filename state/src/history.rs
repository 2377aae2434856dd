//! Reading a scan's history backwards, page by page.
//!
//! Lines stand in the order in which jobs ended, and lists show them in the order in which jobs were made. A job ends
//! after it was made, so whatever was made after the earliest end read so far is newer than all that is still unread:
//! that is how far back a reader must look before it hands a job out, and no further.

use std::collections::BinaryHeap;

use bytes::Bytes;
use model::{JobId, ScanHead, ScanKey, Tail, Timestamp};
use serde::Deserialize;
use store::Key;

use crate::error::ReadError;
use crate::files::blocking;
use crate::layout::Layout;
use crate::reader::StoreReader;

/// Which lines of a history are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Only jobs made before this one.
    pub(crate) before: Option<JobId>,
    /// Only jobs that ended in the state of this name.
    pub(crate) state: Option<String>,
}

/// Goes through a scan's finished jobs as they were when its head was looked at, newest first.
pub(crate) struct HistoryCursor {
    reader: StoreReader,
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
    pub(crate) fn new(reader: StoreReader, head: &ScanHead, wanted: Wanted) -> Self {
        let end = head.history;
        Self {
            reader,
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

    /// The newest wanted job that was not handed out.
    pub(crate) async fn newest(&mut self) -> Result<Option<JobId>, ReadError> {
        while self.pages_left > 0 && !self.is_newest_read() {
            self.pages_left -= 1;
            self.read_page(self.pages_left).await?;
        }
        Ok(self.read.peek().copied())
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
        let Some(mut bytes) = self.reader.get(&key).await? else {
            return Ok(());
        };
        if page == self.end.page {
            // What was appended since belongs to jobs that were unfinished when the head was looked at.
            bytes.truncate(usize::try_from(self.end.bytes).unwrap_or(usize::MAX));
        }
        let wanted = self.wanted.clone();
        let (jobs, earliest_end) =
            blocking(move || Ok::<_, ReadError>(read_lines(&key, &bytes, &wanted))).await?;
        self.read.extend(jobs);
        self.earliest_end = self.earliest_end.into_iter().chain(earliest_end).min();
        Ok(())
    }
}

/// The wanted jobs of a page and the earliest end of all of its lines. A line that is damaged is left out.
fn read_lines(key: &Key, bytes: &Bytes, wanted: &Wanted) -> (Vec<JobId>, Option<Timestamp>) {
    let mut jobs = Vec::new();
    let mut earliest_end: Option<Timestamp> = None;
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        match serde_json::from_slice::<Line>(line) {
            Ok(line) => {
                earliest_end = earliest_end.into_iter().chain([line.finished_at]).min();
                if wanted.before.is_none_or(|before| line.id < before)
                    && wanted
                        .state
                        .as_deref()
                        .is_none_or(|state| state == line.state)
                {
                    jobs.push(line.id);
                }
            }
            Err(error) => {
                tracing::error!(%key, %error, "a line of a history cannot be read and is left out")
            }
        }
    }
    (jobs, earliest_end)
}
