//! Events that are no condition: artifacts, removed workflows, and slots without a job.

use chrono::TimeDelta;
use serde_json::json;

use super::deliveries::{MANUAL, hook, minutes, name, project, sent};
use crate::decide::{Complete, Fire, Retire, SetRule, StoreArtifact, Suspend};
use crate::event::What;
use crate::testing::{TestWorld, complete, complete_all, key, succeeded};
use crate::{Actor, Change, ScanKey};
use workflow::notify::{EventName, Rule};

const ARTIFACTS: &str = "
scans:
  probe:
    on: {dispatch: {}}
    steps: [{run: once}]
    artifacts:
      - {name: hosts, paths: [a], notify_on: diff}
      - {name: report, paths: [b], notify_on: always}
      - {name: quiet, paths: [c]}
";

#[test]
fn artifacts_are_reported_as_they_say() {
    let mut test = TestWorld::new();
    let probe = key(test.push("w", ARTIFACTS), "probe");
    test.run(hook(project(), "ops")).unwrap();
    let runner = test.runner("first", &[]);
    let mut reported = |hosts: &str| {
        let job = test.dispatch(probe.workflow, "probe", json!({})).unwrap();
        let token = test.claim(job, runner).unwrap();
        for (name, digest) in [("hosts", hosts), ("report", "same"), ("quiet", hosts)] {
            test.run(StoreArtifact {
                job,
                token,
                name: name.to_owned(),
                size: 1,
                sha256: "ab".to_owned(),
                content_digest: digest.to_owned(),
            })
            .unwrap();
        }
        let complete = Complete {
            steps: succeeded(1),
            ..complete(job, token)
        };
        let changes = test.changes(complete).unwrap().0;
        let names = changes.iter().filter_map(|change| match change {
            Change::Event(event) => match &event.what {
                What::Artifact { artifact, .. } => Some(artifact.clone()),
                _ => None,
            },
            _ => None,
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        reported("one"),
        ["hosts", "report"],
        "the first success differs"
    );
    assert_eq!(reported("one"), ["report"]);
    assert_eq!(reported("two"), ["hosts", "report"]);
}

#[test]
fn a_removed_workflow_is_an_event() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", MANUAL);
    let (changes, ()) = test.changes(Retire { workflow }).unwrap();
    let is_event = |change: &Change| matches!(change, Change::Event(event) if event.what == What::WorkflowRemoved);
    assert_eq!(changes.iter().filter(|change| is_event(change)).count(), 1);
}

/// A world with a channel that gets missed slots, and a scan with this schedule each hour.
fn hourly(on: &str) -> (TestWorld, ScanKey) {
    let mut test = TestWorld::new();
    test.now = "2026-11-21T10:30:00Z".parse().unwrap();
    let text = format!(
        "scans: {{dump: {{on: {{cron: '0 * * * *', dispatch: {{}}{on}, steps: [{{run: x}}]}}}}"
    );
    let scan = key(test.push("w", &text), "dump");
    test.run(hook(project(), "ops")).unwrap();
    let rule = Rule {
        events: [EventName::SlotMissed].into(),
        ..Rule::of(name("ops"))
    };
    let project = project();
    test.run(SetRule { project, rule }).unwrap();
    (test, scan)
}

/// Lets so many hours pass, and then checks the schedule.
fn hours(test: &mut TestWorld, scan: &ScanKey, hours: i64) {
    test.pass(TimeDelta::hours(hours));
    test.run(Fire { scan: scan.clone() }).unwrap();
}

#[test]
fn slots_that_passed_while_the_daemon_was_down_are_one_event_each_time() {
    let (mut test, scan) = hourly(", catch_up: none}");
    // Each time the daemon was down, nothing in between resets the run of equal outcomes.
    for _ in 0..3 {
        hours(&mut test, &scan, 5);
        assert_eq!(sent(&mut test), [["missed"]]);
    }
    test.now = "2026-11-22T02:00:00Z".parse().unwrap();
    hours(&mut test, &scan, 0);
    assert_eq!(test.world.jobs_of(&scan).count(), 1);
    minutes(&mut test, 1);
    assert!(sent(&mut test).is_empty(), "the slot was in time");
}

#[test]
fn slots_that_are_merged_with_a_newer_one_are_missed() {
    for (catch_up, missed) in [("latest", true), ("all", false)] {
        let (mut test, scan) = hourly(&format!(", catch_up: {catch_up}}}"));
        hours(&mut test, &scan, 5);
        assert_eq!(!sent(&mut test).is_empty(), missed, "{catch_up}");
        assert_eq!(test.world.outbox().len(), 0);
    }
}

#[test]
fn a_slot_that_the_overlap_policy_refuses_is_missed() {
    for overlap in ["skip", "replace"] {
        let (mut test, scan) = hourly(&format!("}}, overlap: {overlap}"));
        let job = test.dispatch(scan.workflow, "dump", json!({})).unwrap();
        for _ in 0..2 {
            hours(&mut test, &scan, 1);
            assert_eq!(sent(&mut test), [["missed"]], "{overlap}");
        }
        let runner = test.runner("first", &[]);
        let token = test.claim(job, runner).unwrap();
        test.run(complete_all(job, token)).unwrap();
        hours(&mut test, &scan, 1);
        assert!(sent(&mut test).is_empty(), "{overlap}");
    }
}

#[test]
fn a_slot_during_a_suspension_is_not_missed() {
    let (mut test, scan) = hourly("}");
    let suspend = Suspend {
        workflow: scan.workflow,
        scan: Some("dump".to_owned()),
        reason: "holidays".to_owned(),
        actor: Actor::Daemon,
    };
    test.run(suspend).unwrap();
    hours(&mut test, &scan, 5);
    assert!(sent(&mut test).is_empty());
}
