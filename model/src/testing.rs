//! A world for testing decisions: workflows from texts, a clock that is set by hand, seeded randomness.
//!
//! Every decision is applied at once and recorded, so that a test can replay the changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};
use workflow::{Sandbox, TemplatePolicy, Workflow};

use crate::decide::{
    Activate, Claim, Command, Complete, ConfigureSource, CreateRegistration, Dispatch, Evaluate,
    LargeInputs, MakeOwner, Refusal, RegisterRunner, check_dispatch, decide,
};
use crate::moment::SeededEntropy;
use crate::{
    Actor, Change, EndState, HistoryLine, Inputs, JobId, Moment, Order, Reach, Reason, RunnerId,
    ScanKey, SourceName, Step, StepOutcome, StepStatus, Timestamp, TokenHash, WorkflowId, World,
};

/// A workflow with the features that the tests need.
pub(crate) const NIGHTLY: &str = "
scans:
  probe:
    on: {dispatch: {inputs: {target: {type: string}, deep: {type: bool}}}}
    steps: [{run: one}, {run: two}]
    artifacts:
      - {name: hosts, paths: [hosts.txt]}
      - {name: ports, paths: [ports.txt], expires_in: 2d}
  strict:
    on: {dispatch: {inputs: {target: {type: string, required: true}}}}
    timeout: 30m
    runs_on: [linux, gpu]
    steps: [{run: one}]
";

/// The most operations of a batch of the store (design section 6).
const BATCH: usize = 100;

/// A world and the inputs of its decisions.
pub(crate) struct TestWorld {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    /// The pause of jobs of scans that trigger each other, from the second lap on.
    pub(crate) cycle_pause: TimeDelta,
    /// False while the disk is nearly full.
    pub(crate) may_make_jobs: bool,
    jumped: TimeDelta,
    pub(crate) order: Order,
    pub(crate) entropy: SeededEntropy,
    pub(crate) decided: Vec<Change>,
    /// The lengths of the logs of jobs, in bytes.
    pub(crate) logs: HashMap<JobId, u64>,
}

impl TestWorld {
    /// A world with the source `recon` in it.
    pub(crate) fn new() -> Self {
        let mut test = Self {
            world: World::default(),
            now: Timestamp::from_timestamp_millis(1_790_000_000_000).unwrap(),
            jumped: TimeDelta::zero(),
            cycle_pause: TimeDelta::zero(),
            may_make_jobs: true,
            order: Order::START,
            entropy: SeededEntropy::new(1),
            decided: Vec::new(),
            logs: HashMap::new(),
        };
        test.run(MakeOwner).unwrap();
        let source = ConfigureSource {
            name: source(),
            url: "/srv/recon.git".to_owned(),
            reference: None,
            folder: "workflows".to_owned(),
            interval_seconds: 60,
        };
        test.run(source).unwrap();
        test
    }

    /// Moves the clock forward or back. All clocks move.
    pub(crate) fn pass(&mut self, time: TimeDelta) {
        self.now += time;
    }

    /// The clock that cannot be set.
    pub(crate) fn steady(&self) -> Timestamp {
        self.now - self.jumped
    }

    /// Sets the wall clock.
    pub(crate) fn jump(&mut self, by: TimeDelta) {
        self.now += by;
        self.jumped += by;
    }

    /// Decides and applies.
    pub(crate) fn run<C: Command>(&mut self, command: C) -> Result<C::Answer, Refusal> {
        self.changes(command).map(|(_, answer)| answer)
    }

    /// Decides and applies. Also returns the changes.
    pub(crate) fn changes<C: Command>(
        &mut self,
        command: C,
    ) -> Result<(Vec<Change>, C::Answer), Refusal> {
        for scan in command.histories(&self.world) {
            let mut recent = crate::Recent::default();
            for change in &self.decided {
                if let Change::History(entry) = change
                    && entry.scan == scan
                {
                    recent.add(entry.line.clone());
                }
            }
            self.world.apply(&Change::Recent(scan, Arc::new(recent)));
        }
        self.order = self.order.next();
        let logs = &self.logs;
        let mut moment = Moment {
            now: self.now,
            steady: self.world.time(self.steady()),
            order: self.order,
            entropy: &mut self.entropy,
            sandbox: Sandbox::shared(),
            log_bytes: &|job| logs.get(&job).copied().unwrap_or_default(),
            may_make_jobs: self.may_make_jobs,
            cycle_pause: self.cycle_pause,
        };
        let decision = decide(&self.world, command, &mut moment)?;
        assert!(
            decision.changes.len() < BATCH,
            "a decision fits into a batch"
        );
        for change in &decision.changes {
            self.world.apply(change);
        }
        self.decided.extend(decision.changes.iter().cloned());
        Ok((decision.changes, decision.answer))
    }

