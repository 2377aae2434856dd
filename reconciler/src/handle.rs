//! The handle through which every command enters. Requests of runners and workers are in files of their own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{NaiveDate, TimeDelta};
use model::decide::{
    Again, ApproveRemoval, Cancel, CreateRegistration, CreateToken, EndJob, Loss, NewRegistration,
    NewToken, NoteUse, Once, Refusal, RegenerateToken, RemoveRunner, Resume, RevokeToken,
    SeeSession, Suspend, check_dispatch, check_rerun, repeated_dispatch,
};
use model::limits::{SESSION_SEEN, WORKER_LAST_WORDS};
use model::retention::RetentionSettings;
use model::{
    Actor, BrowserSession, Clock, Entropy, IdempotencyKey, Inputs, Job, JobId, RunnerId,
    SealingKeys, SessionId, SourceName, Timestamp, Token, TokenId, WorkflowId,
};
use serde_json::Value;
use state::{AuditEntry, PayloadError, State, SubmitError};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use workflow::InputValue;

use crate::artifact_progress::Progresses;
use crate::blobs::{BlobSettings, Blobs};
use crate::board::{Board, Now};
use crate::error::{DispatchError, SourceError};
use crate::evaluations::Evaluations;
use crate::git::Access;
use crate::jumps::Jumps;
use crate::limits::{DISPATCH_TRIES, FILE_STREAMS, NOTE_REST};
use crate::presence::Presence;
use crate::refused_sign_ins::RefusedSignIns;
use crate::sign_in_links::SignInLinks;
use crate::source::SourceHandle;

/// Every command enters here. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    state: State,
}

/// The revision that a job runs that is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RerunOf {
    SameRevision,
    ActiveRevision,
}

struct Shared {
    clock: Arc<dyn Clock>,
    entropy: Mutex<Box<dyn Entropy>>,
    board: Mutex<Board>,
    board_woken: Notify,
    evaluations: Arc<Evaluations>,
    presence: Mutex<Presence>,
    jumps: Mutex<Jumps>,
    clock_jumped: Notify,
    artifacts: Mutex<Progresses>,
    sign_in_links: Mutex<SignInLinks>,
    refused_sign_ins: Mutex<RefusedSignIns>,
    refused_sign_in: Notify,
    /// When jobs were ended other than by their workers, by the steady clock.
    ended: Mutex<HashMap<JobId, Timestamp>>,
    /// When uses were to be noted lately.
    notes: Mutex<HashMap<Use, Instant>>,
    removals: Arc<tokio::sync::Mutex<()>>,
    retention: RetentionSettings,
    log_limit: u64,
    blobs: Blobs,
    sources: HashMap<SourceName, SourceHandle>,
    file_streams: Arc<Semaphore>,
    secret_keys: Option<SealingKeys>,
    /// Errors of runners in which a secret was hidden.
    masked: AtomicU64,
    stopping: watch::Sender<bool>,
}

/// A use to be noted, with what the record says of the last one. Once it is noted, the record says something else.
#[derive(PartialEq, Eq, Hash)]
enum Use {
    Token(TokenId, Option<NaiveDate>),
    Session(SessionId, Timestamp),
}

/// What jobs and projects may have at most.
pub(crate) struct Limits {
    /// The longest log of a job, in bytes.
    pub(crate) log: u64,
    pub(crate) blobs: BlobSettings,
}

