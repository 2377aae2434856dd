//! How a condition ended.

use chrono::TimeDelta;
use serde_json::json;

use super::deliveries::MANUAL;
use crate::condition::{Ended, Problem, Subject};
use crate::decide::{Acknowledge, Complete, Measure, RemoveRunner, Retire};
use crate::event::What;
use crate::testing::{TestWorld, activate, complete, key, step, succeeded};
use crate::{Actor, Change, ScanKey, StepOutcome, StepStatus};

/// Runs a job of the scan that takes a minute.
fn run(test: &mut TestWorld, scan: &ScanKey, succeeds: bool) -> Vec<Change> {
    let known = test.world.runners().next().map(|runner| runner.id);
    let runner = known.unwrap_or_else(|| test.runner("first", &[]));
    let job = test
        .dispatch(scan.workflow, scan.scan.as_str(), json!({}))
        .unwrap();
    let token = test.claim(job, runner).unwrap();
    test.pass(TimeDelta::minutes(1));
    let failed = vec![step(0, StepStatus::Failed, Some(StepOutcome::Failed))];
    let complete = Complete {
        steps: if succeeds { succeeded(1) } else { failed },
        ..complete(job, token)
    };
    test.changes(complete).unwrap().0
}

/// How the conditions ended that these changes close.
fn ends(changes: &[Change]) -> Vec<Ended> {
    let ended = |change: &Change| match change {
        Change::Event(event) => match &event.what {
            What::Closed { ended, .. } => Some(ended.clone()),
            _ => None,
        },
        _ => None,
    };
    changes.iter().filter_map(ended).collect()
}

fn removed(label: &str) -> Vec<Ended> {
    let label = label.to_owned();
    vec![Ended::Removed { label }]
}

#[test]
fn only_a_success_cures_a_failure() {
    let mut test = TestWorld::new();
    let scan = key(test.push("w", MANUAL), "manual");
    run(&mut test, &scan, false);
    assert_eq!(ends(&run(&mut test, &scan, true)), [Ended::Cured]);

    run(&mut test, &scan, false);
    let acknowledge = Acknowledge {
        condition: test.world.conditions().next().unwrap().id,
        note: Some("known".to_owned()),
        actor: Actor::Daemon,
    };
    let (changes, condition) = test.changes(acknowledge).unwrap();
    let settled = condition.acknowledged.clone().unwrap();
    assert_eq!(ends(&changes), [Ended::Acknowledged(settled)]);

    run(&mut test, &scan, false);
    let failing = &test.world.conditions().next().unwrap().problem;
    let is_unknown = matches!(
        failing,
        Problem::Failing {
            succeeded: Some(_),
            fine_since: None,
            ..
        }
    );
    assert!(is_unknown, "it has failed before: {failing:?}");
    let text = MANUAL.replace("manual", "renamed");
    let changes = test.changes(activate("w", &text)).unwrap().0;
    assert_eq!(ends(&changes), removed("recon/w manual"));
}

#[test]
fn a_removed_workflow_or_runner_is_not_cured() {
    let mut test = TestWorld::new();
    let scan = key(test.push("w", MANUAL), "manual");
    run(&mut test, &scan, false);
    let workflow = scan.workflow;
    assert_eq!(
        ends(&test.changes(Retire { workflow }).unwrap().0),
        removed("recon/w manual")
    );

    let runner = test.runner("box", &[]);
    let lost = Measure {
        subject: Subject::Runner { runner },
        problems: vec![Problem::RunnerLost],
    };
    test.run(lost).unwrap();
    let (changes, _) = test
        .changes(RemoveRunner {
            runner,
            by: crate::Rights::admin(),
        })
        .unwrap();
    assert_eq!(ends(&changes), removed("runner box"));
    assert_eq!(test.world.conditions().len(), 0);
}
