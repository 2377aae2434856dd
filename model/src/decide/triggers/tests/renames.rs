//! Renamed scans, which continue with the results of their old names.

use super::*;
use crate::decide::{EndJob, Loss, Suspend};

const CHAIN: &str = "
scans:
  hosts:
    on: {dispatch: {}}
    steps: [{run: x}]
  resolve:
    on: {expr: 'scans.hosts.is_available()'}
    steps: [{run: x}]
  report:
    on: {expr: \"scans.resolve.is_available() && scans['resolve'].size() > 0\"}
    steps: [{run: x}]
  reader:
    on: {expr: scans.resolve.has_news()}
    steps: [{run: x}]
  probe:
    on: {dispatch: {}}
    env: {R: '${{ scans.resolve.last_success().id }}', S: '${{ scans.resolve[0].id }}'}
    steps: [{run: x}]
  nightly:
    on: {cron: '0 * * * *'}
    steps: [{run: x}]
";

/// The chain with new names for `resolve` and `nightly`. With `declares`, both declare their former names.
fn renamed(declares: bool) -> String {
    let from = |name: &str| {
        if declares {
            format!("renamed_from: {name}\n    ")
        } else {
            String::new()
        }
    };
    let text = CHAIN
        .replace(
            "  resolve:\n    ",
            &format!("  lookup:\n    {}", from("resolve")),
        )
        .replace(
            "  nightly:\n    ",
            &format!("  hourly:\n    {}", from("nightly")),
        );
    text.replace("scans.resolve", "scans.lookup")
        .replace("scans['resolve']", "scans['lookup']")
}

impl Scene {
    /// Runs all waiting jobs, oldest first.
    fn run_all(&mut self) {
        loop {
            let next = self.test.world.jobs().next().map(|job| job.id);
            let Some(next) = next else { break };
            self.succeed(next);
        }
    }

    fn rename(&mut self) {
        self.test.push("loop", &renamed(true));
    }

    /// The context of a new job of `probe`.
    fn probe(&mut self) -> workflow::Context {
        let probe = self.dispatch("probe");
        self.test.claim(probe, self.runner).unwrap();
        let job = self.test.world.job(probe).unwrap();
        job.state.run().unwrap().context.clone()
    }
}

#[test]
fn a_renamed_scan_without_finished_jobs_is_found_by_its_old_name() {
    let mut scene = Scene::new(CHAIN);
    scene.rename();
    let [old, new] = ["resolve", "lookup"].map(|name| key(scene.workflow, name));
    assert_eq!(scene.test.world.heir(&old), Some(new));
}

#[test]
fn a_scan_keeps_its_results_only_if_it_declares_its_former_name() {
    for declares in [true, false] {
        let mut scene = Scene::new(CHAIN);
        let hosts = scene.dispatch("hosts");
        scene.run_all();
        let checked_before = scene.ledger("reader").len();
        scene.test.push("loop", &renamed(declares));
        let seen = scene.probe().scans["lookup"].clone();
        let read = (seen.size, seen.jobs.len(), seen.successes);
        assert_eq!(read, if declares { (1, 1, 1) } else { (0, 0, 0) });
        assert_eq!(seen.newest_success_ids.len(), usize::from(declares));
        let (old, new) = (
            key(scene.workflow, "resolve"),
            key(scene.workflow, "lookup"),
        );
        let heir = declares.then(|| new.clone());
        assert_eq!(scene.test.world.heir(&old), heir);
        if !declares {
            continue;
        }
        let head = scene.test.world.head(&new).unwrap();
        assert_eq!(head.totals.jobs(), 0, "its jobs keep the old name");
        assert_eq!(scene.test.world.head(&old).unwrap().totals.jobs(), 1);
        // Successes that were considered under the old name are not considered again, and processed results are not
        // new.
        assert_eq!(scene.consider("lookup"), None);
        assert_eq!(scene.consider("report"), None);
        assert_eq!(scene.consider("reader"), None);
        let checks = scene.ledger("reader").split_off(checked_before);
        assert!(
            checks
                .iter()
                .all(|check| check.evaluation.as_ref().unwrap().holds() == Some(false))
        );
        let _ = hosts;
        let again = scene.dispatch("hosts");
        scene.succeed(again);
        assert_eq!(scene.jobs("lookup").len(), 1);
        scene.run_all();
        let after = scene.probe().scans["lookup"].clone();
        assert_eq!((after.size, after.jobs.len(), after.successes), (2, 2, 2));
    }
}

#[test]
fn a_success_not_considered_under_the_old_name_is_evaluated_for_the_new_name() {
    let mut scene = Scene::new(CHAIN);
    let hosts = scene.dispatch("hosts");
    scene.test.may_make_jobs = false;
    scene.succeed(hosts);
    scene.test.may_make_jobs = true;
    scene.rename();
    let lookup = key(scene.workflow, "lookup");
    assert!(scene.test.world.unseen().contains(&lookup));
    assert!(scene.consider("lookup").is_some());
}

#[test]
fn a_job_that_ends_under_the_old_name_is_a_result_of_the_new_name() {
    let mut scene = Scene::new(CHAIN);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [running] = scene.jobs("resolve").try_into().unwrap();
    let token = scene.test.claim(running, scene.runner).unwrap();
    let again = scene.dispatch("hosts");
    scene.succeed(again);
    scene.rename();
    scene.test.run(complete_all(running, token)).unwrap();
    assert_eq!(scene.jobs("report").len(), 1);
    assert_eq!(
        scene.ledger("report")[0].cause,
        Cause::Success {
            scan: "lookup".to_owned(),
            job: running
        }
    );
    // The success of `hosts` was waiting for the job, and is newer than its claim.
    assert_eq!(scene.jobs("lookup").len(), 1);
    let after = scene.probe().scans["lookup"].clone();
    assert_eq!((after.size, after.successes), (2, 1));
}

#[test]
fn a_renamed_schedule_continues_at_the_cursor_of_the_old_name() {
    let mut scene = Scene::new(CHAIN);
    scene.pass(40);
    scene.rename();
    let slot = at("2026-11-21T11:00:00Z");
    let made = scene.fire("hourly").unwrap();
    let reason = scene.test.world.job(made).unwrap().reason.clone();
    assert_eq!(
        reason,
        Reason::SlotDue {
            slot,
            schedule: None
        }
    );
    scene.succeed(made);
    scene.test.push(
        "loop",
        &renamed(true).replace(
            "hourly:\n    renamed_from: nightly",
            "again:\n    renamed_from: hourly",
        ),
    );
    assert_eq!(scene.fire("again"), None, "a slot is checked once");
}

#[test]
fn a_suspended_scan_stays_suspended_under_its_new_name() {
    let mut scene = Scene::new(CHAIN);
    let suspend = Suspend {
        workflow: scene.workflow,
        scan: Some("nightly".to_owned()),
        reason: "too loud".to_owned(),
        actor: Actor::Daemon,
    };
    scene.test.run(suspend).unwrap();
    scene.rename();
    let hourly = key(scene.workflow, "hourly");
    assert!(scene.test.world.suspension(&hourly).is_some());
    let resume = crate::decide::Resume {
        workflow: scene.workflow,
        scan: Some("hourly".to_owned()),
        reason: None,
        actor: Actor::Daemon,
    };
    scene.test.run(resume).unwrap();
    scene
        .test
        .push("loop", &format!("{}# changed\n", renamed(true)));
    assert!(
        scene.test.world.suspension(&hourly).is_none(),
        "the suspension is taken over once"
    );
}

/// A scan that is renamed and renamed back keeps all results.
#[test]
fn a_former_name_that_is_used_again_takes_over_both_results() {
    let mut scene = Scene::new(CHAIN);
    scene.dispatch("hosts");
    scene.run_all();
    scene.rename();
    scene.dispatch("hosts");
    scene.run_all();
    let back = CHAIN.replace("  resolve:\n", "  resolve:\n    renamed_from: lookup\n");
    scene.test.push("loop", &back);
    assert_eq!(scene.consider("reader"), None);
    scene.dispatch("hosts");
    scene.run_all();
    let seen = scene.probe().scans["resolve"].clone();
    assert_eq!((seen.size, seen.jobs.len(), seen.successes), (3, 3, 3));
}

#[test]
fn the_cause_of_a_waiting_job_of_the_old_name_makes_a_job_of_the_new_name() {
    let mut scene = Scene::new(CHAIN);
    let hosts = scene.dispatch("hosts");
    scene.succeed(hosts);
    let [waiting] = scene.jobs("resolve").try_into().unwrap();
    scene.pass(60);
    let slot = scene.fire("nightly").unwrap();
    scene.rename();
    for job in [waiting, slot] {
        scene.test.run(EndJob::new(job, Loss::Retired)).unwrap();
    }
    assert!(scene.jobs("lookup").is_empty());
    assert!(scene.consider("lookup").is_some());
    assert!(scene.fire("hourly").is_some());
}