    /// Makes `text` the newest revision of the workflow `name`.
    pub(crate) fn push(&mut self, name: &str, text: &str) -> WorkflowId {
        self.run(activate(name, text)).unwrap();
        WorkflowId::derive(&source(), name)
    }

    /// Registers a runner with these labels.
    pub(crate) fn runner(&mut self, name: &str, labels: &[&str]) -> RunnerId {
        let registration = self
            .run(CreateRegistration::default())
            .unwrap()
            .secret
            .hash();
        self.run(register(registration, name, labels))
            .unwrap()
            .session
            .runner
    }

    /// Registers a runner that takes only jobs that require one of its labels.
    pub(crate) fn exclusive_runner(&mut self, name: &str, labels: &[&str]) -> RunnerId {
        let registration = self
            .run(CreateRegistration::default())
            .unwrap()
            .secret
            .hash();
        let exclusive = RegisterRunner {
            exclusive: true,
            ..register(registration, name, labels)
        };
        self.run(exclusive).unwrap().session.runner
    }

    /// Dispatches with the given inputs, checked against the active revision.
    pub(crate) fn dispatch(
        &mut self,
        workflow: WorkflowId,
        scan: &str,
        given: Value,
    ) -> Result<JobId, Refusal> {
        let command = self.dispatch_of(workflow, scan, given)?;
        self.run(command)
    }

    /// The command of a dispatch, with checked inputs.
    pub(crate) fn dispatch_of(
        &self,
        workflow: WorkflowId,
        scan: &str,
        given: Value,
    ) -> Result<Dispatch, Refusal> {
        let given: BTreeMap<String, Value> = serde_json::from_value(given).unwrap();
        let checked = check_dispatch(&self.world, workflow, scan, &given)?;
        Ok(Dispatch {
            workflow,
            scan: checked.scan,
            revision: checked.revision,
            inputs: Inputs::Inline(checked.inputs),
            actor: Actor::Daemon,
            idempotency: None,
            again: None,
        })
    }

    /// Claims a job. The token is derived from the job, so that a repeat is the same command.
    pub(crate) fn claim(&mut self, job: JobId, runner: RunnerId) -> Result<TokenHash, Refusal> {
        let token = TokenHash::of(&job.to_string());
        self.run(Claim {
            job,
            runner,
            token,
            job_token: Some(job_token(job)),
            evaluate: Evaluate::HERE,
        })
        .map(|_| token)
    }

    /// Starts a job of the scan `probe`. Returns the job and its token.
    pub(crate) fn running(&mut self) -> (JobId, TokenHash) {
        let workflow = self.push("nightly", NIGHTLY);
        let registered = self.world.runners().next().map(|runner| runner.id);
        let runner = registered.unwrap_or_else(|| self.runner("first", &[]));
        let job = self.dispatch(workflow, "probe", json!({})).unwrap();
        let token = self.claim(job, runner).unwrap();
        (job, token)
    }
}

/// The hash of the token for the steps of a job.
pub(crate) fn job_token(job: JobId) -> TokenHash {
    TokenHash::of(&format!("for the steps of {job}"))
}

/// The source of all workflows in the tests.
pub(crate) fn source() -> SourceName {
    "recon".parse().unwrap()
}

/// The definition in a valid text.
pub(crate) fn definition(text: &str) -> Arc<Workflow> {
    let parsed = workflow::parse("test.yaml", text, TemplatePolicy::Warn).unwrap();
    Arc::new(parsed.workflow)
}

/// The command that makes `text` the newest revision of the workflow `name`.
pub(crate) fn activate(name: &str, text: &str) -> Activate {
    Activate {
        source: source(),
        name: name.to_owned(),
        file: format!("workflows/{name}.yaml"),
        commit: "c0ffee".to_owned(),
        text: Arc::from(text),
        sha256: sha256(text),
        definition: definition(text),
        warnings: Vec::new(),
    }
}

/// The digest of a text, as stored in the record of its revision.
pub(crate) fn sha256(text: &str) -> String {
    workflow::sha256(text.as_bytes())
}

pub(crate) fn register(registration: TokenHash, name: &str, labels: &[&str]) -> RegisterRunner {
    RegisterRunner {
        registration,
        name: name.to_owned(),
        labels: labels.iter().map(ToString::to_string).collect(),
        exclusive: false,
        capacity: 2,
        version: "0.1.0".to_owned(),
        replace: false,
    }
}

