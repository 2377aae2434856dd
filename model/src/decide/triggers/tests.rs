//! Schedules and expressions: which jobs they create, which they do not, and why.

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{Cancel, Consider, Considered, Evaluate, Fire, Retire, Rewind};
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::limits::FOLLOWERS;
use crate::testing::{TestWorld, complete_all, key};
use crate::{Actor, Change, JobId, JobState, Reason, RunnerId, Timestamp, Trigger, WorkflowId};

mod clock;
mod cycles;
mod failures;
mod heard;
mod lists;
mod news;
mod outside;
mod renames;
mod slots;

const LOOP: &str = "
scans:
  hosts:
    on: {cron: '0 * * * *', dispatch: {}}
    steps: [{run: x}]
    artifacts: [{name: list, paths: [l]}]
  changes:
    on: {expr: \"scans.hosts.has_diff('list') && size(scans.hosts) > 0\"}
    steps: [{run: x}]
  report:
    on: {expr: 'scans.changes.is_available()'}
    steps: [{run: x}]
  bystander:
    on: {dispatch: {}}
    steps: [{run: x}]
";

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

    fn dispatch(&mut self, scan: &str) -> JobId {
        self.test.dispatch(self.workflow, scan, json!({})).unwrap()
    }

    /// Claims and completes a job.
    fn succeed(&mut self, job: JobId) {
        let token = self.test.claim(job, self.runner).unwrap();
        self.test.run(complete_all(job, token)).unwrap();
    }

    /// The unfinished jobs of a scan.
    fn jobs(&self, scan: &str) -> Vec<JobId> {
        let scan = key(self.workflow, scan);
        let jobs = self.test.world.jobs_of(&scan);
        jobs.map(|job| job.id).collect()
    }

    fn fire(&mut self, scan: &str) -> Option<JobId> {
        let scan = key(self.workflow, scan);
        self.test.run(Fire { scan }).unwrap()
    }

    fn consider(&mut self, scan: &str) -> Option<JobId> {
        let scan = key(self.workflow, scan);
        let evaluate = Evaluate::HERE;
        match self.test.run(Consider { scan, evaluate }).unwrap() {
            Considered::Settled(made) => made,
            Considered::Unevaluated => panic!("the expression was not evaluated"),
        }
    }

    fn ledger(&self, scan: &str) -> Vec<LedgerRecord> {
        let scan = key(self.workflow, scan);
        self.test
            .decided
            .iter()
            .filter_map(|change| match change {
                Change::Ledger(entry) if entry.scan == scan => {
                    Some(serde_json::from_str(&entry.text).unwrap())
                }
                _ => None,
            })
            .collect()
    }

    fn pass(&mut self, minutes: i64) {
        self.test.pass(TimeDelta::minutes(minutes));
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_commit_of_a_success_starts_dependent_jobs_and_records_the_cause() {
    let mut scene = Scene::new(LOOP);
    let job = scene.dispatch("hosts");
    let token = scene.test.claim(job, scene.runner).unwrap();
    let (changes, _) = scene.test.changes(complete_all(job, token)).unwrap();
    let made: Vec<_> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Job(job) if job.state == JobState::Scheduled => Some(job),
            _ => None,
        })
        .collect();
    assert_eq!(made.len(), 1);
    assert_eq!(
        (made[0].scan.as_str(), made[0].trigger),
        ("changes", Trigger::Expr)
    );
    assert_eq!(made[0].reason, Reason::ExpressionTrue);
    let [record] = scene.ledger("changes").try_into().unwrap();
    let success = Cause::Success {
        scan: "hosts".to_owned(),
        job,
    };
    assert_eq!(
        (record.cause, record.outcome),
        (success, Outcome::Made { job: made[0].id })
    );
    let evaluation = record.evaluation.unwrap();
    assert_eq!(evaluation.holds(), Some(true));
    let parts: Vec<&str> = evaluation
        .clause
        .parts
        .iter()
        .map(|part| part.text.as_str())
        .collect();
    assert_eq!(parts.len(), 2);
    assert_eq!(evaluation.scans["hosts"].successes, [job]);
    assert!(scene.test.world.unseen().is_empty());
}

#[test]
fn a_chain_of_scans_ends_and_no_scan_triggers_itself() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [changes] = scene.jobs("changes").try_into().unwrap();
    assert!(scene.jobs("report").is_empty());
    scene.succeed(changes);
    let [report] = scene.jobs("report").try_into().unwrap();
    scene.succeed(report);
    assert_eq!(scene.test.world.jobs().count(), 0);
    let bystander = scene.dispatch("bystander");
    scene.succeed(bystander);
    assert_eq!(scene.test.world.jobs().count(), 0, "no scan depends on it");
}

#[test]
fn an_activation_starts_no_job_even_if_its_expression_is_true() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [changes] = scene.jobs("changes").try_into().unwrap();
    scene.succeed(changes);
    let more = format!(
        "{LOOP}  late:\n    on: {{expr: 'scans.hosts.is_available()'}}\n    steps: [{{run: x}}]\n"
    );
    scene.test.push("loop", &more);
    assert!(scene.test.world.unseen().is_empty());
    assert_eq!(scene.consider("late"), None);
    let bystander = scene.dispatch("bystander");
    scene.succeed(bystander);
    scene.test.push(
        "loop",
        &LOOP.replace(
            "scans.changes.is_available()",
            "scans.bystander.is_available()",
        ),
    );
    assert!(
        scene.test.world.unseen().is_empty(),
        "an edited expression considers only later successes"
    );
    scene
        .test
        .run(Retire {
            workflow: scene.workflow,
        })
        .unwrap();
    scene.test.push("loop", LOOP);
    assert!(scene.test.world.unseen().is_empty());
}

