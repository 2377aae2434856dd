//! A cache of ended jobs, so that showing recently ended or recently shown jobs opens no file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Job, JobId};

use crate::limits::ENDED_JOBS;

/// Some ended jobs, equal to their records. A commit that changes a record updates this before it is answered.
#[derive(Clone, Default)]
pub(crate) struct EndedJobs(Arc<Mutex<Kept>>);

/// Two generations: jobs that were not used while the young generation filled up are dropped with the old generation.
#[derive(Default)]
struct Kept {
    young: HashMap<JobId, Arc<Job>>,
    old: HashMap<JobId, Arc<Job>>,
    changes: u64,
}

/// A moment between changes. A job read before a change must not be cached after the change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Before(u64);

impl EndedJobs {
    pub(crate) fn get(&self, id: JobId) -> Option<Arc<Job>> {
        let mut kept = self.lock();
        if let Some(job) = kept.young.get(&id) {
            return Some(job.clone());
        }
        let job = kept.old.remove(&id)?;
        kept.keep(job.clone());
        Some(job)
    }

    /// Call this before reading a record.
    pub(crate) fn before(&self) -> Before {
        Before(self.lock().changes)
    }

    /// Caches a job that was read, unless any job has changed since.
    pub(crate) fn keep_read(&self, before: Before, job: &Arc<Job>) {
        let mut kept = self.lock();
        if before == Before(kept.changes) && job.state.is_terminal() {
            kept.keep(job.clone());
        }
    }

    /// Caches a job that has ended or whose record has changed since.
    pub(crate) fn changed(&self, job: &Arc<Job>) {
        if !job.state.is_terminal() {
            return;
        }
        let mut kept = self.lock();
        kept.changes += 1;
        kept.keep(job.clone());
    }

    pub(crate) fn removed(&self, id: JobId) {
        let mut kept = self.lock();
        kept.changes += 1;
        kept.young.remove(&id);
        kept.old.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, job: Arc<Job>) {
        self.old.remove(&job.id);
        self.young.insert(job.id, job);
        if self.young.len() > ENDED_JOBS / 2 {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::Folder;

    #[tokio::test]
    async fn recently_used_jobs_are_cached_unless_they_have_changed() {
        let (_folder, opened, fleet) = Folder::prepared().await;
        let job = opened.running_job(fleet, "build").await;
        let job = opened.complete(job).await;
        let numbered = |number: usize| {
            let at = job.created_at + chrono::TimeDelta::milliseconds(number as i64);
            Arc::new(Job {
                id: JobId::at(at),
                ..Job::clone(&job)
            })
        };
        let kept = EndedJobs::default();
        let before = kept.before();
        for number in 0..10 * ENDED_JOBS {
            kept.keep_read(before, &numbered(number));
            // This job is requested again and again.
            assert!(kept.get(numbered(0).id).is_some());
        }
        assert!(kept.get(numbered(1).id).is_none());
        assert!(kept.get(numbered(10 * ENDED_JOBS - 1).id).is_some());
        let count = (0..10 * ENDED_JOBS).filter(|number| kept.get(numbered(*number).id).is_some());
        assert!(count.count() <= ENDED_JOBS + 1);

        kept.removed(job.id);
        kept.keep_read(before, &job);
        assert!(
            kept.get(job.id).is_none(),
            "a job read before its removal was cached"
        );
        kept.keep_read(kept.before(), &job);
        assert!(kept.get(job.id).is_some());
    }
}
