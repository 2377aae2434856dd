//! Scans that can trigger each other: the recorded chain of causes, and the pauses.

use chrono::TimeDelta;

use super::*;
use crate::decide::{Complete, Evaluate, Precondition, SetVar};
use crate::limits::CAUSES;
use crate::testing::{source, step};
use crate::{Circle, Job, ProjectId, Rights, StepOutcome, StepStatus, TokenHash};

/// `a` and `b` trigger each other, `c` follows, and `outside` triggers `a` from outside of the group.
const PAIR: &str = "
scans:
  outside: {on: {dispatch: {}}, steps: [{run: x}]}
  a:
    on: {expr: 'scans.b.is_available() || scans.outside.is_available()', cron: '0 * * * *', dispatch: {}}
    steps: [{run: x}]
    retry: {attempts: 1, backoff: 1s}
  b: {on: {expr: scans.a.is_available()}, steps: [{run: x}]}
  c: {on: {expr: scans.b.is_available()}, steps: [{run: x}]}
";

impl Scene {
    /// The only unfinished job of a scan.
    fn job(&self, scan: &str) -> Job {
        let [job] = self.jobs(scan).try_into().unwrap();
        Job::clone(self.test.world.job(job).unwrap())
    }

    /// Waits until the only unfinished job of a scan may start, and completes it.
    fn next(&mut self, scan: &str) -> JobId {
        let job = self.job(scan);
        if let Some(at) = job.not_before {
            self.test.now = self.test.now.max(at);
        }
        self.succeed(job.id);
        job.id
    }

    fn hops(&self, scan: &str) -> u64 {
        self.job(scan).hops.count
    }

    /// Runs every job as soon as it may start, until the time has passed. Returns the number of jobs.
    fn run_for(&mut self, time: TimeDelta) -> usize {
        let end = self.test.now + time;
        let mut count = 0;
        loop {
            let jobs = self.test.world.jobs();
            let due = jobs.map(|job| (job.not_before.unwrap_or(job.created_at), job.id));
            let Some((due, job)) = due.min() else {
                return count;
            };
            if due > end {
                return count;
            }
            self.test.now = self.test.now.max(due);
            count += 1;
            let token = TokenHash::of(&job.to_string());
            let runner = self.runner;
            self.test.claim(job, runner).unwrap();
            if self.test.world.job(job).is_some() {
                self.test.run(complete_all(job, token)).unwrap();
            }
            while let Some(scan) = self.test.world.unseen().first().cloned() {
                let evaluate = Evaluate::HERE;
                self.test.run(Consider { scan, evaluate }).unwrap();
            }
        }
    }
}

#[test]
fn jobs_have_a_pause_from_the_second_lap_on() {
    for pause in [0, 1_000] {
        let mut scene = Scene::new(PAIR);
        scene.test.cycle_pause = TimeDelta::milliseconds(pause);
        scene.dispatch("a");
        scene.next("a");
        assert_eq!(scene.job("b").not_before, None, "the first lap");
        scene.next("b");
        let due = scene.test.now + TimeDelta::milliseconds(pause.max(100));
        assert_eq!(scene.job("a").not_before, Some(due));
        assert_eq!(
            scene.job("c").not_before,
            None,
            "`c` follows the group but is not a member"
        );
        let why = scene.job("a").waits_for_its_time(scene.test.now);
        assert_eq!(why, Some(Reason::CyclePause { at: due }));
        scene.next("a");
        assert!(scene.job("b").not_before.is_some());
    }
}

#[test]
fn hops_count_the_jobs_of_the_group_since_the_start_of_the_chain() {
    let mut scene = Scene::new(PAIR);
    scene.dispatch("a");
    assert_eq!(scene.hops("a"), 0);
    for (hops, scan, next) in [(1, "a", "b"), (2, "b", "a"), (3, "a", "b")] {
        let cause = scene.next(scan);
        assert_eq!(
            (scene.hops(next), scene.job(next).causes),
            (hops, vec![cause])
        );
    }
    // A scan that follows the group is not a member.
    scene.next("b");
    assert_eq!(scene.hops("c"), 0);
    assert_eq!(scene.hops("a"), 4);
    // A slot or a dispatch begins a new chain.
    scene.next("a");
    scene.next("b");
    let waiting = scene.job("a").id;
    let cancel = |job| Cancel {
        job,
        actor: Actor::Daemon,
    };
    scene.test.run(cancel(waiting)).unwrap();
    scene.pass(40);
    scene.fire("a").unwrap();
    assert_eq!(scene.hops("a"), 0);
    scene.next("a");
    assert_eq!(scene.hops("b"), 1);
    let waiting = scene.job("b").id;
    scene.test.run(cancel(waiting)).unwrap();
    scene.dispatch("b");
    scene.next("b");
    assert_eq!(scene.hops("a"), 1);
    // A cause from outside of the group also begins a new chain.
    let waiting = scene.job("a").id;
    scene.test.run(cancel(waiting)).unwrap();
    scene.dispatch("outside");
    let outside = scene.next("outside");
    assert_eq!((scene.hops("a"), scene.job("a").causes), (0, vec![outside]));
    scene.next("a");
    assert_eq!(scene.hops("b"), 1);
}

