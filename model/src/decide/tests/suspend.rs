//! Suspended workflows and scans: which jobs start, which wait, and the effect of a resumption.

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{
    Activate, Cancel, Consider, EndJob, Evaluate, Fire, Loss, Refusal, Resume, Retire, Suspend,
};
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::limits::SUSPENSION_REASON_CHARS;
use crate::testing::{TestWorld, activate, complete_all, ended, key};
use crate::{
    Actor, Change, JobId, Reach, Reason, RunnerId, SuspendedPart, Timestamp, WorkflowId, World,
    waiting,
};

mod property;
mod slots;

const LOOP: &str = "
scans:
  hosts:
    on: {cron: '0 * * * *', dispatch: {}}
    steps: [{run: x}]
  report:
    on: {expr: 'scans.hosts.is_available()'}
    steps: [{run: x}]
";

/// The loop with another `catch_up` policy.
fn catching_up(policy: &str) -> String {
    let on = format!("{{cron: '0 * * * *', catch_up: {policy}, dispatch: {{}}}}");
    LOOP.replace("{cron: '0 * * * *', dispatch: {}}", &on)
}

struct Scene {
    test: TestWorld,
    workflow: WorkflowId,
    runner: RunnerId,
}

impl Scene {
    fn new(text: &str) -> Self {
        let mut test = TestWorld::new();
        test.now = at("2026-11-21T10:30:00Z");
        let workflow = test.push("loop", text);
        let runner = test.runner("first", &[]);
        Self {
            test,
            workflow,
            runner,
        }
    }

    fn suspend(&mut self, scan: Option<&str>) -> Vec<Change> {
        self.test.changes(suspend(self.workflow, scan)).unwrap().0
    }

    fn resume(&mut self, scan: Option<&str>) -> Vec<Change> {
        let resume = Resume {
            workflow: self.workflow,
            scan: scan.map(str::to_owned),
            reason: Some("done".to_owned()),
            actor: actor(),
        };
        self.test.changes(resume).unwrap().0
    }

    fn dispatch(&mut self) -> Result<JobId, Refusal> {
        self.test.dispatch(self.workflow, "hosts", json!({}))
    }

    fn succeed(&mut self, job: JobId) {
        let token = self.test.claim(job, self.runner).unwrap();
        self.test.run(complete_all(job, token)).unwrap();
    }

    /// Runs one round of the tasks for triggers and deadlines.
    fn pull(&mut self) -> bool {
        let now = self.test.now;
        let (due, unseen, withdrawn) = {
            let world = &self.test.world;
            let withdrawn: Vec<JobId> = world.withdrawn().collect();
            (world.due(now), world.unseen(), withdrawn)
        };
        let has_any = !(due.is_empty() && unseen.is_empty() && withdrawn.is_empty());
        for scan in due {
            self.test.run(Fire { scan }).unwrap();
        }
        for scan in unseen {
            let evaluate = Evaluate::HERE;
            self.test.run(Consider { scan, evaluate }).unwrap();
        }
        for job in withdrawn {
            let loss = Loss::Suspended;
            self.test.run(EndJob::new(job, loss)).unwrap();
        }
        has_any
    }

    fn jobs(&self, scan: &str) -> Vec<JobId> {
        let scan = key(self.workflow, scan);
        let jobs = self.test.world.jobs_of(&scan);
        jobs.map(|job| job.id).collect()
    }

    fn ledger(&self, scan: &str) -> Vec<LedgerRecord> {
        let scan = key(self.workflow, scan);
        let decided = self.test.decided.iter();
        decided
            .filter_map(|change| match change {
                Change::Ledger(entry) if entry.scan == scan => {
                    Some(serde_json::from_str(&entry.text).unwrap())
                }
                _ => None,
            })
            .collect()
    }

    /// Why the job waits.
    fn why(&self, job: JobId) -> String {
        let job = self.test.world.job(job).unwrap();
        let reason = waiting(&self.test.world, job, self.test.now, |_| true, |_| None).unwrap();
        reason.to_string()
    }

    fn pass(&mut self, minutes: i64) {
        self.test.pass(TimeDelta::minutes(minutes));
    }
}

fn suspend(workflow: WorkflowId, scan: Option<&str>) -> Suspend {
    Suspend {
        workflow,
        scan: scan.map(str::to_owned),
        reason: " too loud ".to_owned(),
        actor: actor(),
    }
}