#[test]
fn a_success_during_a_job_of_the_scan_is_checked_when_the_job_ends() {
    let mut scene = Scene::new(LOOP);
    let first = scene.dispatch("hosts");
    scene.succeed(first);
    let [running] = scene.jobs("changes").try_into().unwrap();
    let token = scene.test.claim(running, scene.runner).unwrap();
    for _ in 0..2 {
        let again = scene.dispatch("hosts");
        scene.succeed(again);
    }
    assert_eq!(scene.jobs("changes"), [running]);
    assert!(
        scene.test.world.unseen().is_empty(),
        "a job of the scan prevents the check"
    );
    scene.test.run(complete_all(running, token)).unwrap();
    // Two successes with the same artifacts are evaluated together, so there is no difference.
    assert!(scene.jobs("changes").is_empty());
    let last = scene.ledger("changes").pop().unwrap();
    assert_eq!(
        last.outcome,
        Outcome::NotMade {
            reason: Reason::ExpressionFalse
        }
    );
}

#[test]
fn a_job_whose_expression_is_false_at_the_claim_is_skipped() {
    let mut scene = Scene::new(LOOP);
    let first = scene.dispatch("hosts");
    scene.succeed(first);
    let [waiting] = scene.jobs("changes").try_into().unwrap();
    let again = scene.dispatch("hosts");
    scene.succeed(again);
    let token = crate::TokenHash::of("t");
    let claim = crate::decide::Claim {
        job: waiting,
        runner: scene.runner,
        token,
        job_token: None,
        evaluate: Evaluate::CHEAP,
    };
    let outcome = scene.test.run(claim).unwrap();
    assert_eq!(outcome.job().unwrap().state.name(), "skipped");
    let last = scene.ledger("changes").pop().unwrap();
    assert_eq!(last.cause, Cause::Claim { job: waiting });
    let head = scene
        .test
        .world
        .head(&key(scene.workflow, "changes"))
        .unwrap();
    assert_eq!((head.totals.skipped, head.latest_claim), (1, None));
    assert!(scene.test.world.unseen().is_empty());
}

#[test]
fn a_waiting_job_of_an_expression_uses_the_newest_revision_at_its_claim() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [waiting] = scene.jobs("changes").try_into().unwrap();
    scene.test.push("loop", &format!("{LOOP}# changed\n"));
    scene.test.claim(waiting, scene.runner).unwrap();
    let job = scene.test.world.job(waiting).unwrap();
    assert_eq!(job.revision.number, 2);
    let scans = &job.state.run().unwrap().context.scans;
    assert!(
        scans["hosts"].jobs.is_empty(),
        "its expressions read no job"
    );
    assert_eq!((scans["hosts"].size, scans["hosts"].available), (1, true));
}

#[test]
fn dependent_scans_that_do_not_fit_into_the_commit_are_checked_later() {
    let mut text = "scans:\n  source:\n    on: {dispatch: {}}\n    steps: [{run: x}]\n".to_owned();
    let count = FOLLOWERS + 7;
    for number in 0..count {
        text.push_str(&format!("  f{number}:\n    on: {{expr: 'scans.source.is_available()'}}\n    steps: [{{run: x}}]\n"));
    }
    let mut scene = Scene::new(&text);
    let source = scene.dispatch("source");
    scene.succeed(source);
    assert_eq!(scene.test.world.jobs().count(), FOLLOWERS);
    let unseen = scene.test.world.unseen();
    assert_eq!(unseen.len(), 7);
    for scan in unseen {
        assert!(scene.consider(scan.scan.as_str()).is_some());
    }
    assert_eq!(scene.test.world.jobs().count(), count);
}

#[test]
fn expressions_can_read_single_jobs() {
    let text = "
scans:
  a: {on: {dispatch: {}}, steps: [{run: x}]}
  b: {on: {dispatch: {}}, steps: [{run: x}]}
  watch:
    on: {expr: \"scans.a.filter(j, j.state == 'cancelled').size() == 2 && scans.b[0].state == 'succeeded'\"}
    steps: [{run: 'echo ${{ scans.a[0].id }}'}]
";
    let mut scene = Scene::new(text);
    for _ in 0..2 {
        let job = scene.dispatch("a");
        let cancel = Cancel {
            job,
            actor: Actor::Daemon,
        };
        scene.test.run(cancel).unwrap();
    }
    let newest = scene.dispatch("a");
    scene.succeed(newest);
    let last = scene.ledger("watch").pop().unwrap();
    let Outcome::NotMade {
        reason: Reason::ExpressionFailed { message },
    } = last.outcome
    else {
        panic!("b has no job: {:?}", last.outcome);
    };
    assert!(message.contains("scans.b[0]"), "{message}");
    let job = scene.dispatch("b");
    scene.succeed(job);
    let [watch] = scene.jobs("watch").try_into().unwrap();
    scene.test.claim(watch, scene.runner).unwrap();
    let run = scene
        .test
        .world
        .job(watch)
        .unwrap()
        .state
        .run()
        .unwrap()
        .clone();
    assert_eq!(run.context.scans["a"].jobs.len(), 3);
    assert_eq!(run.context.scans["a"].jobs[0].id, newest.to_string());
}