/// Requests of users.
impl Handle {
    /// The state, for reading.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same handle for one request of a person, each of whose commits has a line in the audit log.
    #[must_use]
    pub fn audited(&self, entry: AuditEntry) -> Self {
        Self {
            state: self.state.audited(entry),
            ..self.clone()
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Starts a job of a scan. When this returns, the job is durable.
    pub async fn dispatch(
        &self,
        workflow: WorkflowId,
        scan: &str,
        given: &BTreeMap<String, Value>,
        actor: Actor,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Arc<Job>, DispatchError> {
        let first = self
            .state()
            .read(|world| repeated_dispatch(world, idempotency.as_ref(), self.time(world)))?;
        if let Some(first) = first {
            return self.dispatched(first).await;
        }
        for _ in 0..DISPATCH_TRIES {
            let checked = self
                .state()
                .read(|world| check_dispatch(world, workflow, scan, given))?;
            let command = model::decide::Dispatch {
                workflow,
                scan: checked.scan,
                revision: checked.revision,
                inputs: Inputs::Inline(checked.inputs),
                actor: actor.clone(),
                idempotency: idempotency.clone(),
                again: None,
            };
            match self.state().dispatch(command).await {
                Err(PayloadError::Submit(SubmitError::Refused(Refusal::RevisionChanged {
                    ..
                }))) => {}
                answer => return self.dispatched(answer?).await,
            }
        }
        Err(DispatchError::KeepsChanging)
    }

    /// Runs a job again that is over: a new job with the same inputs, of the same revision or of the active one. When this
    /// returns, the job is durable.
    pub async fn rerun(
        &self,
        job: &Job,
        which: RerunOf,
        actor: Actor,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Arc<Job>, DispatchError> {
        let first = self
            .state()
            .read(|world| repeated_dispatch(world, idempotency.as_ref(), self.time(world)))?;
        if let Some(first) = first {
            return self.dispatched(first).await;
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
            let command = model::decide::Dispatch {
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
                }),
            };
            match self.state().dispatch(command).await {
                Err(PayloadError::Submit(SubmitError::Refused(Refusal::RevisionChanged {
                    ..
                }))) => {}
                answer => return self.dispatched(answer?).await,
            }
        }
        Err(DispatchError::KeepsChanging)
    }

    /// The last of the jobs that retry one another, from `job` on. If it is over, it stays the last one.
    async fn last_of_chain(&self, job: &Job) -> Result<Arc<Job>, DispatchError> {
        // What `job` was read as may be older than the state.
        let now = self.state().job(job.id).await?;
        let mut last = now.unwrap_or_else(|| Arc::new(job.clone()));
        while let Some(retry) = last.retried_by
            && let Some(retry) = self.state().job(retry).await?
        {
            last = retry;
        }
        Ok(last)
    }

    async fn dispatched(&self, job: JobId) -> Result<Arc<Job>, DispatchError> {
        self.state()
            .job(job)
            .await?
            .ok_or(DispatchError::Submit(SubmitError::Refused(
                Refusal::JobOver { job },
            )))
    }

    /// Cancels an unfinished job.
    pub async fn cancel(&self, job: JobId, actor: Actor) -> Result<Arc<Job>, SubmitError> {
        let job = self.state().submit(Cancel { job, actor }).await?;
        self.note_end(job.id);
        Ok(job)
    }

    /// Lets nothing of a workflow or scan start. What is suspended already stays as it is.
    pub async fn suspend(&self, command: Suspend) -> Result<(), SubmitError> {
        self.state().submit(command).await
    }

    /// Lets a workflow or scan start jobs again. What is not suspended stays as it is.
    pub async fn resume(&self, command: Resume) -> Result<(), SubmitError> {
        self.state().submit(command).await
    }

    /// Asks a source for a look now. With `wait`, returns after that look.
    pub async fn sync_source(&self, name: &SourceName, wait: bool) -> Result<(), SourceError> {
        let source = self
            .shared
            .sources
            .get(name)
            .ok_or_else(|| SourceError::NoSuchSource { name: name.clone() })?;
        let request = source.request();
        if !wait {
            return Ok(());
        }
        tokio::select! {
            () = source.honoured(request) => Ok(()),
            () = self.stopping() => Err(SourceError::Stopping),
        }
    }

    /// Lets the next look apply a tip although it retires that many workflows.
    pub async fn approve_removal(&self, command: ApproveRemoval) -> Result<(), SubmitError> {
        self.state().submit(command).await
    }

    /// When a source's repository was last read successfully, since the daemon started.
    pub fn source_checked_at(&self, name: &SourceName) -> Option<Timestamp> {
        self.shared
            .sources
            .get(name)
            .and_then(SourceHandle::checked_at)
    }

    /// How the repository of a configured source is reached.
    pub fn source_access(&self, name: &SourceName) -> Option<&Access> {
        self.shared.sources.get(name).map(SourceHandle::access)
    }

    /// Makes a registration token.
    pub async fn create_registration(
        &self,
        key: Option<IdempotencyKey>,
    ) -> Result<NewRegistration, SubmitError> {
        let command = CreateRegistration;
        self.state().submit(Once { command, key }).await
    }

    /// Makes a personal access token.
    pub async fn create_token(
        &self,
        command: CreateToken,
        key: Option<IdempotencyKey>,
    ) -> Result<NewToken, SubmitError> {
        self.state().submit(Once { command, key }).await
    }

    /// Gives a token a new secret.
    pub async fn regenerate_token(
        &self,
        command: RegenerateToken,
        key: Option<IdempotencyKey>,
    ) -> Result<NewToken, SubmitError> {
        let token = command.token;
        let command = Once { command, key };
        self.state().end_secret(token, command).await
    }

    /// Notes that a session was used, if that was not noted within the hour. Nobody waits for it.
    pub fn note_session(&self, session: &BrowserSession) {
        let now = self.state().read(|world| self.time(world));
        if now - session.seen_at < SESSION_SEEN {
            return;
        }
        if !self.begins_note(Use::Session(session.id, session.seen_at)) {
            return;
        }
        let session = session.id;
        let state = self.state().clone();
        tokio::spawn(async move {
            if let Err(error) = state.submit(SeeSession { session }).await {
                tracing::debug!(%error, "the use of a session is not noted");
            }
        });
    }

    /// Whether to note a use now, and not because it was tried a moment ago: requests come faster than a full disk takes
    /// notes.
    fn begins_note(&self, of: Use) -> bool {
        let now = Instant::now();
        let mut notes = lock(&self.shared.notes);
        notes.retain(|_, begun| now - *begun < NOTE_REST);
        let is_first = !notes.contains_key(&of);
        if is_first {
            notes.insert(of, now);
        }
        is_first
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, revoke: RevokeToken) -> Result<(), SubmitError> {
        self.state().end_secret(revoke.token, revoke).await
    }

    /// Notes that a token was used today. Nobody waits for it.
    pub fn note_use(&self, token: &Token) {
        let day = self.now().date_naive();
        if token.last_used == Some(day) {
            return;
        }
        let note = NoteUse {
            token: token.id,
            day,
        };
        if !self.begins_note(Use::Token(token.id, token.last_used)) {
            return;
        }
        let expiring = token.expires_at.filter(|_| token.expires_soon(self.now()));
        let (state, token) = (self.state().clone(), token.name.clone());
        tokio::spawn(async move {
            match (state.submit(note).await, expiring) {
                (Ok(()), Some(end)) => {
                    tracing::warn!(token, %end, "a token that is in use expires soon");
                }
                (Ok(()), None) => {}
                (Err(error), _) => {
                    tracing::debug!(token, %error, "the use of a token is not noted");
                }
            }
        });
    }

    /// Removes a runner. Its jobs are lost.
    pub async fn remove_runner(&self, runner: RunnerId) -> Result<(), SubmitError> {
        self.state().submit(RemoveRunner { runner }).await?;
        self.board().forget(runner);
        self.lose(runner, |_, _| true).await
    }

    /// When a runner last contacted the daemon since its start.
    pub fn runner_heard_at(&self, runner: RunnerId) -> Option<Timestamp> {
        self.presence().last(runner)
    }

    /// Whether a runner has contacted the daemon recently.
    pub fn is_connected(&self, runner: RunnerId) -> bool {
        self.presence().is_connected(runner, Instant::now())
    }

    /// How many requests for work wait for a job.
    pub fn waiting_polls(&self) -> usize {
        self.board().waiting()
    }

    /// Whether the daemon is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.shared.stopping.borrow()
    }

    /// The jobs that each runner holds, by its newest poll since the daemon started.
    pub fn jobs_in_hand(&self) -> Arc<HashMap<RunnerId, BTreeSet<JobId>>> {
        self.board().holding()
    }
}

/// For the tasks and the other files of commands.
impl Handle {
    pub(crate) fn new(
        state: State,
        clock: Arc<dyn Clock>,
        entropy: Box<dyn Entropy>,
        sources: &[SourceHandle],
        secret_keys: Option<SealingKeys>,
        retention: RetentionSettings,
        limits: Limits,
    ) -> Self {
        let sources = sources
            .iter()
            .map(|source| (source.name().clone(), source.clone()))
            .collect();
        let jumps = state.read(|world| {
            let noted = world.clocks().map(|clocks| &**clocks);
            Jumps::noted(noted, clock.steady())
        });
        Self {
            state,
            shared: Arc::new(Shared {
                clock,
                entropy: Mutex::new(entropy),
                board: Mutex::default(),
                board_woken: Notify::new(),
                evaluations: Arc::default(),
                presence: Mutex::new(Presence::new(Instant::now())),
                jumps: Mutex::new(jumps),
                clock_jumped: Notify::new(),
                artifacts: Mutex::default(),
                sign_in_links: Mutex::default(),
                refused_sign_ins: Mutex::default(),
                refused_sign_in: Notify::new(),
                ended: Mutex::default(),
                notes: Mutex::default(),
                removals: Arc::default(),
                retention,
                log_limit: limits.log,
                blobs: Blobs::with(limits.blobs),
                sources,
                file_streams: Arc::new(Semaphore::new(FILE_STREAMS)),
                secret_keys,
                masked: AtomicU64::new(0),
                stopping: watch::Sender::new(false),
            }),
        }
    }

