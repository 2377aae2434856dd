//! Runs a runner in this process, gives it jobs, and shows the results.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use runner::{Configuration, HostEnvironment, Options, RegisteredAs, SessionError, Setup, Urgency};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::subscriber::DefaultGuard;
use uuid::Uuid;
use wire::{
    Assignment, CompleteJob, RegisteredRunner, ScanArtifact, ScanStep, StepOutcome, StepStatus,
    Stream, UploadOn,
};

use crate::fake_daemon::FakeDaemon;

/// Longer than the busiest machine needs. A passing test never waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Durations for which tests wait are short. Time limits of the runner are long.
pub(crate) const OPTIONS: Options = Options {
    grace: Duration::from_millis(400),
    answer: PATIENCE,
    clean_up: Duration::from_secs(60),
    full_pause: Duration::ZERO,
    ship_after: Duration::from_millis(10),
    artifact_progress: Duration::ZERO,
    silence: Duration::from_secs(100),
    session_allowance: Duration::ZERO,
    timeout_uploads: Duration::from_secs(60),
    final_report: Duration::from_secs(60),
    stopped_silence: PATIENCE,
    first_rest: Duration::from_millis(10),
    final_log: Duration::from_secs(60),
    supervisor_idle: PATIENCE,
    source_cache: 1024 * 1024,
};

pub(crate) struct Harness {
    pub(crate) daemon: FakeDaemon,
    pub(crate) home: TempDir,
    configuration: Configuration,
    shutdown: watch::Sender<Urgency>,
    session: JoinHandle<Result<(), SessionError>>,
    /// The runner's log. A test has one thread, so everything logged on it is the runner's.
    _logs: DefaultGuard,
}

impl Harness {
    pub(crate) async fn start() -> Self {
        Self::start_with(OPTIONS, 4).await
    }

    pub(crate) async fn start_with(options: Options, capacity: u32) -> Self {
        let daemon = FakeDaemon::start().await;
        let home = TempDir::new().unwrap();
        let log = Arc::new(File::create(home.path().join("log")).unwrap());
        let logs = tracing_subscriber::fmt().with_writer(log).finish();
        let logs = tracing::subscriber::set_default(logs);
        let configuration = configuration(&daemon, &home, capacity);
        let setup = setup(&home, configuration.clone(), options);
        let (shutdown, urgency) = watch::channel(Urgency::None);
        let session = tokio::spawn(runner::serve(setup, urgency));
        Self {
            daemon,
            home,
            configuration,
            shutdown,
            session,
            _logs: logs,
        }
    }

    /// The setup of a second process in the same folder.
    pub(crate) fn setup(&self) -> Setup {
        setup(&self.home, self.configuration.clone(), OPTIONS)
    }

    /// Runs one job and returns its completion.
    pub(crate) async fn run(&self, job: &Assignment) -> CompleteJob {
        self.daemon.offer(job.clone());
        self.daemon.completion(job.job_id).await
    }

    /// The lines of one stream of a job's log.
    pub(crate) fn lines(&self, job: &Assignment, stream: Stream) -> Vec<String> {
        let state = self.daemon.state();
        let records = state.logs.get(&job.job_id).into_iter().flatten();
        records
            .filter(|record| record.stream == stream)
            .map(|record| record.text.clone())
            .collect()
    }

    pub(crate) fn stdout(&self, job: &Assignment) -> Vec<String> {
        self.lines(job, Stream::Stdout)
    }

    pub(crate) fn on_urgency(&self, urgency: Urgency) {
        self.shutdown.send_replace(urgency);
    }

    /// Ends the runner without waiting for its jobs, and starts it again.
    pub(crate) async fn restart(&mut self) {
        self.on_urgency(Urgency::Abandon);
        let ended = tokio::time::timeout(PATIENCE, &mut self.session);
        ended.await.unwrap().unwrap().unwrap();
        let (shutdown, urgency) = watch::channel(Urgency::None);
        self.shutdown = shutdown;
        self.session = tokio::spawn(runner::serve(self.setup(), urgency));
    }

    pub(crate) async fn ended(self) -> Result<(), SessionError> {
        let ended = tokio::time::timeout(PATIENCE, self.session);
        ended.await.unwrap().unwrap()
    }

