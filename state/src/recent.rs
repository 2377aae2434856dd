//! The newest finished jobs of a scan from its history, for expressions that read jobs.

use std::future::Future;
use std::pin::Pin;

use model::{HistoryLine, JobState, Recent, ScanHead};
use workflow::limits::HISTORY_JOBS;

use crate::error::ReadError;
use crate::jobs::settled_job;
use crate::layout::Layout;
use crate::limits::RECENT_PAGES;
use crate::reader::StoreReader;

/// Reads what expressions can reach of a scan's finished jobs. Held by the committer, which does not know how.
pub(crate) trait ReadRecent: Send {
    /// The newest finished jobs as the head knows them.
    fn read<'a>(
        &'a self,
        head: &'a ScanHead,
    ) -> Pin<Box<dyn Future<Output = Result<Recent, ReadError>> + Send + 'a>>;
}

impl ReadRecent for StoreReader {
    fn read<'a>(
        &'a self,
        head: &'a ScanHead,
    ) -> Pin<Box<dyn Future<Output = Result<Recent, ReadError>> + Send + 'a>> {
        Box::pin(recent(self, head))
    }
}

/// Lines that are damaged are left out, and so are records: they were told when they were found.
async fn recent(reader: &StoreReader, head: &ScanHead) -> Result<Recent, ReadError> {
    let mut recent = Recent::default();
    let mut found = 0;
    for page in (0..=head.history.page).rev().take(RECENT_PAGES as usize) {
        if found >= HISTORY_JOBS {
            break;
        }
        let Some(mut bytes) = reader.get(&Layout::history(&head.key(), page)).await? else {
            continue;
        };
        if page == head.history.page {
            bytes.truncate(usize::try_from(head.history.bytes).unwrap_or(usize::MAX));
        }
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<HistoryLine>(line) {
                found += usize::from(line.state != JobState::SKIPPED);
                recent.add(line);
            }
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
