//! Reads the newest finished jobs of a scan from its history, for expressions that use jobs.

use std::future::Future;
use std::pin::Pin;

use model::retention::{Position, Retention};
use model::{EndState, HistoryLine, Recent};
use workflow::limits::HISTORY_JOBS;

use crate::backwards::Place;
use crate::error::ReadError;
use crate::history::{KnownPast, lines};
use crate::jobs::settled_job;
use crate::layout::Layout;
use crate::limits::RECENT_PIECES;
use crate::reader::StoreReader;

/// Reads the finished jobs of a scan that expressions can use.
pub(crate) trait ReadRecent: Send + Sync {
    fn read<'a>(
        &'a self,
        past: &'a KnownPast,
    ) -> Pin<Box<dyn Future<Output = Result<Recent, ReadError>> + Send + 'a>>;
}

impl ReadRecent for StoreReader {
    fn read<'a>(
        &'a self,
        past: &'a KnownPast,
    ) -> Pin<Box<dyn Future<Output = Result<Recent, ReadError>> + Send + 'a>> {
        Box::pin(recent(self, past))
    }
}

/// Damaged lines and records are skipped.
pub(crate) async fn recent(reader: &StoreReader, past: &KnownPast) -> Result<Recent, ReadError> {
    let KnownPast { head, retention } = past;
    let mut recent = Recent::default();
    let mut found = 0;
    let mut next = Place::newest(head.history, retention);
    let mut pieces = 0;
    while let Some(place) = next
        && found < HISTORY_JOBS
        && pieces < RECENT_PIECES
    {
        let read = place.read(reader, &head.key(), head.history).await?;
        next = Place::before(read.begin, retention);
        pieces += 1;
        // Newest first, so that only needed records are read.
        let lines: Vec<(_, HistoryLine)> =
            lines(reader.warned(), &read.key, read.begin, &read.bytes)
                .filter_map(|(at, line)| Some((at, line?)))
                .collect();
        for (at, line) in lines.into_iter().rev() {
            if found >= HISTORY_JOBS {
                break;
            }
            if line.state == EndState::Skipped || !exists(reader, retention, &line, at).await? {
                continue;
            }
            found += 1;
            recent.add(line);
        }
    }
    for success in &head.successes {
        if recent.lines().all(|line| line.id != success.job) {
            let job = match settled_job(reader, success.job).await {
                Err(ReadError::Damaged { path, problem }) => {
                    tracing::error!(
                        path,
                        problem,
                        "a job cannot be read; expressions do not see it"
                    );
                    None
                }
                job => job?,
            };
            if let Some(line) = job.and_then(|job| HistoryLine::of(&job)) {
                recent.add(line);
            }
        }
    }
    Ok(recent)
}

/// Whether a job still exists. Its record is only checked if the scan has removed jobs.
async fn exists(
    reader: &StoreReader,
    retention: &Retention,
    line: &HistoryLine,
    at: Position,
) -> Result<bool, ReadError> {
    if !retention.may_hold(line.id, at) {
        return Ok(false);
    }
    let removed = retention.removed.jobs();
    Ok(removed == 0 || reader.get(&Layout::job(line.id)).await?.is_some())
}