fn actor() -> Actor {
    Actor::Token {
        id: crate::TokenId::from_uuid(uuid::Uuid::nil()),
        name: "ada".to_owned(),
        user: crate::UserId::OWNER,
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn made(scene: &Scene, scan: &str) -> Vec<Reason> {
    let world = &scene.test.world;
    let jobs = scene.jobs(scan).into_iter();
    jobs.map(|id| world.job(id).unwrap().reason.clone())
        .collect()
}

#[test]
fn a_refused_dispatch_reports_the_time_the_author_and_the_reason_of_the_suspension() {
    let mut scene = Scene::new(LOOP);
    for (scan, words) in [
        (Some("hosts"), "suspended since"),
        (None, "workflow suspended since"),
    ] {
        scene.suspend(scan);
        let refusal = scene.dispatch().unwrap_err();
        assert_eq!(
            refusal.to_string(),
            format!(
                "scan `hosts` of workflow `loop` starts nothing: {words} 2026-11-21T10:30:00Z by token ada: too loud"
            )
        );
        scene.resume(scan);
        assert!(scene.dispatch().is_ok());
    }
    // A dispatch whose inputs were checked before the suspension is refused too.
    let late = scene.test.dispatch_of(scene.workflow, "hosts", json!({}));
    scene.suspend(Some("hosts"));
    assert!(matches!(
        scene.test.run(late.unwrap()),
        Err(Refusal::Suspended {
            part: SuspendedPart::Scan,
            ..
        })
    ));
    scene.suspend(Some("report"));
    scene.resume(Some("hosts"));
    assert!(
        scene.dispatch().is_ok(),
        "the other scan is suspended separately"
    );
}

#[test]
fn repeated_suspensions_and_resumptions_change_nothing() {
    let mut scene = Scene::new(LOOP);
    assert!(scene.resume(None).is_empty(), "it is not suspended");
    assert_eq!(
        scene.suspend(None).len(),
        3,
        "the suspension, its condition and the event"
    );
    scene.pass(10);
    assert!(scene.suspend(None).is_empty());
    let latest = |scene: &Scene| {
        let world = &scene.test.world;
        crate::Suspension::clone(world.latest_suspension(scene.workflow, None).unwrap())
    };
    assert_eq!(latest(&scene).since, at("2026-11-21T10:30:00Z"));
    assert_eq!(latest(&scene).reason, "too loud");
    assert_eq!(scene.resume(None).len(), 3);
    assert!(scene.resume(None).is_empty());
    let resumed = latest(&scene).resumed.unwrap();
    assert_eq!(
        (resumed.at, resumed.reason.as_deref()),
        (at("2026-11-21T10:40:00Z"), Some("done"))
    );

    let refused = |command: Suspend| {
        let mut scene = Scene::new(LOOP);
        scene.test.run(command).unwrap_err()
    };
    let workflow = scene.workflow;
    let other = WorkflowId::from_uuid(uuid::Uuid::nil());
    assert!(matches!(
        refused(suspend(other, None)),
        Refusal::NoSuchWorkflow { .. }
    ));
    assert!(matches!(
        refused(suspend(workflow, Some("hots"))),
        Refusal::NoSuchScan { .. }
    ));
    for reason in [
        " ".to_owned(),
        "x".repeat(SUSPENSION_REASON_CHARS + 1),
        "busy\nerror: forged".to_owned(),
    ] {
        let command = Suspend {
            reason,
            ..suspend(workflow, None)
        };
        assert!(matches!(refused(command), Refusal::InvalidField { .. }));
    }
}

#[test]
fn a_dispatched_job_waits_until_the_resumption() {
    let mut scene = Scene::new(LOOP);
    let job = scene.dispatch().unwrap();
    scene.suspend(None);
    let offered = |world: &World| world.offerable(&Reach::default()).count();
    assert_eq!(offered(&scene.test.world), 0);
    assert_eq!(
        scene.why(job),
        "workflow suspended since 2026-11-21T10:30:00Z by token ada: too loud"
    );
    assert!(matches!(
        scene.test.claim(job, scene.runner),
        Err(Refusal::JobHeld { .. })
    ));
    scene.pull();
    assert_eq!(scene.jobs("hosts"), [job], "it is not cancelled");
    // A person can cancel it.
    let other = scene.jobs("hosts")[0];
    scene.resume(None);
    assert_eq!(offered(&scene.test.world), 1);
    scene.suspend(None);
    let actor = actor();
    scene.test.run(Cancel { job: other, actor }).unwrap();
    assert!(scene.jobs("hosts").is_empty());
}

#[test]
fn waiting_jobs_of_triggers_are_cancelled_and_running_jobs_continue() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch().unwrap();
    scene.succeed(hosts);
    let [report] = scene.jobs("report").try_into().unwrap();
    scene.pass(40);
    scene.pull();
    let [due] = scene.jobs("hosts").try_into().unwrap();
    let running = scene.dispatch().unwrap();
    let token = scene.test.claim(running, scene.runner).unwrap();
    scene.suspend(None);
    for job in [report, due] {
        let loss = Loss::Suspended;
        let (changes, _) = scene.test.changes(EndJob::new(job, loss)).unwrap();
        let (state, reason) = ended(&changes).unwrap();
        assert_eq!((state, reason.code()), ("cancelled", "suspended"));
    }
    let loss = Loss::Suspended;
    let job = running;
    assert!(
        scene
            .test
            .changes(EndJob::new(job, loss))
            .unwrap()
            .0
            .is_empty()
    );
    scene.test.run(complete_all(running, token)).unwrap();
    assert!(
        scene.jobs("report").is_empty(),
        "the success starts nothing"
    );

    // The resumption creates the cancelled jobs again.
    scene.resume(None);
    while scene.pull() {}
    let slot = at("2026-11-21T11:00:00Z");
    assert_eq!(
        made(&scene, "hosts"),
        [Reason::SlotDue {
            slot,
            schedule: None
        }]
    );
    assert_eq!(made(&scene, "report"), [Reason::ExpressionTrue]);
}

#[test]
fn jobs_stay_if_the_scan_is_resumed_before_they_are_cancelled() {
    let mut scene = Scene::new(LOOP);
    scene.pass(40);
    scene.pull();
    let [due] = scene.jobs("hosts").try_into().unwrap();
    scene.suspend(None);
    scene.resume(None);
    let loss = Loss::Suspended;
    let (changes, _) = scene.test.changes(EndJob::new(due, loss)).unwrap();
    assert!(changes.is_empty());
    assert!(!scene.pull());
    assert_eq!(scene.jobs("hosts"), [due]);
}

#[test]
fn a_true_expression_is_recorded_and_evaluated_once_after_the_resumption() {
    let mut scene = Scene::new(LOOP);
    scene.suspend(Some("report"));
    for _ in 0..2 {
        let hosts = scene.dispatch().unwrap();
        scene.succeed(hosts);
    }
    assert!(
        !scene.pull(),
        "the commits of the successes have evaluated it"
    );
    assert!(scene.jobs("report").is_empty());
    let [record] = scene.ledger("report").try_into().unwrap();
    assert_eq!(record.evaluation.unwrap().holds(), Some(true));
    assert!(matches!(record.outcome, Outcome::NotMade { reason } if reason.code() == "suspended"));
    scene.resume(Some("report"));
    assert!(scene.pull() && !scene.pull());
    let [report] = scene.jobs("report").try_into().unwrap();
    scene.succeed(report);
    assert!(!scene.pull());
}

#[test]
fn a_resumption_without_an_unseen_success_evaluates_nothing() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch().unwrap();
    scene.succeed(hosts);
    let [report] = scene.jobs("report").try_into().unwrap();
    scene.succeed(report);
    scene.suspend(None);
    scene.resume(None);
    assert!(!scene.pull());
}

