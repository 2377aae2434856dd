//! Schedules and expressions: what they make, what they do not, and why.

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{Cancel, Consider, Considered, Evaluate, Fire, Retire, Rewind};
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::limits::FOLLOWERS;
use crate::testing::{House, complete_all, key};
use crate::{Actor, Change, JobId, JobState, Reason, RunnerId, Timestamp, Trigger, WorkflowId};

mod beside;
mod clock;
mod cycles;
mod failures;
mod news;
mod renames;

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
    house: House,
    workflow: WorkflowId,
    runner: RunnerId,
}

impl Scene {
    fn new(text: &str) -> Self {
        let mut house = House::new();
        house.now = at("2026-11-21T10:30:00Z");
        let workflow = house.push("loop", text);
        let runner = house.runner("first", &[]);
        Self {
            house,
            workflow,
            runner,
        }
    }

    fn dispatch(&mut self, scan: &str) -> JobId {
        self.house.dispatch(self.workflow, scan, json!({})).unwrap()
    }

    /// Claims and completes a job.
    fn succeed(&mut self, job: JobId) {
        let token = self.house.claim(job, self.runner).unwrap();
        self.house.run(complete_all(job, token)).unwrap();
    }

    /// The unfinished jobs of a scan.
    fn jobs(&self, scan: &str) -> Vec<JobId> {
        let scan = key(self.workflow, scan);
        let jobs = self.house.world.jobs_of(&scan);
        jobs.map(|job| job.id).collect()
    }

    fn fire(&mut self, scan: &str) -> Option<JobId> {
        let scan = key(self.workflow, scan);
        self.house.run(Fire { scan }).unwrap()
    }

    fn consider(&mut self, scan: &str) -> Option<JobId> {
        let scan = key(self.workflow, scan);
        let evaluate = Evaluate::HERE;
        match self.house.run(Consider { scan, evaluate }).unwrap() {
            Considered::Settled(made) => made,
            Considered::Unevaluated => panic!("it is evaluated whatever it costs"),
        }
    }

    fn ledger(&self, scan: &str) -> Vec<LedgerRecord> {
        let scan = key(self.workflow, scan);
        self.house
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
        self.house.pass(TimeDelta::minutes(minutes));
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn a_success_starts_what_waits_for_it_in_its_own_commit_and_says_why() {
    let mut scene = Scene::new(LOOP);
    let job = scene.dispatch("hosts");
    let token = scene.house.claim(job, scene.runner).unwrap();
    let (changes, _) = scene.house.changes(complete_all(job, token)).unwrap();
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
    assert!(scene.house.world.unseen().is_empty());
}

#[test]
fn a_chain_runs_to_its_end_and_no_scan_wakes_itself() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [changes] = scene.jobs("changes").try_into().unwrap();
    assert!(scene.jobs("report").is_empty());
    scene.succeed(changes);
    let [report] = scene.jobs("report").try_into().unwrap();
    scene.succeed(report);
    assert_eq!(scene.house.world.jobs().count(), 0);
    let bystander = scene.dispatch("bystander");
    scene.succeed(bystander);
    assert_eq!(scene.house.world.jobs().count(), 0, "nobody waits for it");
}

#[test]
fn an_activation_starts_nothing_though_its_expression_is_true() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [changes] = scene.jobs("changes").try_into().unwrap();
    scene.succeed(changes);
    let more = format!(
        "{LOOP}  late:\n    on: {{expr: 'scans.hosts.is_available()'}}\n    steps: [{{run: x}}]\n"
    );
    scene.house.push("loop", &more);
    assert!(scene.house.world.unseen().is_empty());
    assert_eq!(scene.consider("late"), None);
    let bystander = scene.dispatch("bystander");
    scene.succeed(bystander);
    scene.house.push(
        "loop",
        &LOOP.replace(
            "scans.changes.is_available()",
            "scans.bystander.is_available()",
        ),
    );
    assert!(
        scene.house.world.unseen().is_empty(),
        "an edited expression begins now"
    );
    scene
        .house
        .run(Retire {
            workflow: scene.workflow,
        })
        .unwrap();
    scene.house.push("loop", LOOP);
    assert!(scene.house.world.unseen().is_empty());
}

#[test]
fn a_success_that_comes_while_the_scan_is_active_is_looked_at_when_its_job_ends() {
    let mut scene = Scene::new(LOOP);
    let first = scene.dispatch("hosts");
    scene.succeed(first);
    let [running] = scene.jobs("changes").try_into().unwrap();
    let token = scene.house.claim(running, scene.runner).unwrap();
    for _ in 0..2 {
        let again = scene.dispatch("hosts");
        scene.succeed(again);
    }
    assert_eq!(scene.jobs("changes"), [running]);
    assert!(
        scene.house.world.unseen().is_empty(),
        "held up by its own job"
    );
    scene.house.run(complete_all(running, token)).unwrap();
    // Two successes with the same artifacts: nothing differs, and both were one look.
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
        evaluate: Evaluate::CHEAP,
    };
    let outcome = scene.house.run(claim).unwrap();
    assert_eq!(outcome.job().unwrap().state.name(), "skipped");
    let last = scene.ledger("changes").pop().unwrap();
    assert_eq!(last.cause, Cause::Claim { job: waiting });
    let head = scene
        .house
        .world
        .head(&key(scene.workflow, "changes"))
        .unwrap();
    assert_eq!((head.totals.skipped, head.latest_claim), (1, None));
    assert!(scene.house.world.unseen().is_empty());
}

