//! The daemon as the caller of a user's route sees it. Handlers of these routes get this and no handle, so none can
//! forget to ask whether the caller may see what it works on.

mod blobs;
mod commands;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use model::limits::ID_PART_DIGITS;
use model::retention::Position;
use model::{
    Actor, BlobLinkId, BrowserSession, Job, JobId, JobIdPart, NoJobIdPart, ProjectId, Reason,
    RevisionRecord, RevisionRef, Runner, RunnerId, ScanKey, Seen, SessionId, Source, Timestamp,
    TipRecord, Token, TokenHash, Viewer, WorkflowId, WorkflowRef, World, waiting,
};
use reconciler::{ArtifactProgress, Handle, Why};
use state::Seq;
use state::{
    AuditFilter, AuditPage, AuditPlace, Download, HistoryPage, JobFilter, JobPage, Ledger,
    LogFilter, LogMatches, LogSearch, LogStream, ReadError, StoredRevision, ZipEntry, ZipProblem,
};
use tokio::sync::watch;
use wire::ErrorCode;
use workflow::InputValue;

use crate::convert_source::LookedAt;
use crate::events::{Form, Hub, Listener, TooManyListeners, Wanted};
use crate::failure::{Failure, shorten};
use crate::limits::{
    CANDIDATES, LISTENER_WAIT, LISTENERS, LISTS_AT_ONCE, LISTS_OF_TOKEN, NAMED_JOBS,
    PROJECT_LISTENERS, TOKEN_LISTENERS, TOKEN_LOOK,
};
use crate::turns::{Turn, Turns};

/// The daemon, as far as a caller may see it and act on it.
#[derive(Clone)]
pub(crate) struct Visible {
    handle: Handle,
    token: Arc<Token>,
    secret: TokenHash,
    /// The session, if the caller has one instead of the token itself.
    session: Option<SessionId>,
    /// The link, if the caller has one instead.
    link: Option<BlobLinkId>,
    viewer: Arc<Viewer>,
    events: Arc<Hub>,
}

/// What was found through the eyes of a caller. Commands take nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown<T>(T);

impl<T> Shown<T> {
    /// What follows from it.
    pub(crate) fn map<U>(&self, follow: impl FnOnce(&T) -> U) -> Shown<U> {
        Shown(follow(&self.0))
    }
}

impl<T> Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why nothing more may be sent to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dismissed {
    /// The daemon is stopping.
    Stopping,
    /// The token is revoked, has expired or has another secret.
    Unauthorized,
}

/// A job that the caller may see.
pub(crate) type ShownJob = Shown<Arc<Job>>;

/// The caller.
impl Visible {
    /// What the holder of this secret sees. `token` must accept it.
    pub(crate) fn new(
        handle: &Handle,
        events: &Arc<Hub>,
        token: Arc<Token>,
        secret: TokenHash,
        session: Option<SessionId>,
    ) -> Self {
        Self {
            handle: handle.clone(),
            viewer: Arc::new(Viewer::from(&*token)),
            token,
            secret,
            session,
            link: None,
            events: events.clone(),
        }
    }

    /// The same for whoever has a link of the token.
    pub(crate) fn through(self, link: BlobLinkId) -> Self {
        Self {
            link: Some(link),
            ..self
        }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// What the caller may see and do.
    pub(crate) const fn viewer(&self) -> &Arc<Viewer> {
        &self.viewer
    }

    /// The session of the caller, if the caller is a browser.
    pub(crate) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The browsers that are signed in with the caller's token, the oldest session first.
    pub(crate) fn signed_in(&self) -> Vec<Arc<BrowserSession>> {
        self.handle.state().read(|world| {
            let sessions = world.signed_in(self.token.id, self.handle.time(world));
            sessions.into_iter().cloned().collect()
        })
    }

    /// Whether `token`, which is the caller's, still lets the caller in.
    fn is_let_in(&self, world: &World, token: &Token, now: Timestamp) -> bool {
        let is_open = |session| {
            let session = world.session(session);
            session.is_some_and(|session| session.is_valid(now))
        };
        token.accepts(&self.secret, now) && self.session.is_none_or(is_open)
    }

    /// The actor of what the caller changes.
    pub(crate) fn actor(&self) -> Actor {
        Actor::Token {
            id: self.token.id,
            name: self.token.name.clone(),
        }
    }

    /// Waits until nothing more may be sent to the caller.
    pub(crate) async fn dismissed(&self) -> Dismissed {
        tokio::select! {
            () = self.handle.stopping() => Dismissed::Stopping,
            () = self.token_ended() => Dismissed::Unauthorized,
        }
    }

    /// Waits until the daemon is stopping.
    pub(crate) async fn stopping(&self) {
        self.handle.stopping().await;
    }

    /// Waits until the token is revoked, has expired or has another secret.
    pub(crate) async fn token_ended(&self) {
        let mut changed = self.handle.state().token_changed(self.token.id);
        loop {
            changed.mark_unchanged();
            let life = self.handle.state().read(|world| {
                let now = self.handle.time(world);
                let token = world.token(self.token.id)?;
                self.is_let_in(world, token, now).then(|| {
                    let former = token.former.as_ref().filter(|it| it.hash == self.secret);
                    let ends = token
                        .expires_at
                        .into_iter()
                        .chain(former.map(|it| it.expires_at));
                    ends.min().and_then(|end| (end - now).to_std().ok())
                })
            });
            let Some(life) = life else {
                return;
            };
            // The clock with which ends are compared may be set, or the machine may sleep meanwhile.
            let life = life.map_or(TOKEN_LOOK, |life| life.min(TOKEN_LOOK));
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(life) => {}
            }
        }
    }
}

