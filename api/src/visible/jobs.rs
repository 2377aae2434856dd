//! Jobs as the caller sees them, with their logs and artifacts.

use std::collections::BTreeMap;

use model::limits::ID_PART_DIGITS;
use model::{Job, JobId, JobIdPart, NoJobIdPart, Reason, Scope, World};
use reconciler::ArtifactProgress;
use state::{
    Download, JobFilter, JobPage, LogFilter, LogMatches, LogSearch, LogStream, ZipEntry, ZipProblem,
};
use tokio::sync::watch;
use wire::ErrorCode;
use workflow::InputValue;

use super::{Shown, ShownJob, Visible};
use crate::failure::{Failure, shorten};
use crate::limits::{CANDIDATES, LISTS_AT_ONCE, LISTS_OF_SHARE, NAMED_JOBS};
use crate::turns::{Turn, Turns};

impl Visible {
    pub(crate) async fn job(&self, id: JobId) -> Result<ShownJob, Failure> {
        let job = self.state().job(id).await?;
        let rights = self.rights();
        match job {
            Some(job) if rights.sees(job.project) => Ok(Shown(job)),
            Some(job) => Err(self
                .without_role(|_| Some(job.project))
                .unwrap_or_else(|| Failure::no_such_job(id))),
            None => Err(Failure::no_such_job(id)),
        }
    }

    /// A job by its id, or by the first or last digits of the id.
    pub(crate) async fn job_named(&self, text: &str) -> Result<ShownJob, Failure> {
        if let Ok(id) = text.parse() {
            return self.job(id).await;
        }
        let part: JobIdPart = text.parse().map_err(|error| {
            let failure = Failure::not_found("job", text);
            match error {
                NoJobIdPart::NotHexadecimal => failure,
                NoJobIdPart::TooShort => failure.hint(format!(
                    "give the whole id, or at least {ID_PART_DIGITS} of its first or last digits"
                )),
            }
        })?;
        let turn = self.list_turn().await;
        let mut named = self.jobs_with(&part, None, CANDIDATES + 1).await?;
        drop(turn);
        if named.len() > 1 {
            return Err(ambiguous(text, &named));
        }
        named.pop().ok_or_else(|| {
            Failure::not_found("job", text).hint(format!(
                "give its first or last digits, which `everscan job list` shows; they find unfinished jobs and the newest \
                 {NAMED_JOBS} finished ones; an older job needs its whole id"
            ))
        })
    }

    /// Callers that only start or cancel jobs learn nothing else of them.
    pub(crate) fn reads_jobs(&self) -> bool {
        self.rights().scopes.allow(Scope::JobRead)
    }

    /// Waits for the turn to make a list that reads histories.
    pub(crate) async fn list_turn(&self) -> Turn {
        static TURNS: Turns = Turns::new(LISTS_AT_ONCE, LISTS_OF_SHARE);
        TURNS.wait(self.principal().share()).await
    }

