//! Waiters for changes of one job. A change wakes only the waiters of its job.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::JobId;
use tokio::sync::watch;

/// The jobs that somebody waits for. A wake-up carries no data: the waiter reads again.
#[derive(Default)]
pub(crate) struct JobWatchers(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    jobs: HashMap<JobId, watch::Sender<()>>,
    /// How many jobs there were after the last look for those that nobody waits for any more.
    swept: usize,
}

impl JobWatchers {
    /// Wakes whenever there is news of the job; closed when there will be none.
    pub(crate) fn subscribe(&self, job: JobId) -> watch::Receiver<()> {
        let mut watched = self.lock();
        // Twice as many as last time: a look costs each subscriber a constant share.
        if watched.jobs.len() > watched.swept * 2 {
            watched.jobs.retain(|_, sender| sender.receiver_count() > 0);
            watched.swept = watched.jobs.len();
        }
        let sender = watched
            .jobs
            .entry(job)
            .or_insert_with(|| watch::Sender::new(()));
        sender.subscribe()
    }

    pub(crate) fn wake(&self, job: JobId) {
        if let Some(sender) = self.lock().jobs.get(&job) {
            sender.send_replace(());
        }
    }

    /// There will be no more news of the job.
    pub(crate) fn close(&self, job: JobId) {
        self.lock().jobs.remove(&job);
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn only_those_who_wait_for_the_job_are_woken() {
        let watchers = JobWatchers::default();
        let (one, other) = (watchers.subscribe(job(1)), watchers.subscribe(job(2)));
        watchers.wake(job(1));
        assert!(one.has_changed().unwrap());
        assert!(!other.has_changed().unwrap());
        watchers.close(job(2));
        assert!(other.has_changed().is_err());
    }

    #[test]
    fn jobs_that_nobody_waits_for_are_forgotten() {
        let watchers = JobWatchers::default();
        let kept = watchers.subscribe(job(0));
        for n in 1..1_000 {
            drop(watchers.subscribe(job(n)));
        }
        assert!(watchers.lock().jobs.len() < 10);
        watchers.wake(job(0));
        assert!(kept.has_changed().unwrap());
    }
}
