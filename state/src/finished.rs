//! Finished jobs: reads a scan's history forward for retention, oldest job first, and changes job records.

use std::sync::Arc;

use model::decide::{Command, CutEndedLog, RemoveArtifacts};
use model::retention::{Candidate, Expiry, FinishedJob, Position};
use model::{HistoryLine, Job, JobId, ScanHead, ScanKey, Timestamp};
use store::Key;

use crate::envelope;
use crate::error::{ReadError, SubmitError};
use crate::history::lines;
use crate::layout::{Folders, Layout};
use crate::limits::EXPIRIES_AT_ONCE;
use crate::reader::StoreReader;
use crate::state::State;
use crate::written::Rewritten;

/// Finished jobs of a scan after a place in its history.
#[derive(Debug, Clone, Default)]
pub struct FinishedJobs {
    pub jobs: Vec<Candidate>,
    /// True if there are no further jobs.
    pub is_whole: bool,
}

impl State {
    /// At most `limit` finished jobs of a scan whose history lines come after `from`.
    pub async fn finished_after(
        &self,
        scan: &ScanKey,
        from: Position,
        limit: usize,
    ) -> Result<FinishedJobs, ReadError> {
        match self.read(|world| world.head(scan).cloned()) {
            Some(head) => finished_after(self.reader(), &head, from, limit).await,
            None => Ok(FinishedJobs {
                jobs: Vec::new(),
                is_whole: true,
            }),
        }
    }

    pub async fn remove_artifacts(&self, remove: RemoveArtifacts) -> Result<Arc<Job>, SubmitError> {
        self.rewrite_job(remove.job.id, remove).await
    }

    /// Records that the log of a finished job is cut.
    pub async fn cut_ended_log(&self, cut: CutEndedLog) -> Result<(), SubmitError> {
        self.rewrite_job(cut.job.id, cut).await
    }

    /// Decides a command that changes a finished job. The revision number of the record continues from the number on
    /// disk. If it cannot be read, it starts again.
    async fn rewrite_job<C: Command>(
        &self,
        job: JobId,
        command: C,
    ) -> Result<C::Answer, SubmitError> {
        let rewritten = self.rewritten(Layout::job(job)).await;
        self.submit_with(command, rewritten, |_, _| ()).await
    }

    /// The settled record at `key` and how often it was written.
    pub(crate) async fn rewritten(&self, key: Key) -> Option<Rewritten> {
        let bytes = self.reader().get(&key).await.unwrap_or_default()?;
        let revision = envelope::read(&bytes).ok()?.stamp.revision;
        Some(Rewritten { key, revision })
    }

    /// Artifacts that have expired in past hours, earliest first, up to a limit. Only the folders of past hours are
    /// read.
    pub async fn expired(&self, now: Timestamp) -> Result<Vec<Expiry>, ReadError> {
        let keys = due_keys(self.reader(), now).await?;
        let mut due = Vec::new();
        for key in keys {
            match self.reader().record(&key).await {
                Ok(expiry) => due.extend(expiry),
                Err(error @ ReadError::Damaged { .. }) => {
                    tracing::error!(%key, %error, "a record cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(due)
    }
}

async fn finished_after(
    reader: &StoreReader,
    head: &ScanHead,
    from: Position,
    limit: usize,
) -> Result<FinishedJobs, ReadError> {
    let tail = head.history;
    let mut jobs = Vec::new();
    let mut begin = from;
    while begin.page <= tail.page {
        let page = begin.page;
        let key = Layout::history(&head.key(), page);
        let mut bytes = reader.get(&key).await?.unwrap_or_default();
        let next = Position {
            page: page + 1,
            at: 0,
        };
        // After the last line of a full page, the next page begins.
        let mut behind = next;
        if page == tail.page {
            let at = tail.bytes;
            bytes.truncate(usize::try_from(at).unwrap_or(usize::MAX));
            behind = Position { page, at };
        }
        let at = usize::try_from(begin.at).unwrap_or(usize::MAX);
        let unread = bytes.get(at..).unwrap_or_default();
        let mut found = lines::<HistoryLine>(reader.warned(), &key, begin, unread)
            .filter_map(|(at, line)| Some((at, line?)))
            .peekable();
        while let Some((_, line)) = found.next() {
            if jobs.len() == limit {
                return Ok(FinishedJobs {
                    jobs,
                    is_whole: false,
                });
            }
            let end = found.peek().map_or(behind, |(at, _)| *at);
            jobs.push(Candidate {
                job: FinishedJob::of(&line, page),
                end: Some(end),
            });
        }
        begin = next;
    }
    Ok(FinishedJobs {
        jobs,
        is_whole: true,
    })
}

/// Keys in the folders of hours that have ended before `now`. Days and hours sort by name.
async fn due_keys(reader: &StoreReader, now: Timestamp) -> Result<Vec<Key>, ReadError> {
    let this_hour = now.format("%Y-%m-%d/%H").to_string();
    let mut keys = Vec::new();
    for day in reader.children(&Folders::expiries("")).await? {
        if day.as_str() > this_hour.as_str() {
            break;
        }
        for hour in reader
            .children(&Folders::expiries(&format!("/{day}")))
            .await?
        {
            let hour = format!("{day}/{hour}");
            if hour >= this_hour {
                return Ok(keys);
            }
            for shard in reader
                .children(&Folders::expiries(&format!("/{hour}")))
                .await?
            {
                let shard = Folders::expiries(&format!("/{hour}/{shard}"));
                let names = reader.children(&shard).await?.into_iter();
                let named = names.filter_map(|name| shard.join(&name));
                keys.extend(named.take(EXPIRIES_AT_ONCE - keys.len()));
                if keys.len() == EXPIRIES_AT_ONCE {
                    return Ok(keys);
                }
            }
        }
    }
    Ok(keys)
}
