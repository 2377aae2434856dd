//! Starting jobs for people, and cancelling them.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::decide::{
    Again, Cancel, Dispatch, Refusal, check_dispatch, check_rerun, repeated_dispatch,
};
use model::{Actor, IdempotencyKey, Inputs, Job, JobId, WorkflowId};
use serde_json::Value;
use state::{PayloadError, SubmitError};
use workflow::InputValue;

use crate::error::DispatchError;
use crate::handle::Handle;
use crate::limits::DISPATCH_TRIES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RerunOf {
    SameRevision,
    ActiveRevision,
}

impl Handle {
    /// Starts a job of a scan. The job is durable when this returns.
    pub async fn dispatch(
        &self,
        workflow: WorkflowId,
        scan: &str,
        given: &BTreeMap<String, Value>,
        actor: Actor,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Arc<Job>, DispatchError> {
        if let Some(first) = self.first_dispatch(idempotency.as_ref()).await? {
            return Ok(first);
        }
        for _ in 0..DISPATCH_TRIES {
            let checked = self
                .state()
                .read(|world| check_dispatch(world, workflow, scan, given))?;
            let command = Dispatch {
                workflow,
                scan: checked.scan,
                revision: checked.revision,
                inputs: Inputs::Inline(checked.inputs),
                actor: actor.clone(),
                idempotency: idempotency.clone(),
                again: None,
            };
            if let Some(job) = self.try_dispatch(command).await? {
                return Ok(job);
            }
        }
        Err(DispatchError::KeepsChanging)
    }

    /// Runs a finished job again: creates a job with the same inputs, of the same revision or of the active revision.
    /// The new job is durable when this returns.
    pub async fn rerun(
        &self,
        job: &Job,
        which: RerunOf,
        actor: Actor,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Arc<Job>, DispatchError> {
        if let Some(first) = self.first_dispatch(idempotency.as_ref()).await? {
            return Ok(first);
        }
        let last = self.last_of_chain(job).await?;
        self.state().read(|world| check_rerun(world, job, &last))?;
        let inputs = self.state().inputs(job).await?;
        for _ in 0..DISPATCH_TRIES {
            let (revision, inputs, earlier, source) = match which {
                RerunOf::SameRevision => {
                    let earlier = self.state().revision_of(job).await?;
                    let source = job.source.clone();
                    (job.revision.id, inputs.clone(), Some(earlier), source)
                }
                RerunOf::ActiveRevision => {
                    let given = as_given(&inputs);
                    let checked = self.state().read(|world| {
                        check_rerun(world, job, &last)?;
                        check_dispatch(world, job.workflow.id, job.scan.as_str(), &given)
                    })?;
                    (checked.revision, checked.inputs, None, None)
                }
            };
            let command = Dispatch {
                workflow: job.workflow.id,
                scan: job.scan.clone(),
                revision,
                inputs: Inputs::Inline(inputs),
                actor: actor.clone(),
                idempotency: idempotency.clone(),
                again: Some(Again {
                    job: job.id,
                    revision: earlier,
                    source,
                    callback: job.callback.clone(),
                }),
            };
            if let Some(job) = self.try_dispatch(command).await? {
                return Ok(job);
            }
        }
        Err(DispatchError::KeepsChanging)
    }

    /// The job of an earlier request with the same idempotency key.
    async fn first_dispatch(
        &self,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<Option<Arc<Job>>, DispatchError> {
        let first = self
            .state()
            .read(|world| repeated_dispatch(world, idempotency, self.time(world)))?;
        match first {
            Some(first) => Ok(Some(self.dispatched(first).await?)),
            None => Ok(None),
        }
    }

    /// None if the revision has changed since the inputs were checked.
    async fn try_dispatch(&self, command: Dispatch) -> Result<Option<Arc<Job>>, DispatchError> {
        match self.state().dispatch(command).await {
            Err(PayloadError::Submit(SubmitError::Refused(Refusal::RevisionChanged {
                ..
            }))) => Ok(None),
            answer => Ok(Some(self.dispatched(answer?).await?)),
        }
    }

    async fn dispatched(&self, job: JobId) -> Result<Arc<Job>, DispatchError> {
        let found = self.state().job(job).await?;
        found.ok_or(DispatchError::from(Refusal::JobOver { job }))
    }

    /// The last job of the chain of retries that begins with `job`. No retry is added after this job, if it has finished.
    async fn last_of_chain(&self, job: &Job) -> Result<Arc<Job>, DispatchError> {
        // `job` may be an older version of the stored record.
        let now = self.state().job(job.id).await?;
        let mut last = now.unwrap_or_else(|| Arc::new(job.clone()));
        while let Some(retry) = last.retried_by
            && let Some(retry) = self.state().job(retry).await?
        {
            last = retry;
        }
        Ok(last)
    }

    pub async fn cancel(&self, job: JobId, actor: Actor) -> Result<Arc<Job>, SubmitError> {
        let job = self.state().submit(Cancel { job, actor }).await?;
        self.runners().note_end(job.id);
        Ok(job)
    }
}

/// Converts the inputs of a job to the form of a request.
fn as_given(inputs: &BTreeMap<String, InputValue>) -> BTreeMap<String, Value> {
    let given = inputs.iter();
    given
        // An input is a string or a simple value and always converts to JSON.
        .map(|(key, value)| (key.clone(), serde_json::to_value(value).unwrap_or_default()))
        .collect()
}