    /// Jobs whose ids begin or end with some digits, newest first, among the unfinished and the newest finished ones.
    pub(crate) async fn jobs_with(
        &self,
        part: &JobIdPart,
        before: Option<JobId>,
        most: usize,
    ) -> Result<Vec<ShownJob>, Failure> {
        // Read the unfinished jobs first: a job that ends between the two reads is then in both lists. In the other order it
        // would be in neither list.
        let unfinished: Vec<JobId> = self.read(|seen| seen.jobs().map(|job| job.id).collect());
        let projects = &self.rights().projects;
        let finished = self.state().newest_finished(projects, NAMED_JOBS).await?;
        let mut ids: Vec<JobId> = unfinished.into_iter().chain(finished).collect();
        ids.retain(|id| part.is_of(*id) && before.is_none_or(|before| *id < before));
        ids.sort_unstable();
        ids.dedup();
        let mut found = Vec::new();
        for id in ids.into_iter().rev() {
            if found.len() == most {
                break;
            }
            match self.job(id).await {
                Ok(job) => found.push(job),
                // The job was removed, but its line is still in the history.
                Err(failure) if failure.code == ErrorCode::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(found)
    }

    /// Jobs, newest first, and where the next page begins.
    pub(crate) async fn jobs(
        &self,
        filter: JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<(Vec<ShownJob>, JobPage), Failure> {
        let filter = JobFilter {
            projects: self.rights().projects,
            ..filter
        };
        let mut page = self.state().jobs(&filter, before, limit).await?;
        let jobs = std::mem::take(&mut page.jobs);
        Ok((jobs.into_iter().map(Shown).collect(), page))
    }

    pub(crate) fn job_changed(&self, job: &ShownJob) -> watch::Receiver<()> {
        self.state().job_changed(job.id)
    }

    /// The inputs from their own file, if they are not in the record of the job.
    pub(crate) async fn inputs(
        &self,
        job: &ShownJob,
    ) -> Result<BTreeMap<String, InputValue>, Failure> {
        Ok(self.state().inputs(job).await?)
    }

    /// Why a scheduled job has not started.
    pub(crate) fn why_waiting(&self, job: &Job) -> Option<Reason> {
        let reason = self.handle.why_waiting(job)?;
        let seen = |world: &World| {
            let rights = self.rights_in(world);
            world.seen_by(&rights).reason_of_waiting(reason)
        };
        Some(self.state().read(seen))
    }

    pub(crate) fn artifact_progress(&self, job: &ShownJob) -> Option<ArtifactProgress> {
        self.handle.runners().artifact_progress(job)
    }

    /// Finished jobs. None where no id was given or the job was removed.
    pub(crate) async fn finished_jobs(
        &self,
        ids: &Shown<Vec<Option<JobId>>>,
    ) -> Result<Vec<Option<Job>>, Failure> {
        let known: Vec<JobId> = ids.iter().copied().flatten().collect();
        let mut jobs = self.state().finished_jobs(&known).await?.into_iter();
        let rights = self.rights();
        let sees = |job: &Job| rights.sees(job.project);
        let found = ids
            .iter()
            .map(|id| id.and_then(|_| jobs.next().flatten()).filter(sees));
        Ok(found.collect())
    }

    pub(crate) async fn log_records(&self, job: &ShownJob) -> Result<u64, Failure> {
        Ok(self.state().logs().records(job.id).await?)
    }

    pub(crate) fn log(&self, job: &ShownJob, from: u64) -> LogStream {
        self.state().logs().stream(job.id, from)
    }

    /// The number of the first of the last `count` records that match the filter.
    pub(crate) async fn begin_of_last(
        &self,
        job: &ShownJob,
        filter: LogFilter,
        count: u64,
    ) -> Result<u64, Failure> {
        let logs = self.state().logs();
        Ok(logs.begin_of_last(job.id, filter, count).await?)
    }

    pub(crate) async fn search_log(
        &self,
        job: &ShownJob,
        wanted: LogSearch,
    ) -> Result<LogMatches, Failure> {
        Ok(self.state().logs().search(job.id, wanted).await?)
    }

    /// Wakes whenever the log of a job has grown. Closed when the log will not grow any more.
    pub(crate) fn log_growth(&self, job: &ShownJob) -> watch::Receiver<()> {
        self.state().logs().subscribe(job.id)
    }

    /// Marks that the log will not grow. From now on the stream reports damage.
    pub(crate) fn mark_damage(&self, log: &mut LogStream) {
        self.state().logs().mark_damage(log);
    }

    pub(crate) async fn settled(&self) -> Result<(), Failure> {
        Ok(self.state().settled().await?)
    }

    /// None if the file was removed.
    pub(crate) async fn open_artifact(
        &self,
        job: &ShownJob,
        name: &str,
    ) -> Result<Option<Download>, Failure> {
        Ok(self.state().open_artifact(job.id, name).await?)
    }

    /// Passes the files in an artifact to `visit`. None if the artifact's file was removed.
    pub(crate) async fn artifact_entries<T: Send + 'static>(
        &self,
        job: &ShownJob,
        name: &str,
        collected: T,
        visit: impl Fn(&mut T, ZipEntry) + Send + 'static,
    ) -> Result<Option<Result<T, ZipProblem>>, Failure> {
        let state = self.state();
        Ok(state
            .artifact_entries(job.id, name, collected, visit)
            .await?)
    }
}

/// The problem if a part of an id belongs to several jobs, newest first.
fn ambiguous(part: &str, jobs: &[ShownJob]) -> Failure {
    let shown = jobs.iter().take(CANDIDATES).map(|job| {
        let (scan, state) = (&job.scan, job.state.name());
        format!("{} ({scan}, {state})", job.id)
    });
    let shown: Vec<String> = shown.collect();
    let more = if jobs.len() > CANDIDATES {
        " and more"
    } else {
        ""
    };
    let named = format!("give more of it: {}{more}", shown.join(", "));
    let text = format!(
        "the ids of several jobs begin or end with `{}`",
        shorten(part)
    );
    Failure::new(ErrorCode::AmbiguousName, text)
        .hint("give more of it, or the whole id")
        .names(Scope::JobRead, named)
}