/// The history line of the job with this number.
pub(crate) fn line(number: u128, state: EndState) -> HistoryLine {
    let at = Timestamp::UNIX_EPOCH;
    HistoryLine {
        id: serde_json::from_value(json!(uuid::Uuid::from_u128(number))).unwrap(),
        state,
        trigger: crate::Trigger::Cron,
        revision: serde_json::from_value(json!(uuid::Uuid::nil())).unwrap(),
        created_at: at,
        started_at: None,
        finished_at: at,
        artifacts: BTreeMap::new(),
        outputs: BTreeMap::new(),
        reason: None,
        runner: None,
        retried_by: None,
        causes: Vec::new(),
        bytes: 0,
    }
}

pub(crate) fn step(index: u32, status: StepStatus, outcome: Option<StepOutcome>) -> Step {
    Step {
        index,
        name: None,
        status,
        outcome,
        exit_code: None,
        error: None,
        started_at: None,
        finished_at: None,
    }
}

/// The report of `count` successful steps.
pub(crate) fn succeeded(count: u32) -> Vec<Step> {
    (0..count)
        .map(|index| step(index, StepStatus::Succeeded, Some(StepOutcome::Succeeded)))
        .collect()
}

/// The successful completion of a job of the scan `probe`.
pub(crate) fn complete(job: JobId, token: TokenHash) -> Complete {
    Complete {
        job,
        token,
        steps: succeeded(2),
        outputs: BTreeMap::new(),
        left_out: BTreeMap::new(),
        log_records: 3,
        log_bytes: 300,
        failure: None,
        large_inputs: LargeInputs::NotCopied,
    }
}

/// The completion of a job of any scan with one step.
pub(crate) fn complete_all(job: JobId, token: TokenHash) -> Complete {
    Complete {
        steps: succeeded(1),
        ..complete(job, token)
    }
}

pub(crate) fn key(workflow: WorkflowId, scan: &str) -> ScanKey {
    ScanKey {
        workflow,
        scan: serde_json::from_value(json!(scan)).unwrap(),
    }
}

/// The final state and the reason of the job that a decision has ended.
pub(crate) fn ended(changes: &[Change]) -> Option<(&'static str, &Reason)> {
    changes.iter().rev().find_map(|change| match change {
        Change::Job(job) => Some((job.state.name(), &job.state.end()?.reason)),
        _ => None,
    })
}

/// The content of a world, for comparing two worlds.
pub(crate) fn snapshot(world: &World) -> Value {
    let reach = Reach::labelled(&["gpu", "linux"]);
    let mut heads: Vec<_> = world.heads().collect();
    heads.sort_by_key(|head| (head.workflow, head.scan.clone()));
    json!({
        "sources": world.sources().map(|source| json!(**source)).collect::<Vec<_>>(),
        "workflows": world
            .workflows()
            .map(|workflow| json!([*workflow.record, workflow.revision.record]))
            .collect::<Vec<_>>(),
        "heads": heads.iter().map(|head| json!(***head)).collect::<Vec<_>>(),
        "retention": heads.iter().map(|head| world.retention(&head.key()).map(|retention| json!(**retention))).collect::<Vec<_>>(),
        "jobs": world
            .jobs()
            .map(|job| json!([**job, world.revision(job.revision.id).map(|revision| &revision.record)]))
            .collect::<Vec<_>>(),
        "waiting": world.waiting_workflows().collect::<Vec<_>>(),
        "offerable": world.offerable(&reach).map(|(turn, jobs)| json!([turn.workflow, jobs])).collect::<Vec<_>>(),
        "retries": world.due_delayed(&reach, Timestamp::MAX_UTC).map(|(turn, job)| (turn.workflow, job)).collect::<Vec<_>>(),
        "orphans": world.orphans().collect::<Vec<_>>(),
        "withdrawn": world.withdrawn().collect::<Vec<_>>(),
        "suspensions": world.suspensions().map(|suspension| json!(**suspension)).collect::<Vec<_>>(),
        "due": world.due(Timestamp::MAX_UTC),
        "unseen": world.unseen(),
        "running": world
            .runners()
            .map(|runner| world.running_on(runner.id).map(|job| job.id).collect::<Vec<_>>())
            .collect::<Vec<_>>(),
        "latest_job": world.latest_job(),
        "latest_order": world.latest_order(),
        "runners": world.runners().map(|runner| json!(**runner)).collect::<Vec<_>>(),
        "vars": world.sources().map(|source| json!(world.vars(source.project).map(|vars| json!(**vars)))).collect::<Vec<_>>(),
        "secrets": world.all_secrets().map(|secrets| json!(**secrets)).collect::<Vec<_>>(),
        "tokens": world.tokens().map(|token| json!(**token)).collect::<Vec<_>>(),
        "registrations": world
            .registrations()
            .map(|registration| json!(**registration))
            .collect::<Vec<_>>(),
        "requests": world.idempotency_over(Timestamp::MAX_UTC).collect::<Vec<_>>(),
    })
}
