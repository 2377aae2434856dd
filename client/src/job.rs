//! Jobs: listing, showing, waiting, removing and running them again.

use chrono::{DateTime, SecondsFormat, Utc};
use http::Method;
use uuid::Uuid;
use wire::{
    CancelJob, ChangedJob, DispatchResponse, Job, JobContext, JobState, Page, RerunJob, Trigger,
};

use crate::repetition::Patience;
use crate::route::Route;
use crate::{Client, Error};

/// Selects jobs. A field that is `None` does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Id, name, or `source/name` of a workflow.
    pub workflow: Option<String>,
    pub scan: Option<String>,
    pub state: Option<JobState>,
    pub trigger: Option<Trigger>,
    /// Name of the runner that executed it.
    pub runner: Option<String>,
    /// Code of the reason for its state.
    pub reason: Option<String>,
    /// Made at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Made before this time.
    pub until: Option<DateTime<Utc>>,
}

pub(crate) fn rfc3339(time: &DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(crate) fn job_route(id: Uuid) -> Route {
    Route::v0("jobs").id(id)
}

impl Client {
    /// One page of jobs, newest first: `GET /jobs`. `cursor` is the `next_cursor` of the previous page.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<Job>, Error> {
        let route = Route::v0("jobs")
            .with_some("workflow", filter.workflow.as_ref())
            .with_some("scan", filter.scan.as_ref())
            .with_some("state", filter.state.map(JobState::as_str))
            .with_some("trigger", filter.trigger.map(Trigger::as_str))
            .with_some("runner", filter.runner.as_ref())
            .with_some("reason", filter.reason.as_ref())
            .with_some("since", filter.since.as_ref().map(rfc3339))
            .with_some("until", filter.until.as_ref().map(rfc3339))
            .with_some("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    pub async fn job(&self, id: Uuid) -> Result<Job, Error> {
        self.get(&job_route(id)).answer().await
    }

    /// The same with what was sent about it, if the token has `notify:read`.
    pub async fn job_with_messages(&self, id: Uuid) -> Result<Job, Error> {
        self.get(&job_route(id).with("messages", true))
            .answer()
            .await
    }

    /// One job by the first or last digits of its id: `GET /jobs/{part}`.
    ///
    /// If several ids have this part, the call is refused with [`wire::ErrorCode::AmbiguousName`].
    pub async fn job_by_part(&self, part: &str) -> Result<Job, Error> {
        self.get(&Route::v0("jobs").name(part)?).answer().await
    }

    pub async fn job_context(&self, id: Uuid) -> Result<JobContext, Error> {
        self.get(&job_route(id).then("context")).answer().await
    }

    /// One job, like [`Client::job`], but waits for a restarting daemon.
    pub async fn job_patiently(&self, id: Uuid) -> Result<Job, Error> {
        self.get(&job_route(id))
            .patience(Patience::Wait)
            .answer()
            .await
    }

    /// Waits until the job has ended or the daemon ends the wait (after 50 s), and returns the job. Call again while the job is
    /// unfinished. A restart of the daemon does not end the wait.
    pub async fn await_job(&self, id: Uuid) -> Result<Job, Error> {
        self.get(&job_route(id).with("wait", true))
            .held()
            .patience(Patience::Wait)
            .answer()
            .await
    }

    /// Removes a finished job, with its log and artifacts: `DELETE /jobs/{id}`. `job` is its id or a part of it.
    ///
    /// An unfinished job is refused with [`wire::ErrorCode::IllegalTransition`].
    pub async fn delete_job(&self, job: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &Route::v0("jobs").name(job)?)
            .done()
            .await
    }

    /// Runs a finished job again, with the same revision or the active revision: `POST /jobs/{id}/rerun`. Returns the new job.
    /// Calls with the same idempotency key make one job, so this call is repeated if the daemon cannot be reached. `job` is the
    /// job's id or a part of it.
    pub async fn rerun_job(
        &self,
        job: &str,
        request: RerunJob,
        idempotency_key: &str,
    ) -> Result<ChangedJob, Error> {
        let response: DispatchResponse = self
            .call(Method::POST, &Route::v0("jobs").name(job)?.then("rerun"))
            .idempotent(idempotency_key)?
            .json(&request)?
            .answer()
            .await?;
        Ok(response.job)
    }

    /// Cancels a job: `POST /jobs/{id}/cancel`. Returns the cancelled job. `job` is its id or a part of it.
    ///
    /// A finished job is refused with [`wire::ErrorCode::IllegalTransition`].
    pub async fn cancel_job(&self, job: &str) -> Result<ChangedJob, Error> {
        self.call(Method::POST, &Route::v0("jobs").name(job)?.then("cancel"))
            .json(&CancelJob {})?
            .answer()
            .await
    }
}
