//! A state with one workflow and one runner, used through the library like in the daemon.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use chrono::Utc;
use model::decide::{
    Activate, Claim, Complete, ConfigureSource, CreateRegistration, Dispatch, Evaluate,
    LargeInputs, RegisterRunner, StoreArtifact,
};
use model::{
    Actor, Clock, Entropy, Inputs, JobId, RevisionId, RunnerId, SourceName, Step, StepOutcome,
    StepStatus, Timestamp, TokenHash, WorkflowId,
};
use state::{Closing, Options, State, Upload};
use workflow::{ScanName, TemplatePolicy, hex};

/// A workflow with one scan that does nothing and may have an artifact.
pub(crate) const NOTHING: &str = "scans:\n  nothing:\n    on: { dispatch: {} }\n    steps: [{ run: 'true' }]\n    artifacts: [{ name: out, paths: [out] }]\n";

const SOURCE: &str = "main";
const WORKFLOW: &str = "bench";

struct Wall;

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Utc::now()
    }

    fn steady(&self) -> Timestamp {
        self.now()
    }
}

struct System;

impl Entropy for System {
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

/// An open state. Clones share it.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) state: State,
    workflow: WorkflowId,
    revision: RevisionId,
    runner: RunnerId,
}

impl Fleet {
    /// Opens a folder, and creates workflow and runner if they are missing.
    pub(crate) async fn open(root: &Path, text: &str) -> (Self, Closing) {
        let options = Options {
            root: root.to_owned(),
            allow_network: false,
            clock: Arc::new(Wall),
            entropy: Box::new(System),
            cycle_pause: TimeDelta::zero(),
        };
        let (state, closing) = State::open(options).await.unwrap();
        let source: SourceName = SOURCE.parse().unwrap();
        let workflow = WorkflowId::derive(&source, WORKFLOW);
        if state.read(|world| world.workflow(workflow).is_none()) {
            activate(&state, source, text).await;
        }
        let revision = state.read(|world| world.workflow(workflow).unwrap().record.revision.id);
        let registration = state.submit(CreateRegistration::default()).await.unwrap();
        let register = RegisterRunner {
            registration: registration.secret.hash(),
            name: "bench".to_owned(),
            labels: Vec::new(),
            exclusive: false,
            capacity: 1_000,
            version: "0".to_owned(),
            replace: true,
        };
        let runner = state.submit(register).await.unwrap().session.runner;
        let fleet = Self {
            state,
            workflow,
            revision,
            runner,
        };
        (fleet, closing)
    }

    /// Waits until everything is in files. All other clones must have been dropped.
    pub(crate) async fn close(self, closing: Closing) {
        drop(self);
        let joined = tokio::task::spawn_blocking(move || closing.join()).await;
        joined.unwrap().unwrap();
    }

    pub(crate) async fn dispatch(&self, scan: &ScanName) -> JobId {
        let dispatch = Dispatch {
            workflow: self.workflow,
            scan: scan.clone(),
            revision: self.revision,
            inputs: Inputs::Inline(BTreeMap::new()),
            actor: Actor::Daemon,
            idempotency: None,
            again: None,
        };
        self.state.submit(dispatch).await.unwrap()
    }

    pub(crate) async fn claim(&self, job: JobId) {
        let claim = Claim {
            job,
            runner: self.runner,
            token: token(job),
            job_token: None,
            evaluate: Evaluate::CHEAP,
        };
        self.state.submit(claim).await.unwrap();
    }

    pub(crate) async fn complete(&self, job: JobId, log_records: u64) {
        let at = Utc::now();
        let complete = Complete {
            job,
            token: token(job),
            steps: vec![Step {
                name: None,
                index: 0,
                status: StepStatus::Succeeded,
                outcome: Some(StepOutcome::Succeeded),
                exit_code: Some(0),
                error: None,
                started_at: Some(at),
                finished_at: Some(at),
            }],
            outputs: workflow::Outputs::new(),
            left_out: BTreeMap::new(),
            log_records,
            log_bytes: 0,
            failure: None,
            large_inputs: LargeInputs::NotCopied,
        };
        self.state.complete(complete).await.unwrap();
    }

    /// Records the upload as the artifact `out`.
    pub(crate) async fn store_artifact(&self, job: JobId, upload: Upload) {
        let received = upload.finish().await.unwrap();
        let store = StoreArtifact {
            job,
            token: token(job),
            name: "out".to_owned(),
            size: received.size(),
            sha256: hex(&received.sha256()),
            content_digest: hex(&received.sha256()),
        };
        self.state.store_artifact(store, received).await.unwrap();
    }

    /// Runs a job from dispatch to end, without a log.
    pub(crate) async fn finish_one(&self, scan: &ScanName) {
        let job = self.dispatch(scan).await;
        self.claim(job).await;
        self.complete(job, 0).await;
    }

    /// The time of a completion that creates another job.
    pub(crate) async fn completion_with_follower(&self, scan: &ScanName) -> Duration {
        let job = self.dispatch(scan).await;
        self.claim(job).await;
        let begun = Instant::now();
        self.complete(job, 0).await;
        let took = begun.elapsed();
        let follower = self
            .state
            .read(|world| world.jobs().next_back().unwrap().id);
        assert!(follower > job, "the success made a job");
        self.claim(follower).await;
        self.complete(follower, 0).await;
        took
    }
}

async fn activate(state: &State, source: SourceName, text: &str) {
    let configure = ConfigureSource {
        name: source.clone(),
        url: "nowhere".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    };
    state.submit(configure).await.unwrap();
    let file = format!("workflows/{WORKFLOW}.yaml");
    let parsed = workflow::parse(&file, text, TemplatePolicy::Warn).unwrap();
    let activate = Activate {
        source,
        name: WORKFLOW.to_owned(),
        file,
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        text: text.into(),
        sha256: workflow::sha256(text.as_bytes()),
        definition: Arc::new(parsed.workflow),
        warnings: parsed.warnings,
    };
    state.submit(activate).await.unwrap();
}

/// A worker's token. It is not secret here.
fn token(job: JobId) -> TokenHash {
    TokenHash::of(&job.to_string())
}

pub(crate) fn scan(name: &str) -> ScanName {
    name.parse().unwrap()
}