    /// Counts an error of a runner in which the daemon has hidden a secret.
    pub(crate) fn note_masked(&self) {
        self.shared.masked.fetch_add(1, Ordering::Relaxed);
    }

    /// Errors of runners in which the daemon had to hide a secret, since its start.
    pub fn masked_errors(&self) -> u64 {
        self.shared.masked.load(Ordering::Relaxed)
    }

    pub(crate) fn removal_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.shared.removals.clone()
    }

    /// How much of the past is kept.
    pub(crate) fn retention(&self) -> &RetentionSettings {
        &self.shared.retention
    }

    /// The longest log of a job, in bytes.
    pub(crate) fn log_limit(&self) -> u64 {
        self.shared.log_limit
    }

    pub(crate) fn source(&self, name: &SourceName) -> Option<&SourceHandle> {
        self.shared.sources.get(name)
    }

    /// Room for those that read files of repositories at the same time.
    pub(crate) fn file_streams(&self) -> Arc<Semaphore> {
        self.shared.file_streams.clone()
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.shared.blobs
    }

    /// The keys for secrets, if the daemon has them.
    pub(crate) fn secret_keys(&self) -> Option<&SealingKeys> {
        self.shared.secret_keys.as_ref()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock.clone()
    }

    /// Ends a job. If it has ended meanwhile, nothing changes.
    pub(crate) async fn end(&self, job: JobId, loss: Loss) -> Result<(), SubmitError> {
        match self.state().end(EndJob::new(job, loss)).await {
            Ok(job) => {
                if job.state.is_terminal() {
                    self.note_end(job.id);
                }
                Ok(())
            }
            Err(SubmitError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records that a job was ended other than by its worker. The worker may still add to its log.
    fn note_end(&self, job: JobId) {
        let now = self.clock().steady();
        let mut ended = lock(&self.shared.ended);
        ended.retain(|_, at| now - *at < WORKER_LAST_WORDS);
        ended.insert(job, now);
        drop(ended);
        self.state().logs().ended(job);
    }

    /// How long ago such a job was ended, if that is recent.
    pub(crate) fn ended_ago(&self, job: JobId) -> Option<TimeDelta> {
        let at = lock(&self.shared.ended).get(&job).copied()?;
        Some(self.clock().steady() - at)
    }

    /// Records that a runner has contacted the daemon.
    pub(crate) fn heard(&self, runner: RunnerId) {
        let now = self.now();
        self.presence().heard(runner, now, Instant::now());
    }

    /// Lets the board answer polls, and returns when to call this again. Only the task of offers calls it, so that it
    /// always knows when the next offer expires or the next delayed job is due.
    pub(crate) fn assign(&self) -> Option<Instant> {
        let mut entropy = self.entropy();
        self.state().read(|world| {
            let now = Now {
                steady: Instant::now(),
                time: self.time(world),
            };
            self.board().assign(world, now, &mut **entropy)
        })
    }

    /// Wakes the task of offers.
    pub(crate) fn wake_board(&self) {
        self.shared.board_woken.notify_one();
    }

    pub(crate) fn evaluations(&self) -> &Arc<Evaluations> {
        &self.shared.evaluations
    }

    pub(crate) async fn board_woken(&self) {
        self.shared.board_woken.notified().await;
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.shared.board)
    }

    pub(crate) fn jumps(&self) -> MutexGuard<'_, Jumps> {
        lock(&self.shared.jumps)
    }

    /// Wakes the task that keeps time after a jump of the clock.
    pub(crate) fn clock_jumped(&self) -> &Notify {
        &self.shared.clock_jumped
    }

    pub(crate) fn artifacts(&self) -> MutexGuard<'_, Progresses> {
        lock(&self.shared.artifacts)
    }