/// Reading.
impl Visible {
    /// Reads the world as the caller sees it.
    pub(crate) fn read<R>(&self, look: impl FnOnce(Seen<'_>) -> R) -> R {
        let state = self.handle.state();
        state.read(|world| look(world.seen_by(&self.viewer)))
    }

    /// Finds what a command is about.
    pub(crate) fn find<T>(
        &self,
        look: impl FnOnce(Seen<'_>) -> Result<T, Failure>,
    ) -> Result<Shown<T>, Failure> {
        self.read(look).map(Shown)
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.handle.now()
    }

    /// The time with which ends are compared.
    pub(crate) fn steady(&self) -> Timestamp {
        self.handle.steady()
    }

    /// A job by its id, unfinished or finished.
    pub(crate) async fn job(&self, id: JobId) -> Result<ShownJob, Failure> {
        let job = self.handle.state().job(id).await?;
        job.filter(|job| self.viewer.sees(job.project))
            .map(Shown)
            .ok_or_else(|| Failure::no_such_job(id))
    }

    /// A job by its id, or by the first or last digits of it.
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
                "give its first or last digits, which `everscan job list` shows; they find jobs that are not over and the newest \
                 {NAMED_JOBS} that are, and an older one needs its whole id"
            ))
        })
    }

    /// Waits until a list may be made that reads histories.
    pub(crate) async fn list_turn(&self) -> Turn {
        static TURNS: Turns = Turns::new(LISTS_AT_ONCE, LISTS_OF_TOKEN);
        TURNS.wait(self.token.id).await
    }

    /// Jobs whose ids begin or end with some digits, newest first: of those that are not over and the newest that are.
    pub(crate) async fn jobs_with(
        &self,
        part: &JobIdPart,
        before: Option<JobId>,
        most: usize,
    ) -> Result<Vec<ShownJob>, Failure> {
        // These first: a job that ends in between is then in both lists. In the other order it would be in neither.
        let unfinished: Vec<JobId> = self.read(|seen| seen.jobs().map(|job| job.id).collect());
        let finished = self.newest_finished().await?;
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
                // It was removed; its line is still there.
                Err(failure) if failure.code == ErrorCode::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(found)
    }

    /// The newest finished jobs by their lines in the histories. Some may have been removed.
    async fn newest_finished(&self) -> Result<Vec<JobId>, Failure> {
        let state = self.handle.state();
        let projects = &self.viewer.projects;
        Ok(state.newest_finished(projects, NAMED_JOBS).await?)
    }

    /// Jobs, newest first, and where the next page begins.
    pub(crate) async fn jobs(
        &self,
        filter: JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<(Vec<ShownJob>, JobPage), Failure> {
        let filter = JobFilter {
            projects: self.viewer.projects.clone(),
            ..filter
        };
        let mut page = self.handle.state().jobs(&filter, before, limit).await?;
        let jobs = std::mem::take(&mut page.jobs);
        Ok((jobs.into_iter().map(Shown).collect(), page))
    }

    /// Listens to events, from now on or from the commit after `after`.
    pub(crate) fn listen(
        &self,
        project: Option<ProjectId>,
        workflow: Option<WorkflowId>,
        job: Option<JobId>,
        form: Form,
        after: Option<Seq>,
    ) -> Result<Listener, Failure> {
        let wanted = Wanted {
            token: self.token.id,
            viewer: self.viewer.clone(),
            project,
            workflow,
            job,
            form,
        };
        let listener = self.events.listen(&self.handle, wanted, after);
        listener.map_err(|error| {
            let problem = match error {
                TooManyListeners::Token => {
                    format!("this token has {TOKEN_LISTENERS} listeners to events, the most that one may have")
                }
                TooManyListeners::Project => {
                    format!("{PROJECT_LISTENERS} listeners hear of this project alone, the most that may")
                }
                TooManyListeners::All => {
                    format!("there are {LISTENERS} listeners to events, the most that there may be")
                }
            };
            Failure::rate_limited(&problem, LISTENER_WAIT)
                .hint("one stream serves all tabs of a browser; close those that are not read")
        })
    }

    /// Wakes whenever anything has changed, also what the caller does not see.
    pub(crate) fn changed(&self) -> watch::Receiver<()> {
        self.handle.state().changed()
    }

    /// Wakes whenever the job has changed.
    pub(crate) fn job_changed(&self, job: &ShownJob) -> watch::Receiver<()> {
        self.handle.state().job_changed(job.id)
    }

    /// The inputs of a job, from their file if they are not in its record.
    pub(crate) async fn inputs(
        &self,
        job: &ShownJob,
    ) -> Result<BTreeMap<String, InputValue>, Failure> {
        Ok(self.handle.state().inputs(job).await?)
    }

    /// Why a scheduled job has not begun.
    pub(crate) fn why_waiting(&self, job: &Job) -> Option<Reason> {
        // Read before the world: the code that hands out jobs reads both in the other order.
        let in_hand = self.jobs_in_hand();
        let holding = |runner| in_hand.get(&runner);
        let ahead = self.handle.now() - self.handle.steady();
        self.handle.state().read(|world| {
            let is_connected = |runner| self.handle.runners().is_connected(runner);
            let is_suspended = world.suspension(&job.scan_key()).is_some();
            let time = self.handle.time(world);
            let retry = job.waits_for_its_time(time);
            let reason = match retry.filter(|_| !is_suspended) {
                Some(retry) => retry.by_clock(ahead),
                None => waiting(world, job, time, is_connected, holding)?,
            };
            Some(world.seen_by(&self.viewer).reason_of_waiting(reason))
        })
    }

    /// The artifact that a running job stores at this moment.
    pub(crate) fn artifact_progress(&self, job: &ShownJob) -> Option<ArtifactProgress> {
        self.handle.runners().artifact_progress(job)
    }

    /// A moment of the time with which ends are compared, by the wall clock.
    pub(crate) fn by_the_clock(&self, end: Timestamp) -> Timestamp {
        self.handle.by_the_clock(end)
    }

    /// How many records the log of a job has.
    pub(crate) async fn log_records(&self, job: &ShownJob) -> Result<u64, Failure> {
        Ok(self.handle.state().logs().records(job.id).await?)
    }

    /// The log of a job from a record on.
    pub(crate) fn log(&self, job: &ShownJob, from: u64) -> LogStream {
        self.handle.state().logs().stream(job.id, from)
    }

    /// The number of the record at which the last `count` of those begin that the filter takes.
    pub(crate) async fn begin_of_last(
        &self,
        job: &ShownJob,
        filter: LogFilter,
        count: u64,
    ) -> Result<u64, Failure> {
        let logs = self.handle.state().logs();
        Ok(logs.begin_of_last(job.id, filter, count).await?)
    }

    /// Searches the log of a job.
    pub(crate) async fn search_log(
        &self,
        job: &ShownJob,
        wanted: LogSearch,
    ) -> Result<LogMatches, Failure> {
        Ok(self.handle.state().logs().search(job.id, wanted).await?)
    }

    /// Wakes whenever the log of a job has grown; closed when it will not.
    pub(crate) fn log_growth(&self, job: &ShownJob) -> watch::Receiver<()> {
        self.handle.state().logs().subscribe(job.id)
    }

    /// The log will not grow: from now on damage is told.
    pub(crate) fn mark_damage(&self, log: &mut LogStream) {
        self.handle.state().logs().mark_damage(log);
    }

    /// Waits until what was committed is in its files.
    pub(crate) async fn settled(&self) -> Result<(), Failure> {
        Ok(self.handle.state().settled().await?)
    }

    /// The file of an artifact, if there is one.
    pub(crate) async fn open_artifact(
        &self,
        job: &ShownJob,
        name: &str,
    ) -> Result<Option<Download>, Failure> {
        Ok(self.handle.state().open_artifact(job.id, name).await?)
    }

    /// Lines of the audit log, newest first.
    pub(crate) async fn audit(
        &self,
        filter: &AuditFilter,
        from: Option<AuditPlace>,
        limit: usize,
    ) -> Result<AuditPage, Failure> {
        Ok(self.handle.state().audit(filter, from, limit).await?)
    }

    /// Lets `visit` collect what it needs of the files in an artifact; none if its file has been removed.
    pub(crate) async fn artifact_entries<T: Send + 'static>(
        &self,
        job: &ShownJob,
        name: &str,
        collected: T,
        visit: impl Fn(&mut T, ZipEntry) + Send + 'static,
    ) -> Result<Option<Result<T, ZipProblem>>, Failure> {
        let state = self.handle.state();
        Ok(state
            .artifact_entries(job.id, name, collected, visit)
            .await?)
    }

    /// Why a scan ran or did not.
    pub(crate) async fn why(
        &self,
        scan: &Shown<ScanKey>,
        at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Why, Failure> {
        Ok(self.handle.why(scan, at, limit).await?)
    }

    /// The revision that removed a scan.
    pub(crate) async fn removed_by(
        &self,
        scan: &Shown<ScanKey>,
    ) -> Result<Option<RevisionRef>, Failure> {
        Ok(self.handle.state().removed_by(scan).await?)
    }

    /// Finished jobs; none where there is no id, or the job is gone.
    pub(crate) async fn finished_jobs(
        &self,
        ids: &Shown<Vec<Option<JobId>>>,
    ) -> Result<Vec<Option<Job>>, Failure> {
        let known: Vec<JobId> = ids.iter().copied().flatten().collect();
        let mut jobs = self.handle.state().finished_jobs(&known).await?.into_iter();
        let sees = |job: &Job| self.viewer.sees(job.project);
        let found = ids
            .iter()
            .map(|id| id.and_then(|_| jobs.next().flatten()).filter(sees));
        Ok(found.collect())
    }

    /// A page of the lines of a scan's finished jobs.
    pub(crate) async fn history(
        &self,
        scan: &Shown<ScanKey>,
        before: Option<Position>,
        limit: usize,
    ) -> Result<HistoryPage, Failure> {
        Ok(self.handle.state().history(scan, before, limit).await?)
    }

    /// A page of a scan's ledger.
    pub(crate) async fn ledger(
        &self,
        scan: &Shown<ScanKey>,
        before: Option<Position>,
        limit: usize,
    ) -> Result<Ledger, Failure> {
        let state = self.handle.state();
        Ok(state.ledger(scan, None, before, limit).await?)
    }

    /// The revisions of a workflow, newest first.
    pub(crate) async fn revisions(
        &self,
        workflow: &Shown<WorkflowRef>,
    ) -> Result<Vec<RevisionRef>, Failure> {
        Ok(self.handle.state().revisions(workflow.id).await?)
    }

    /// The records of these revisions, as far as they can be read.
    pub(crate) async fn revision_records(
        &self,
        workflow: &Shown<WorkflowRef>,
        revisions: &[RevisionRef],
    ) -> Result<Vec<Option<RevisionRecord>>, Failure> {
        let state = self.handle.state();
        Ok(state.revision_records(workflow.id, revisions).await?)
    }

    /// A revision with its text.
    pub(crate) async fn revision_text(
        &self,
        workflow: &Shown<WorkflowRef>,
        revision: &RevisionRef,
    ) -> Result<StoredRevision, ReadError> {
        let state = self.handle.state();
        state.revision_text(workflow.id, revision).await
    }

    /// How the repository of a source is reached, and when it was last read.
    pub(crate) fn looked_at(&self, source: &Source) -> LookedAt<'_> {
        LookedAt {
            access: self.handle.sources().access(&source.name),
            checked_at: self.handle.sources().checked_at(&source.name),
        }
    }

    /// What was recorded of the newest tip of a source; none if there is no tip or the record cannot be read.
    pub(crate) async fn tip_record(&self, source: &Shown<Arc<Source>>) -> Option<TipRecord> {
        let tip = source.tip.as_ref()?;
        self.handle.state().tip_record(&source.name, tip).await
    }

    /// Whether a runner has contacted the daemon recently.
    pub(crate) fn is_connected(&self, runner: &Runner) -> bool {
        self.handle.runners().is_connected(runner.id)
    }

    /// The jobs that each runner holds, by its newest poll.
    pub(crate) fn jobs_in_hand(&self) -> Arc<HashMap<RunnerId, BTreeSet<JobId>>> {
        self.handle.runners().jobs_in_hand()
    }

    /// When a runner last contacted the daemon.
    pub(crate) fn heard_at(&self, runner: &Runner) -> Option<Timestamp> {
        self.handle.runners().heard_at(runner.id)
    }
}

/// The answer to a part of an id that several jobs have, newest first.
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
    let text = format!(
        "the ids of several jobs begin or end with `{}`",
        shorten(part)
    );
    Failure::new(ErrorCode::AmbiguousName, text)
        .hint(format!("give more of it: {}{more}", shown.join(", ")))
}
