//! Tools for tests: a clock that is set by hand, seeded randomness, a world without a disk, and a whole reconciler on a
//! state in a temporary folder.

mod fakes;
mod lab;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use chrono::TimeDelta;
use model::decide::{Activate, ConfigureSource, CreateRegistration, RegisterRunner, Retire};
use model::limits::CYCLE_PAUSE;
use model::retention::RetentionSettings;
use model::{
    Actor, Job, JobId, PlainToken, Reason, RunnerId, SealingKey, SealingKeys, SourceName, Step,
    StepOutcome, StepStatus, Timestamp, WorkflowId, World,
};
use state::{Closing, OpenError, Options, State, mirrors_folder};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::{Instant, advance};
use uuid::Uuid;
use workflow::TemplatePolicy;

use self::fakes::Breakable;
pub(crate) use self::fakes::{Defect, HandClock, Seeded};
pub(crate) use self::lab::Lab;
use crate::blobs::BlobSettings;
use crate::limits::STANDSTILL;
use crate::{
    CallbackSettings, Handle, LOG_LIMIT, Message, Reconciler, RunnerSession, SourceConfig, Start,
    Upkeep, Worker,
};

/// A plain scan, a scan for runners with the label `gpu`, a scan with a `timeout`, and a scan with a retry.
pub(crate) const SCANS: &str = "
scans:
  plain:
    on: {dispatch: {}}
    steps: [{run: 'true'}]
  special:
    on: {dispatch: {}}
    runs_on: [gpu]
    steps: [{run: 'true'}]
  short:
    on: {dispatch: {}}
    timeout: 30m
    steps: [{run: 'true'}]
  again:
    on: {dispatch: {}}
    retry: {attempts: 2, backoff: 2s}
    steps: [{run: 'true'}]
";

/// Longer than the busiest machine needs; a test waits this long only when it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The time this many seconds after the start of the tests' time.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
}

