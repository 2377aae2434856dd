//! Keeping logs durable, and whole in a backup that is made meanwhile. Logs grow beside the journal, and a copy may have
//! an older end of one than the journal's copy counts on. While there is a hold on the state, what is appended goes
//! through the journal as well: within the second of its sync, and before the end of its job, which counts on it. What
//! comes after that is in the file alone.

use model::JobId;
use model::decide::{Command, Decision, Refusal, Urgency};
use model::{Moment, World};
use store::append_file::AppendReader;
use tokio::time::Instant;

use crate::error::{OpenError, ReadError, SubmitError, WriteError};
use crate::files::blocking;
use crate::layout::Layout;
use crate::limits::LOG_SYNC;
use crate::log::LogError;
use crate::log::job_log::JobLog;
use crate::state::State;

impl State {
    /// Syncs what is appended to logs, at most every second, for as long as the daemon runs.
    pub async fn keep_logs_durable(&self) {
        loop {
            self.logs().shared.dirty.notified().await;
            tokio::time::sleep(LOG_SYNC).await;
            let logs = self.logs().clone();
            let now = Instant::now();
            match blocking(move || logs.sync(now)).await {
                Ok(true) => {}
                Ok(false) => self.logs().shared.dirty.notify_one(),
                Err(error) => tracing::error!(%error, "a log cannot be synced"),
            }
            for (job, bytes) in self.logs().missed() {
                if let Err(error) = self.journal_log(job, bytes).await {
                    tracing::error!(%job, %error, "a backup may miss the end of a log");
                }
            }
        }
    }

    /// How long the log of a job is that is about to end otherwise than by its runner, in bytes. A backup that counts them has
    /// them. The log may go on growing.
    pub async fn log_bytes_at_end(&self, job: JobId) -> u64 {
        let bytes = self.logs().bytes(job).await;
        if let Err(error) = self.journal_log(job, bytes).await {
            // The job must be able to end.
            tracing::error!(%job, %error, "a backup may miss the end of a log");
        }
        bytes
    }

    /// Puts what a backup may miss of the first `bytes` of a log into the journal.
    pub(super) async fn journal_log(&self, job: JobId, bytes: u64) -> Result<(), LogError> {
        loop {
            let logs = self.logs().clone();
            let next = blocking(move || logs.of_open(job, |log| log.next_to_journal())).await?;
            let Some(piece) = next.filter(|piece| piece.at < bytes) else {
                return Ok(());
            };
            let append = piece.clone();
            let carried = self.submit_with(Carry(job), move |carried, batch| {
                if carried.answer {
                    batch.appends.push(append);
                }
            });
            match carried.await {
                // Of a job that is over, what it ended with is in the journal since before that; nobody promised the rest.
                Ok(true | false) => {}
                Err(SubmitError::DiskLow | SubmitError::DiskFull) => {
                    return Err(WriteError::DiskFull.into());
                }
                // Somebody cut or removed the file just now, and the completion says so, or the daemon stops.
                Err(error) => {
                    tracing::warn!(%job, %error, "a log does not go through the journal");
                    return Ok(());
                }
            }
            let logs = self.logs().clone();
            blocking(move || {
                logs.of_open(job, |log| {
                    log.journalled(&piece);
                    Ok::<_, LogError>(None::<()>)
                })
            })
            .await?;
        }
    }
}

impl super::Logs {
    /// Opens the logs of jobs that were under way before this start, if there is a hold: what was appended under it may not
    /// have come into the journal.
    pub(crate) async fn take_up(&self, jobs: Vec<JobId>) -> Result<(), OpenError> {
        let logs = self.clone();
        blocking(move || {
            let root = &logs.shared.root;
            if !store::hold::is_held(root).map_err(store::OpenError::Disk)? {
                return Ok(());
            }
            for job in jobs {
                // Where there is no log, none is made only to be empty.
                let opened = match AppendReader::open(root, &Layout::log(job)) {
                    Ok(None) => continue,
                    Ok(Some(_)) => logs.with(job, |_| Ok(())),
                    Err(error) => Err(LogError::Read(ReadError::Store(error.into()))),
                };
                if let Err(error) = opened {
                    tracing::error!(%job, %error, "a backup may miss the end of a log");
                }
            }
            logs.shared.dirty.notify_one();
            Ok(())
        })
        .await
    }

    /// The jobs of whose logs a backup may miss a part, and how long these are.
    fn missed(&self) -> Vec<(JobId, u64)> {
        let open = super::lock(&self.shared.open);
        let slots: Vec<_> = open
            .iter()
            .map(|(job, slot)| (*job, slot.clone()))
            .collect();
        drop(open);
        let missed = |(job, slot): (JobId, super::Slot)| {
            let log = super::lock(&slot);
            let missed = log.as_ref().filter(|log| log.is_missed())?;
            Some((job, missed.bytes()))
        };
        slots.into_iter().filter_map(missed).collect()
    }

    /// Looks at a log, when it is open. Blocks.
    fn of_open<T>(
        &self,
        job: JobId,
        work: impl FnOnce(&mut JobLog) -> Result<Option<T>, LogError>,
    ) -> Result<Option<T>, LogError> {
        let slot = super::lock(&self.shared.open).get(&job).cloned();
        let Some(slot) = slot else {
            return Ok(None);
        };
        let mut slot = super::lock(&slot);
        slot.as_mut().map_or(Ok(None), work)
    }
}

/// Changes nothing and carries a piece of the log that is packed with it, if the job is not over: the log of one that is
/// may be deleted with it, in the same commit or before.
struct Carry(JobId);

impl Command for Carry {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        Ok(Decision::unchanged(world.job(self.0).is_some()))
    }
}
