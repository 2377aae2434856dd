//! Deleting finished jobs and their artifacts.
//!
//! The world does not hold finished jobs, so these commands carry their records. One lock is held from reading a record
//! until its removal is committed, so that no job is removed or counted twice.

use std::sync::Arc;

use model::decide::{DeleteJob, RemoveArtifacts};
use model::limits::{ARTIFACTS_REMOVED, REMOVAL_OPERATIONS};
use model::{Actor, Job, JobId, Reason};
use state::ReadError;

use crate::error::RemovalError;
use crate::handle::Handle;
use crate::supervise::uninterrupted;

impl Handle {
    /// Deletes a finished job with its log and artifacts. The scan's counters do not change.
    pub async fn delete_job(&self, id: JobId, actor: Actor) -> Result<(), RemovalError> {
        let removal = async move |handle: Self| {
            let job = handle.finished(id).await?;
            let job = handle.lightened(job, Reason::DeletedByUser, &actor).await?;
            let by = actor.clone();
            handle.state().submit(DeleteJob { job, actor }).await?;
            handle.state().logs().forget(id);
            tracing::info!(job = %id, actor = %by, "a job is deleted");
            Ok(())
        };
        self.with_removal_lock(removal).await
    }

    /// Deletes the file of a finished job's artifact. Nothing changes if it was already deleted.
    pub async fn delete_artifact(
        &self,
        id: JobId,
        name: String,
        actor: Actor,
    ) -> Result<Arc<Job>, RemovalError> {
        let removal = async move |handle: Self| {
            let job = handle.finished(id).await?;
            let remove = RemoveArtifacts {
                job,
                names: vec![name],
                reason: Reason::DeletedByUser,
                actor,
            };
            Ok(handle.state().remove_artifacts(remove).await?)
        };
        self.with_removal_lock(removal).await
    }

    pub(crate) async fn with_removal_lock<T, W, F>(&self, work: W) -> Result<T, RemovalError>
    where
        T: Send + 'static,
        W: FnOnce(Self) -> F,
        F: Future<Output = Result<T, RemovalError>> + Send + 'static,
    {
        let (lock, work) = (self.removals(), work(self.clone()));
        let removal = uninterrupted(async move {
            let _locked = lock.lock().await;
            work.await
        });
        let interrupted = || Err(RemovalError::Read(ReadError::Interrupted));
        removal.await.unwrap_or_else(interrupted)
    }

    pub(crate) async fn finished(&self, id: JobId) -> Result<Arc<Job>, RemovalError> {
        let job = self.state().job(id).await?;
        job.ok_or(RemovalError::NoSuchJob { job: id })
    }

    /// Removes artifacts until the removal of the job fits into one commit. Returns the job without these artifacts.
    pub(crate) async fn lightened(
        &self,
        mut job: Arc<Job>,
        reason: Reason,
        actor: &Actor,
    ) -> Result<Arc<Job>, RemovalError> {
        while operations(&job) > REMOVAL_OPERATIONS {
            let stored = job.stored_artifacts().take(ARTIFACTS_REMOVED);
            let remove = RemoveArtifacts {
                names: stored.map(|artifact| artifact.name.clone()).collect(),
                job,
                reason: reason.clone(),
                actor: actor.clone(),
            };
            job = self.state().remove_artifacts(remove).await?;
        }
        Ok(job)
    }
}

/// The most operations that the removal of a job adds to a commit: its record, inputs, log, expiry and artifacts.
pub(crate) fn operations(job: &Job) -> usize {
    4 + job.stored_artifacts().count()
}