#[test]
fn a_waiting_job_of_an_expression_takes_the_newest_revision_at_its_claim() {
    let mut scene = Scene::new(LOOP);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [waiting] = scene.jobs("changes").try_into().unwrap();
    scene.house.push("loop", &format!("{LOOP}# changed\n"));
    scene.house.claim(waiting, scene.runner).unwrap();
    let job = scene.house.world.job(waiting).unwrap();
    assert_eq!(job.revision.number, 2);
    let scans = &job.state.run().unwrap().context.scans;
    assert!(
        scans["hosts"].jobs.is_empty(),
        "its expressions read no job"
    );
    assert_eq!((scans["hosts"].size, scans["hosts"].available), (1, true));
}

#[test]
fn a_slot_makes_one_job_and_moves_the_cursor() {
    let mut scene = Scene::new(LOOP);
    let hosts = key(scene.workflow, "hosts");
    let next = |scene: &Scene| scene.house.world.next_slot_of(&hosts);
    assert_eq!(next(&scene), Some(at("2026-11-21T11:00:00Z")));
    assert!(scene.house.world.due(scene.house.now).is_empty());
    assert_eq!(scene.fire("hosts"), None);
    scene.pass(30);
    assert_eq!(
        scene.house.world.due(scene.house.now),
        std::slice::from_ref(&hosts)
    );
    let job = scene.fire("hosts").unwrap();
    let slot = at("2026-11-21T11:00:00Z");
    assert_eq!(
        scene.house.world.job(job).unwrap().reason,
        Reason::SlotDue { slot }
    );
    assert_eq!(scene.fire("hosts"), None, "a slot is looked at once");
    assert_eq!(next(&scene), Some(at("2026-11-21T12:00:00Z")));
    assert!(scene.house.world.due(scene.house.now).is_empty());
}

#[test]
fn a_slot_that_finds_a_job_makes_none_and_repeats_are_counted() {
    let mut scene = Scene::new(LOOP);
    let running = scene.dispatch("hosts");
    for _ in 0..4 {
        scene.pass(60);
        assert_eq!(scene.fire("hosts"), None);
    }
    let reason = Reason::Overlap { job: running };
    let outcome = Outcome::NotMade { reason };
    assert_eq!(scene.ledger("hosts").len(), 1);
    assert_eq!(scene.ledger("hosts")[0].outcome, outcome);
    let cancel = Cancel {
        job: running,
        actor: Actor::Daemon,
    };
    scene.house.run(cancel).unwrap();
    scene.pass(60);
    let made = scene.fire("hosts").unwrap();
    let ledger = scene.ledger("hosts");
    assert_eq!(ledger.len(), 3);
    let Cause::Repeats { count, .. } = ledger[1].cause else {
        panic!("{:?}", ledger[1]);
    };
    assert_eq!((count, &ledger[1].outcome), (3, &outcome));
    assert_eq!(ledger[2].outcome, Outcome::Made { job: made });
}

#[test]
fn slots_that_passed_while_nothing_could_start_are_caught_up_as_the_scan_says() {
    for (slots, catch_up, made, missed) in [
        (3, "latest", 1, 2),
        (3, "none", 0, 3),
        (3, "all", 3, 0),
        (1000, "latest", 1, 999),
        (1000, "none", 0, 1000),
        (1000, "all", 10, 990),
    ] {
        let text = LOOP.replace(
            "cron: '0 * * * *'",
            &format!("cron: '0 * * * *', catch_up: {catch_up}"),
        );
        let mut scene = Scene::new(&text);
        scene.pass(30 + (slots - 1) * 60 + 10);
        scene.fire("hosts");
        assert_eq!(scene.jobs("hosts").len(), made, "{catch_up}");
        let ledger = scene.ledger("hosts");
        let counted: u64 = ledger
            .iter()
            .filter(|record| {
                record.outcome
                    == Outcome::NotMade {
                        reason: Reason::SlotsMissed,
                    }
            })
            .map(|record| match record.cause {
                Cause::Slots { count, .. } => count,
                _ => 0,
            })
            .sum();
        assert_eq!(counted, missed, "{catch_up}");
        assert!(scene.house.world.due(scene.house.now).is_empty());
    }
}