/// A runner id made from a number.
pub(crate) fn runner(number: u128) -> RunnerId {
    RunnerId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn configure() -> ConfigureSource {
    ConfigureSource {
        name: source_name(),
        url: "/srv/recon.git".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    }
}

pub(crate) fn source_name() -> SourceName {
    "recon".parse().unwrap()
}

pub(crate) fn activate(name: &str, text: &str) -> Activate {
    let file = format!("workflows/{name}.yaml");
    let parsed = workflow::parse(&file, text, TemplatePolicy::Warn).unwrap();
    Activate {
        source: source_name(),
        name: name.to_owned(),
        file,
        commit: "c".repeat(40),
        text: text.into(),
        sha256: workflow::sha256(text.as_bytes()),
        definition: Arc::new(parsed.workflow),
        warnings: parsed.warnings,
    }
}

fn register(name: &str, capacity: u32, labels: &[&str], secret: &PlainToken) -> RegisterRunner {
    RegisterRunner {
        registration: secret.hash(),
        name: name.to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        exclusive: false,
        capacity,
        version: "1".to_owned(),
        replace: true,
    }
}

/// While this lives, paused time moves only when a test moves it. Otherwise time would run ahead whenever every task
/// waits, even for the committer's thread.
pub(crate) struct Frozen(#[expect(dead_code, reason = "held, never used")] mpsc::Sender<()>);

pub(crate) fn freeze() -> Frozen {
    let (held, released) = mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || released.recv().is_err());
    Frozen(held)
}

/// Opens the state in a folder, without a reconciler. Retries while the folder is in use: a child process that another
/// test has just started briefly holds a copy of the lock of a closed state.
pub(crate) async fn open_state(folder: &TempDir, clock: Arc<HandClock>) -> (State, Closing) {
    open_broken_state(folder, clock, &Arc::default()).await
}

async fn open_broken_state(
    folder: &TempDir,
    clock: Arc<HandClock>,
    defect: &Arc<Defect>,
) -> (State, Closing) {
    let began = std::time::Instant::now();
    loop {
        let opened = State::open(Options {
            root: folder.path().join("state"),
            allow_network: false,
            clock: clock.clone(),
            entropy: Box::new(Breakable(Seeded(1), defect.clone())),
            cycle_pause: CYCLE_PAUSE,
        });
        match opened.await {
            Err(OpenError::Store(error))
                if error.kind() == store::OpenErrorKind::InUse && began.elapsed() < PATIENCE =>
            {
                thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}

/// Waits until a state without users is closed.
pub(crate) async fn closed(closing: Closing) {
    let joined = tokio::task::spawn_blocking(|| closing.join());
    joined.await.unwrap().unwrap();
}

/// A reconciler on a state in a folder.
pub(crate) struct TestDaemon {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) defect: Arc<Defect>,
    pub(crate) handle: Handle,
    reconciler: Reconciler,
    closing: Closing,
}

impl TestDaemon {
    /// Opens a daemon in this folder, new or existing.
    pub(crate) async fn open(folder: &TempDir, seconds: i64, sources: Vec<SourceConfig>) -> Self {
        Self::keeping(folder, seconds, sources, RetentionSettings::default()).await
    }

    /// Opens a daemon with this retention.
    pub(crate) async fn keeping(
        folder: &TempDir,
        seconds: i64,
        sources: Vec<SourceConfig>,
        retention: RetentionSettings,
    ) -> Self {
        let key = SealingKey::random(&mut Seeded(3));
        Self::start(
            folder,
            seconds,
            sources,
            retention,
            key.into(),
            BlobSettings::default(),
            Upkeep::default(),
        )
        .await
    }

    /// Opens a daemon with these settings for blobs.
    pub(crate) async fn storing(folder: &TempDir, blobs: BlobSettings) -> Self {
        let key = SealingKey::random(&mut Seeded(3));
        Self::start(
            folder,
            0,
            Vec::new(),
            RetentionSettings::default(),
            key.into(),
            blobs,
            Upkeep::default(),
        )
        .await
    }

    /// Opens a daemon that checks this.
    pub(crate) async fn watching(folder: &TempDir, upkeep: Upkeep) -> Self {
        let key = SealingKey::random(&mut Seeded(3)).into();
        let (retention, blobs) = (RetentionSettings::default(), BlobSettings::default());
        Self::start(folder, 10, Vec::new(), retention, key, blobs, upkeep).await
    }

    /// Opens a daemon with these keys for secrets.
    pub(crate) async fn sealing(folder: &TempDir, keys: SealingKeys) -> Self {
        Self::start(
            folder,
            0,
            Vec::new(),
            RetentionSettings::default(),
            keys,
            BlobSettings::default(),
            Upkeep::default(),
        )
        .await
    }

    async fn start(
        folder: &TempDir,
        seconds: i64,
        sources: Vec<SourceConfig>,
        retention: RetentionSettings,
        keys: SealingKeys,
        blobs: BlobSettings,
        upkeep: Upkeep,
    ) -> Self {
        let clock = HandClock::at(seconds);
        let defect = Arc::default();
        let (state, closing) = open_broken_state(folder, clock.clone(), &defect).await;
        let reconciler = Reconciler::start(Start {
            state,
            mirrors: mirrors_folder(&folder.path().join("state")),
            sources,
            clock: clock.clone(),
            entropy: Box::new(Seeded(2)),
            secret_keys: Some(keys),
            retention,
            log_limit: LOG_LIMIT,
            blobs,
            callbacks: upkeep
                .callback_certificate
                .as_ref()
                .map(|_| CallbackSettings {
                    zones: Vec::new(),
                    authority: Some("https://ca.example".to_owned()),
                }),
            upkeep,
        })
        .await
        .unwrap();
        Self {
            clock,
            defect,
            handle: reconciler.handle(),
            reconciler,
            closing,
        }
    }

    /// Stops everything, as a regular stop of the daemon does.
    pub(crate) async fn close(self) {
        let Self {
            handle,
            reconciler,
            closing,
            clock: _,
            defect: _,
        } = self;
        reconciler.stop().await;
        drop(handle);
        closed(closing).await;
    }

    /// Ends everything, as a crash does.
    pub(crate) async fn crash(self) {
        let Self {
            handle,
            reconciler,
            closing,
            clock: _,
            defect: _,
        } = self;
        reconciler.crash().await;
        drop(handle);
        closed(closing).await;
    }

    /// Waits until the published world is as expected.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&World) -> bool) {
        let mut changes = self.handle.state().changed();
        while !self.handle.state().read(&is_so) {
            let changed = in_time(what, changes.changed()).await;
            assert!(changed.is_ok(), "the state closed before {what}");
        }
    }

    pub(crate) async fn activate(&self, name: &str) -> WorkflowId {
        let state = self.handle.state();
        state.submit(activate(name, SCANS)).await.unwrap();
        WorkflowId::derive(&source_name(), name)
    }

    pub(crate) async fn register(&self, name: &str, capacity: u32) -> (RunnerSession, PlainToken) {
        let registration = self
            .handle
            .state()
            .submit(CreateRegistration::default())
            .await
            .unwrap();
        let register = register(name, capacity, &[], &registration.secret);
        let new = self.handle.runners().register(register).await.unwrap();
        let secret = new.session.secret;
        (
            self.handle.runners().session(secret.hash()).unwrap(),
            secret,
        )
    }

    pub(crate) async fn dispatch(&self, workflow: WorkflowId, scan: &str) -> Arc<Job> {
        let given = BTreeMap::new();
        self.handle
            .dispatch(workflow, scan, &given, Actor::Daemon, None)
            .await
            .unwrap()
    }

    /// Polls for one offer.
    pub(crate) async fn offer(
        &self,
        runner: RunnerSession,
        holding: &[JobId],
    ) -> (JobId, PlainToken) {
        let capacity = u32::try_from(holding.len()).unwrap() + 1;
        let messages = self
            .handle
            .runners()
            .poll(runner, None, capacity, holding.to_vec());
        match in_time("an offer", messages).await.unwrap().as_slice() {
            [Message::Assigned(job, token)] => (*job, token.clone()),
            other => panic!("no single offer: {other:?}"),
        }
    }

    /// Dispatches a job of this scan and claims it for the runner.
    pub(crate) async fn run(
        &self,
        runner: RunnerSession,
        workflow: WorkflowId,
        scan: &str,
    ) -> Worker {
        let job = self.dispatch(workflow, scan).await.id;
        let (offered, token) = self.offer(runner, &[]).await;
        assert_eq!(offered, job);
        let worker = self.handle.worker(job, token.hash()).await.unwrap();
        self.handle.resolve(&worker, None).await.unwrap();
        self.handle.worker(job, token.hash()).await.unwrap()
    }

    /// The job, in any state.
    pub(crate) async fn job(&self, id: JobId) -> Arc<Job> {
        self.handle.state().job(id).await.unwrap().unwrap()
    }
}

/// The report of a successful first step.
pub(crate) fn succeeded() -> Step {
    Step {
        name: None,
        index: 0,
        status: StepStatus::Succeeded,
        outcome: Some(StepOutcome::Succeeded),
        exit_code: Some(0),
        error: None,
        started_at: None,
        finished_at: None,
    }
}

/// Waits for an event that should occur soon. A thread measures the patience, so that it ends even while time is
/// paused.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    let (_waiting, over) = mpsc::channel::<()>();
    let (late, is_late) = oneshot::channel();
    thread::spawn(move || {
        if over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            // The test may have ended.
            let _over = late.send(());
        }
    });
    tokio::select! {
        output = future => output,
        Ok(()) = is_late => panic!("{what} did not come"),
    }
}