#[test]
fn with_several_causes_the_most_hops_count_and_the_newest_are_listed() {
    let sources: Vec<String> = (0..=CAUSES).map(|at| format!("s{at}")).collect();
    let mut text = "scans:\n".to_owned();
    for name in &sources {
        text.push_str(&format!(
            "  {name}: {{on: {{dispatch: {{}}}}, steps: [{{run: x}}]}}\n"
        ));
    }
    text.push_str("  a: {on: {expr: 'true', dispatch: {}}, steps: [{run: x}]}\n");
    text.push_str("  b: {on: {expr: scans.a.is_available()}, steps: [{run: x}]}\n");
    let mut scene = Scene::new(&text);
    let first = scene.dispatch("a");
    let token = scene.test.claim(first, scene.runner).unwrap();
    scene.test.run(complete_all(first, token)).unwrap();
    let b = scene.job("b").id;
    let busy = scene.dispatch("a");
    let token = scene.test.claim(busy, scene.runner).unwrap();
    scene.succeed(b);
    let mut causes = vec![b];
    for name in &sources {
        let job = scene.dispatch(name);
        scene.succeed(job);
        causes.push(job);
    }
    causes.reverse();
    causes.truncate(CAUSES);
    scene.test.run(complete_all(busy, token)).unwrap();
    let made = scene.job("a");
    assert_eq!(made.causes, causes);
    assert_eq!(
        made.hops.count, 2,
        "the hops of `b` count although `b` is not listed"
    );
}

#[test]
fn a_retry_keeps_its_hops_and_its_causes() {
    let mut scene = Scene::new(PAIR);
    scene.dispatch("a");
    scene.next("a");
    let cause = scene.next("b");
    let job = scene.job("a");
    scene.test.now = job.not_before.unwrap();
    let token = scene.test.claim(job.id, scene.runner).unwrap();
    let failed = Complete {
        steps: vec![step(0, StepStatus::Failed, Some(StepOutcome::Failed))],
        ..complete_all(job.id, token)
    };
    scene.test.run(failed).unwrap();
    let retry = scene.job("a");
    assert_eq!(retry.retry_of.unwrap().job, job.id);
    assert_eq!((retry.hops, &retry.causes), (job.hops, &vec![cause]));
    scene.next("a");
    assert_eq!(scene.hops("b"), 3);
}

/// With these files, a daemon once created jobs without limit.
#[test]
fn cycles_without_a_condition_on_results_are_limited() {
    let of_c = "\"scans.c[0].state == 'succeeded' || scans.a.is_available()\"";
    for (b, c) in [("'true'", "vars.X == '1'"), (of_c, "size(scans.b) >= 0")] {
        let text = format!(
            "scans:
  a: {{on: {{dispatch: {{}}}}, steps: [{{run: x}}]}}
  b: {{on: {{expr: {b}}}, steps: [{{run: x}}]}}
  c: {{on: {{expr: {c}}}, steps: [{{run: x}}]}}
"
        );
        for (pause, most) in [(1_000, 65 * 2), (0, 605 * 2)] {
            let mut scene = Scene::new(&text);
            scene.test.cycle_pause = TimeDelta::milliseconds(pause);
            let x = SetVar {
                project: ProjectId::of_source(&source()),
                name: "X".to_owned(),
                value: "1".to_owned(),
                actor: Actor::Daemon,
                expects: Precondition::Anything,
            };
            scene.test.run(x).unwrap();
            scene.dispatch("a");
            let count = scene.run_for(TimeDelta::minutes(1));
            assert!(count <= most, "{b} {c}: {count} jobs in a minute");
            assert!(count > most / 4, "{b} {c}: a loop is possible ({count})");
        }
    }
}

#[test]
fn a_group_that_runs_in_circles_is_reported() {
    let mut scene = Scene::new(PAIR);
    scene.test.cycle_pause = TimeDelta::seconds(1);
    let circles =
        |scene: &Scene| -> Vec<Circle> { scene.test.world.seen_by(&Rights::admin()).circles() };
    scene.dispatch("a");
    // The first lap takes no time, each later lap takes two seconds.
    scene.run_for(TimeDelta::seconds(2 * 99 + 1));
    assert_eq!(circles(&scene), []);
    scene.run_for(TimeDelta::seconds(1));
    let [circle] = circles(&scene).try_into().unwrap();
    assert_eq!(
        circle
            .scans
            .iter()
            .map(|scan| scan.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert!(circle.laps > 100);
    assert!(scene.test.world.job(circle.job).is_some());
    // The report ends with the loop.
    for scan in ["a", "b"] {
        for job in scene.jobs(scan) {
            let actor = Actor::Daemon;
            scene.test.run(Cancel { job, actor }).unwrap();
        }
    }
    assert_eq!(circles(&scene), []);
}