    /// What the runner has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap()
    }

    /// Waits until the runner has logged `text`.
    pub(crate) async fn logged(&self, text: &str) {
        let logged = async {
            while !self.log().contains(text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let logged = tokio::time::timeout(PATIENCE, logged).await;
        assert!(logged.is_ok(), "no {text:?} in {}", self.log());
    }

    /// Waits until the runner holds no job and has removed the files of earlier jobs.
    pub(crate) async fn idle(&self) {
        self.daemon
            .wait_for("an idle runner", |state| {
                let newest = state.polls.last()?;
                newest.holding.is_empty().then_some(())
            })
            .await;
    }

    /// The only spool file of a short job.
    pub(crate) fn spool_file(&self, job: &Assignment) -> PathBuf {
        let folder = runner::folder_of(self.home.path(), "test").unwrap();
        let folder = folder.join("spool").join(job.job_id.to_string());
        folder.join(format!("{:020}", 0))
    }

    /// The only file in the cache of repositories' files.
    pub(crate) fn cached_files(&self) -> PathBuf {
        let folder = runner::folder_of(self.home.path(), "test").unwrap();
        let mut entries = std::fs::read_dir(folder.join("sources")).unwrap();
        let file = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        file
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Visible names in the working directory.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.work()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    }
}

/// A registered runner.
pub(crate) fn configuration(daemon: &FakeDaemon, home: &TempDir, capacity: u32) -> Configuration {
    let registered = RegisteredRunner {
        id: Uuid::from_u128(7),
        token: "session".to_owned(),
        expires_at: Utc::now(),
        projects: None,
        labels: Vec::new(),
    };
    let asked = RegisteredAs {
        name: "test".to_owned(),
        ca_file: None,
        insecure_http: false,
        workdir: home.path().join("work"),
        labels: Vec::new(),
        exclusive: false,
        capacity,
    };
    Configuration::new(&registered, daemon.url.clone(), asked)
}

fn setup(home: &TempDir, configuration: Configuration, options: Options) -> Setup {
    Setup {
        configuration,
        folder: runner::folder_of(home.path(), "test").unwrap(),
        environment: environment(),
        supervisor: env!("CARGO_BIN_EXE_everscan-runner").into(),
        options,
    }
}

fn environment() -> HostEnvironment {
    let own = std::env::vars_os().filter(|(name, _)| name == "PATH");
    let extra = [
        ("LANG", "C.UTF-8"),
        ("SERVICE_TOKEN", "of the runner"),
        ("PROXY", "passed"),
        ("HIDDEN", "must not be seen"),
    ];
    own.chain(extra.map(|(name, value)| (name.into(), value.into())))
        .collect()
}

/// A job of the given scripts.
pub(crate) fn job(scripts: &[&str]) -> Assignment {
    // The clock of the daemon's machine differs from the runner's.
    let now = Utc::now() - Duration::from_secs(7200);
    Assignment {
        job_id: Uuid::now_v7(),
        project_id: Uuid::from_u128(1),
        workflow_id: Uuid::from_u128(2),
        revision_id: Uuid::from_u128(3),
        scan: "scan".to_owned(),
        env: Vec::new(),
        job_token: None,
        pass_env: Vec::new(),
        steps: scripts.iter().map(|script| step(script)).collect(),
        checkout: None,
        callback: None,
        artifacts: Vec::new(),
        context: json!({
            "project": "p", "workflow": "w", "revision": "r", "vars": {"GREETING": "hello"},
        }),
        secrets: BTreeMap::new(),
        missing: BTreeMap::new(),
        retries: false,
        now,
        expires_at: now + Duration::from_secs(3600),
        deadline: None,
        next_log_record: 0,
    }
}

pub(crate) fn step(script: &str) -> ScanStep {
    ScanStep {
        name: None,
        run: script.to_owned(),
        shell: None,
        condition: None,
        allow_failure: false,
        timeout_seconds: None,
    }
}

pub(crate) fn named(name: &str, script: &str) -> ScanStep {
    ScanStep {
        name: Some(name.to_owned()),
        ..step(script)
    }
}

pub(crate) fn step_if(condition: &str, script: &str) -> ScanStep {
    ScanStep {
        condition: Some(condition.to_owned()),
        ..step(script)
    }
}

pub(crate) fn artifact(name: &str, paths: &[&str]) -> ScanArtifact {
    ScanArtifact {
        name: name.to_owned(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        condition: None,
        upload_on: UploadOn::Success,
        strict: false,
    }
}

/// The status and outcome of each step.
pub(crate) fn ends(completion: &CompleteJob) -> Vec<(StepStatus, StepOutcome)> {
    let steps = completion.steps.iter();
    steps
        .map(|step| (step.status, step.outcome.unwrap()))
        .collect()
}

pub(crate) const SUCCEEDED: (StepStatus, StepOutcome) =
    (StepStatus::Succeeded, StepOutcome::Succeeded);
pub(crate) const FAILED: (StepStatus, StepOutcome) = (StepStatus::Failed, StepOutcome::Failed);
pub(crate) const FORGIVEN: (StepStatus, StepOutcome) = (StepStatus::Failed, StepOutcome::Succeeded);
pub(crate) const SKIPPED: (StepStatus, StepOutcome) = (StepStatus::Skipped, StepOutcome::Skipped);
pub(crate) const CANCELLED: (StepStatus, StepOutcome) =
    (StepStatus::Cancelled, StepOutcome::Cancelled);
