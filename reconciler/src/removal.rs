//! Deleting finished jobs and their artifacts.
//!
//! Records of finished jobs stand in no world, so a decision on one is given the record. Whoever removes something
//! reads it and submits the removal under one lock, to the end: nothing is removed, or counted, twice.

use std::sync::Arc;

use model::decide::{DeleteJob, RemoveArtifacts};
use model::limits::{ARTIFACTS_REMOVED, REMOVAL_OPERATIONS};
use model::{Actor, Job, JobId, Reason};
use state::ReadError;

use crate::error::RemovalError;
use crate::handle::Handle;
use crate::uninterrupted::uninterrupted;

impl Handle {
    /// Deletes a finished job with its log and artifacts. What its scan remembers of it stays.
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
        self.alone(removal).await
    }

    /// Deletes the file of a finished job's artifact. One that is gone already stays as it is.
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
        self.alone(removal).await
    }

    /// Does something with records of finished jobs while nobody else does.
    pub(crate) async fn alone<T, W, F>(&self, work: W) -> Result<T, RemovalError>
    where
        T: Send + 'static,
        W: FnOnce(Self) -> F,
        F: Future<Output = Result<T, RemovalError>> + Send + 'static,
    {
        let (lock, work) = (self.removal_lock(), work(self.clone()));
        let removal = uninterrupted(async move {
            let _alone = lock.lock().await;
            work.await
        });
        let interrupted = || Err(RemovalError::Read(ReadError::Interrupted));
        removal.await.unwrap_or_else(interrupted)
    }

    /// The job's record, which says whether it is over.
    pub(crate) async fn finished(&self, id: JobId) -> Result<Arc<Job>, RemovalError> {
        let job = self.state().job(id).await?;
        job.ok_or(RemovalError::NoSuchJob { job: id })
    }

    /// The job with so few artifacts that all of it fits into one commit: what is too much goes before.
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

/// What the removal of a job adds to a commit at most: its record, its inputs, its log, what says when it runs out, and
/// its artifacts.
pub(crate) fn operations(job: &Job) -> usize {
    4 + job.stored_artifacts().count()
}