/// Waits for the end of the job and returns the reason.
pub(crate) async fn end_of(daemon: &TestDaemon, job: JobId) -> Reason {
    daemon
        .until("the job's end", |world| world.job(job).is_none())
        .await;
    daemon.job(job).await.state.end().unwrap().reason.clone()
}

/// Moves both clocks, and lets every waiting task run. The deadlines are checked in steps, because otherwise the daemon
/// would seem to have stood still.
pub(crate) async fn pass(daemon: &TestDaemon, time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let step = left.min(STANDSTILL / 2);
        left -= step;
        jump(daemon, step).await;
        let checked = async {
            while daemon.handle.runners().presence().check_by() <= Instant::now() {
                tokio::task::yield_now().await;
            }
        };
        in_time("the check of the deadlines", checked).await;
    }
}

/// Moves both clocks at once, as when the daemon stands still.
pub(crate) async fn jump(daemon: &TestDaemon, time: Duration) {
    daemon.clock.set_forward(TimeDelta::from_std(time).unwrap());
    advance(time).await;
}

/// Triggers a check of the deadlines and waits for its end: the check ends a job that exists for this purpose.
pub(crate) async fn check_deadlines(daemon: &TestDaemon) {
    let workflow = daemon.activate("probe").await;
    let probe = daemon.dispatch(workflow, "plain").await.id;
    let state = daemon.handle.state();
    state.submit(Retire { workflow }).await.unwrap();
    assert_eq!(end_of(daemon, probe).await, Reason::Retired);
}