    pub(crate) fn sign_in_links(&self) -> MutexGuard<'_, SignInLinks> {
        lock(&self.shared.sign_in_links)
    }

    pub(crate) fn refused_sign_ins(&self) -> MutexGuard<'_, RefusedSignIns> {
        lock(&self.shared.refused_sign_ins)
    }

    /// Wakes with the first refused sign-in of a minute.
    pub(crate) fn refused_sign_in(&self) -> &Notify {
        &self.shared.refused_sign_in
    }

    pub(crate) fn entropy(&self) -> MutexGuard<'_, Box<dyn Entropy>> {
        lock(&self.shared.entropy)
    }

    /// Leases as they stand now. After a standstill of the daemon they all begin anew.
    pub(crate) fn presence(&self) -> MutexGuard<'_, Presence> {
        let mut presence = lock(&self.shared.presence);
        if let Some(late) = presence.notice_standstill(Instant::now()) {
            tracing::warn!(
                late_seconds = late.as_secs(),
                "the daemon or its machine stood still: the silence of runners is counted anew"
            );
        }
        presence
    }
}

/// The shutdown.
impl Handle {
    /// Answers every held poll without a message and ends every held read, because the daemon is stopping.
    pub fn drain(&self) {
        self.board().close();
        self.shared.stopping.send_replace(true);
    }

    /// Waits until the daemon is stopping.
    pub async fn stopping(&self) {
        let mut stopping = self.shared.stopping.subscribe();
        // The sender lives as long as this handle.
        drop(stopping.wait_for(|stopping| *stopping).await);
    }
}

/// Inputs of a job as somebody would give them to another one.
fn as_given(inputs: &BTreeMap<String, InputValue>) -> BTreeMap<String, Value> {
    let given = inputs.iter();
    given
        // An input is a text or a plain value, which are always JSON.
        .map(|(key, value)| (key.clone(), serde_json::to_value(value).unwrap_or_default()))
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
