//! The past of scans, for people: pages of history lines, newest first, and finished jobs by their ids.

use model::retention::{Position, Retention};
use model::{HistoryLine, Job, JobId, ScanKey};

use crate::backwards::Place;
use crate::envelope;
use crate::error::ReadError;
use crate::history::{KnownPast, lines};
use crate::layout::Layout;
use crate::limits::RECENT_PIECES;
use crate::reader::StoreReader;
use crate::state::State;
use crate::warned::DamagedLines;

/// Lines of finished jobs; the job that ended last comes first.
#[derive(Debug, Clone, Default)]
pub struct HistoryPage {
    pub lines: Vec<HistoryLine>,
    /// The next page has the lines before this place. `None` at the end.
    pub next: Option<Position>,
    pub damaged: Vec<DamagedLines>,
}

impl State {
    /// Finished jobs in the order of `ids`; `None` for a removed or unreadable job.
    pub async fn finished_jobs(&self, ids: &[JobId]) -> Result<Vec<Option<Job>>, ReadError> {
        let keys: Vec<_> = ids.iter().map(|id| Layout::job(*id)).collect();
        let found = self.reader().get_many(keys.clone()).await?;
        let jobs = keys.iter().zip(found).map(|(key, bytes)| {
            let opened = bytes.map(|bytes| envelope::open_at(key, &bytes));
            opened.transpose().unwrap_or_else(|error| {
                tracing::error!(%key, %error, "a job cannot be read");
                None
            })
        });
        Ok(jobs.collect())
    }

    /// The scans in whose histories damaged lines were found since the start.
    pub fn damaged_histories(&self) -> Vec<ScanKey> {
        self.reader().warned().histories()
    }

    /// The newest lines of a scan's history, optionally before a place in it.
    pub async fn history(
        &self,
        scan: &ScanKey,
        before: Option<Position>,
        limit: usize,
    ) -> Result<HistoryPage, ReadError> {
        let past = self.read(|world| Some(KnownPast::of(world, world.head(scan)?)));
        match past {
            Some(past) => page(self.reader(), &past, before, limit).await,
            None => Ok(HistoryPage::default()),
        }
    }
}

async fn page(
    reader: &StoreReader,
    past: &KnownPast,
    before: Option<Position>,
    limit: usize,
) -> Result<HistoryPage, ReadError> {
    let KnownPast { head, retention } = past;
    let end = Position {
        page: head.history.page,
        at: head.history.bytes,
    };
    let asked = before.filter(|before| *before < end);
    let mut next = match asked {
        Some(asked) => Place::before(asked, retention),
        None => Place::newest(head.history, retention),
    };
    // An invented cursor may end within a line.
    let mut may_end_within = asked.is_some_and(|asked| asked.at > 0);
    let mut page = HistoryPage::default();
    for _ in 0..RECENT_PIECES {
        let Some(place) = next else {
            break;
        };
        let mut read = place.read(reader, &head.key(), head.history).await?;
        if std::mem::take(&mut may_end_within) {
            let whole = read.bytes.iter().rposition(|byte| *byte == b'\n');
            read.bytes.truncate(whole.map_or(0, |end| end + 1));
        }
        next = Place::before(read.begin, retention);
        let mut damaged = u64::from(read.is_cut);
        let mut found = Vec::new();
        for (at, line) in lines::<HistoryLine>(reader.warned(), &read.key, read.begin, &read.bytes)
        {
            match line {
                Some(line) if retention.may_hold(line.id, at) => found.push((at, line)),
                Some(_) => {}
                None => damaged += u64::from(at >= retention.from),
            }
        }
        if damaged > 0 {
            reader.warned().note_history(head.key());
            page.damaged.push(DamagedLines {
                file: read.key.to_string(),
                lines: damaged,
            });
        }
        for (at, line) in existing(reader, retention, found).await?.into_iter().rev() {
            page.lines.push(line);
            if page.lines.len() == limit {
                page.next = Place::before(at, retention).map(|_| at);
                return Ok(page);
            }
        }
        page.next = next.map(|_| read.begin);
    }
    Ok(page)
}

/// The lines of existing jobs. Records are only checked if the scan has removed jobs.
async fn existing(
    reader: &StoreReader,
    retention: &Retention,
    found: Vec<(Position, HistoryLine)>,
) -> Result<Vec<(Position, HistoryLine)>, ReadError> {
    if retention.removed.jobs() == 0 {
        return Ok(found);
    }
    let keys = found.iter().map(|(_, line)| Layout::job(line.id)).collect();
    let lengths = reader.lengths(keys).await?;
    let found = found.into_iter().zip(lengths);
    Ok(found
        .filter(|(_, length)| !matches!(length, Ok(None)))
        .map(|(line, _)| line)
        .collect())
}