/// More than are caught up with: the record of the others names the first and the last of them.
#[test]
fn the_record_of_missed_slots_says_which_they_were() {
    let cron = "cron: '0 * * * *', catch_up: all";
    let mut scene = Scene::new(&LOOP.replace("cron: '0 * * * *'", cron));
    scene.pass(30 + 14 * 60 + 10);
    scene.fire("hosts");
    let ledger = scene.ledger("hosts");
    let Cause::Slots { first, last, count } = ledger[0].cause else {
        panic!("{:?}", ledger[0]);
    };
    let Cause::Slots { first: next, .. } = ledger[1].cause else {
        panic!("{:?}", ledger[1]);
    };
    assert_eq!(last - first, TimeDelta::hours(4));
    assert_eq!((count, next - last), (5, TimeDelta::hours(1)));
    assert_eq!(scene.jobs("hosts").len(), 10);
}

#[test]
fn a_queued_slot_waits_for_the_job_before_it() {
    let text = LOOP.replace(
        "dispatch: {}}\n    steps: [{run: x}]\n    artifacts",
        "dispatch: {}}\n    overlap: queue\n    steps: [{run: x}]\n    artifacts",
    );
    let mut scene = Scene::new(&text);
    let running = scene.dispatch("hosts");
    scene.pass(30 + 70);
    assert!(scene.house.world.due(scene.house.now).is_empty(), "held up");
    assert_eq!(scene.fire("hosts"), None);
    scene.succeed(running);
    assert_eq!(scene.house.world.due(scene.house.now).len(), 1);
    assert!(scene.fire("hosts").is_some());
    assert_eq!(scene.jobs("hosts").len(), 1);
}

#[test]
fn a_newer_slot_replaces_what_no_person_has_started() {
    let text = LOOP.replace(
        "dispatch: {}}\n    steps: [{run: x}]\n    artifacts",
        "dispatch: {}}\n    overlap: replace\n    steps: [{run: x}]\n    artifacts",
    );
    let mut scene = Scene::new(&text);
    scene.pass(30);
    let older = scene.fire("hosts").unwrap();
    scene.house.claim(older, scene.runner).unwrap();
    scene.pass(60);
    let scan = key(scene.workflow, "hosts");
    scene.house.logs.insert(older, 500);
    let newer = scene.fire("hosts").unwrap();
    assert_eq!(scene.jobs("hosts"), [newer]);
    let head = scene.house.world.head(&scan).unwrap();
    assert_eq!((head.totals.cancelled, head.totals.bytes), (1, 500));
    let replaced = scene
        .house
        .decided
        .iter()
        .rev()
        .find_map(|change| match change {
            Change::Job(job) if job.id == older => Some(job.state.end()?.reason.clone()),
            _ => None,
        });
    assert_eq!(replaced, Some(Reason::Replaced { by: newer }));
    let by_hand = scene.dispatch("hosts");
    scene.pass(60);
    assert_eq!(scene.fire("hosts"), None);
    assert!(scene.jobs("hosts").contains(&by_hand));
}

#[test]
fn a_changed_schedule_begins_now_and_other_edits_keep_the_cursor() {
    let mut scene = Scene::new(LOOP);
    scene.pass(20);
    scene.house.push("loop", &format!("{LOOP}# changed\n"));
    let hosts = key(scene.workflow, "hosts");
    scene.pass(10);
    assert_eq!(
        scene.house.world.due(scene.house.now),
        std::slice::from_ref(&hosts)
    );
    scene
        .house
        .push("loop", &LOOP.replace("0 * * * *", "*/5 * * * *"));
    assert!(scene.house.world.due(scene.house.now).is_empty());
    let next = at("2026-11-21T11:05:00Z");
    assert_eq!(scene.house.world.next_slot_of(&hosts), Some(next));
}

#[test]
fn more_followers_than_a_commit_holds_follow_by_themselves() {
    let mut text = "scans:\n  source:\n    on: {dispatch: {}}\n    steps: [{run: x}]\n".to_owned();
    let count = FOLLOWERS + 7;
    for number in 0..count {
        text.push_str(&format!("  f{number}:\n    on: {{expr: 'scans.source.is_available()'}}\n    steps: [{{run: x}}]\n"));
    }
    let mut scene = Scene::new(&text);
    let source = scene.dispatch("source");
    scene.succeed(source);
    assert_eq!(scene.house.world.jobs().count(), FOLLOWERS);
    let unseen = scene.house.world.unseen();
    assert_eq!(unseen.len(), 7);
    for scan in unseen {
        assert!(scene.consider(scan.scan.as_str()).is_some());
    }
    assert_eq!(scene.house.world.jobs().count(), count);
}

#[test]
fn expressions_read_the_jobs_themselves_where_they_ask_for_them() {
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
        scene.house.run(cancel).unwrap();
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
    scene.house.claim(watch, scene.runner).unwrap();
    let run = scene
        .house
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