#[test]
fn a_new_revision_and_a_returning_workflow_stay_suspended() {
    let mut scene = Scene::new(LOOP);
    scene.suspend(Some("hosts"));
    scene.suspend(None);
    scene.test.push("loop", &format!("{LOOP}# changed\n"));
    assert!(scene.dispatch().is_err());
    let workflow = scene.workflow;
    scene.test.run(Retire { workflow }).unwrap();
    assert!(matches!(scene.dispatch(), Err(Refusal::Retired { .. })));
    scene.pass(60);
    assert!(!scene.pull(), "a retired schedule is not checked");
    let back: Activate = activate("loop", LOOP);
    scene.test.run(back).unwrap();
    assert!(matches!(scene.dispatch(), Err(Refusal::Suspended { .. })));
    scene.resume(None);
    assert!(matches!(scene.dispatch(), Err(Refusal::Suspended { .. })));
    // A removed scan can be resumed.
    scene.test.push("loop", &LOOP.replace("hosts", "other"));
    assert_eq!(scene.resume(Some("hosts")).len(), 1);
}

#[test]
fn a_schedule_changed_during_a_suspension_does_not_catch_up() {
    let mut scene = Scene::new(LOOP);
    scene.suspend(None);
    scene.pass(40);
    scene.pull();
    scene
        .test
        .push("loop", &LOOP.replace("'0 * * * *'", "'30 * * * *'"));
    scene.resume(None);
    while scene.pull() {}
    assert!(scene.jobs("hosts").is_empty());
}
