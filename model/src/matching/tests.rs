//! Turns, labels, age, and jobs that must not be offered.

use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::SourceName;
use crate::decide::Retire;
use crate::testing::{NIGHTLY, TestWorld};

/// Offers jobs until none is left. Returns them in the order of the turns.
fn offered(test: &TestWorld, labels: &[&str]) -> Vec<(WorkflowId, JobId)> {
    let reach = Reach::labelled(labels);
    let mut turns = Turns::default();
    let mut taken = HashSet::new();
    let mut offers = Vec::new();
    let time = test.world.time(test.steady());
    while let Some((turn, job)) = next_job(&test.world, &reach, &turns, time, |job| {
        taken.contains(&job)
    }) {
        assert!(taken.insert(job), "{job} is offered twice");
        turns.serve(turn);
        turns.keep_waiting(&test.world);
        offers.push((turn.workflow, job));
    }
    offers
}

#[test]
fn workflows_take_turns_and_offer_their_oldest_job_first() {
    let mut test = TestWorld::new();
    let (busy, quiet) = (test.push("busy", NIGHTLY), test.push("quiet", NIGHTLY));
    let order = [busy, busy, busy, quiet, quiet];
    let jobs = order.map(|workflow| test.dispatch(workflow, "probe", json!({})).unwrap());
    let expected = [0, 3, 1, 4, 2].map(|at| (order[at], jobs[at]));
    assert_eq!(offered(&test, &[]), expected);
}

#[test]
fn a_runner_needs_every_label_of_the_scan() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let strict = test
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    let probe = test.dispatch(workflow, "probe", json!({})).unwrap();
    for labels in [&[][..], &["linux"], &["gpu", "Linux"]] {
        assert_eq!(offered(&test, labels), [(workflow, probe)], "{labels:?}");
    }
    let all = [(workflow, strict), (workflow, probe)];
    assert_eq!(offered(&test, &["gpu", "arm", "linux"]), all);
}

#[test]
fn jobs_that_need_other_labels_are_not_visited() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    for _ in 0..20 {
        test.dispatch(workflow, "strict", json!({"target": "x"}))
            .unwrap();
    }
    let visited = std::cell::Cell::new(0);
    let none = next_job(
        &test.world,
        &Reach::default(),
        &Turns::default(),
        test.now,
        |_| {
            visited.set(visited.get() + 1);
            false
        },
    );
    assert_eq!((none, visited.get()), (None, 0));
}

#[test]
fn running_jobs_and_orphans_are_not_offered() {
    let mut test = TestWorld::new();
    let (running, _) = test.running();
    let workflow = test.world.job(running).unwrap().workflow.id;
    let waiting = test.dispatch(workflow, "probe", json!({})).unwrap();
    assert_eq!(offered(&test, &[]), [(workflow, waiting)]);
    test.run(Retire { workflow }).unwrap();
    assert_eq!(offered(&test, &[]), []);
}

#[test]
fn turns_forget_workflows_without_waiting_jobs() {
    let mut test = TestWorld::new();
    let waiting = test.push("nightly", NIGHTLY);
    test.dispatch(waiting, "probe", json!({})).unwrap();
    let kept = Turn {
        project: ProjectId::of_source(&crate::testing::source()),
        workflow: waiting,
    };
    let mut turns = Turns::default();
    for number in 0..1_000 {
        let name = number.to_string();
        let source: SourceName = format!("s{number}").parse().unwrap();
        turns.serve(Turn {
            project: ProjectId::of_source(&source),
            workflow: WorkflowId::derive(&source, &name),
        });
        turns.serve(kept);
        turns.keep_waiting(&test.world);
        assert!(turns.workflows.len() < 32 && turns.projects.len() < 32);
    }
    assert!(turns.workflows.contains_key(&waiting));
    assert!(turns.projects.contains_key(&kept.project));
}
