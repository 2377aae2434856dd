//! Turns, labels, age, and jobs nobody is to run.

use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::decide::Retire;
use crate::testing::{House, NIGHTLY};

/// Offers until nothing is left; names the workflows in the order of their turns.
fn offered(house: &House, labels: &[&str]) -> Vec<(WorkflowId, JobId)> {
    let abilities = Abilities::labelled(labels);
    let mut turns = Turns::default();
    let mut taken = HashSet::new();
    let mut offers = Vec::new();
    let time = house.world.time(house.steady());
    while let Some((workflow, job)) = next_job(&house.world, &abilities, &turns, time, |job| {
        taken.contains(&job)
    }) {
        assert!(taken.insert(job), "{job} is offered twice");
        turns.serve(workflow);
        turns.keep_waiting(&house.world);
        offers.push((workflow, job));
    }
    offers
}

#[test]
fn workflows_take_turns_and_each_gives_its_oldest_job() {
    let mut house = House::new();
    let (busy, quiet) = (house.push("busy", NIGHTLY), house.push("quiet", NIGHTLY));
    let order = [busy, busy, busy, quiet, quiet];
    let jobs = order.map(|workflow| house.dispatch(workflow, "probe", json!({})).unwrap());
    let expected = [0, 3, 1, 4, 2].map(|at| (order[at], jobs[at]));
    assert_eq!(offered(&house, &[]), expected);
}

#[test]
fn a_runner_needs_every_label_of_the_scan() {
    let mut house = House::new();
    let workflow = house.push("nightly", NIGHTLY);
    let strict = house
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    let probe = house.dispatch(workflow, "probe", json!({})).unwrap();
    for labels in [&[][..], &["linux"], &["gpu", "Linux"]] {
        assert_eq!(offered(&house, labels), [(workflow, probe)], "{labels:?}");
    }
    let all = [(workflow, strict), (workflow, probe)];
    assert_eq!(offered(&house, &["gpu", "arm", "linux"]), all);
}

#[test]
fn jobs_that_need_other_labels_are_not_visited() {
    let mut house = House::new();
    let workflow = house.push("nightly", NIGHTLY);
    for _ in 0..20 {
        house
            .dispatch(workflow, "strict", json!({"target": "x"}))
            .unwrap();
    }
    let looked_at = std::cell::Cell::new(0);
    let none = next_job(
        &house.world,
        &Abilities::default(),
        &Turns::default(),
        house.now,
        |_| {
            looked_at.set(looked_at.get() + 1);
            false
        },
    );
    assert_eq!((none, looked_at.get()), (None, 0));
}

#[test]
fn running_jobs_and_orphans_are_not_offered() {
    let mut house = House::new();
    let (running, _) = house.running();
    let workflow = house.world.job(running).unwrap().workflow.id;
    let waiting = house.dispatch(workflow, "probe", json!({})).unwrap();
    assert_eq!(offered(&house, &[]), [(workflow, waiting)]);
    house.run(Retire { workflow }).unwrap();
    assert_eq!(offered(&house, &[]), []);
}

#[test]
fn turns_forget_workflows_that_have_nothing_waiting() {
    let mut house = House::new();
    let waiting = house.push("nightly", NIGHTLY);
    house.dispatch(waiting, "probe", json!({})).unwrap();
    let mut turns = Turns::default();
    for number in 0..1_000 {
        let name = number.to_string();
        turns.serve(WorkflowId::derive(&crate::testing::source(), &name));
        turns.serve(waiting);
        turns.keep_waiting(&house.world);
        assert!(turns.served.len() < 32);
    }
    assert!(turns.served.contains_key(&waiting));
}
