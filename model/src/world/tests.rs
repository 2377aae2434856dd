//! What the world keeps, and what it lets go.

use serde_json::json;

use super::*;
use crate::Actor;
use crate::decide::{Cancel, DeleteJob};
use crate::testing::{House, NIGHTLY, complete};

#[test]
fn only_heads_remain_of_finished_jobs() {
    let mut house = House::new();
    for number in 0..20 {
        let (job, token) = house.running();
        let workflow = house.world.job(job).unwrap().workflow.id;
        let waiting = house.dispatch(workflow, "probe", json!({})).unwrap();
        house.push("nightly", &format!("{NIGHTLY}# {number}\n"));
        house.run(complete(job, token)).unwrap();
        let cancel = Cancel {
            job: waiting,
            actor: Actor::Daemon,
        };
        house.run(cancel).unwrap();
    }
    let world = &house.world;
    assert!(world.jobs.is_empty());
    assert_eq!((world.heads.len(), world.revisions.len()), (1, 1));
}

#[test]
fn the_newest_job_and_order_follow_from_heads_only() {
    let mut house = House::new();
    let (job, token) = house.running();
    house.run(complete(job, token)).unwrap();
    let mut loaded = World::default();
    for head in house.world.heads() {
        loaded.apply(&Change::Head(head.clone()));
    }
    assert_eq!(loaded.latest_job(), job);
    assert_eq!(loaded.latest_order(), house.order);
}

#[test]
fn a_token_is_not_found_by_a_hash_it_had_before() {
    let mut house = House::new();
    let create = crate::decide::CreateToken {
        name: "ci".to_owned(),
        scopes: crate::Scopes::admin(),
        life: None,
        projects: crate::Projects::All,
        granted_by: crate::Rights::admin(),
    };
    let made = house.run(create).unwrap();
    let changed = Token {
        hash: TokenHash::of("regenerated"),
        ..Token::clone(&made.token)
    };
    house.world.apply(&Change::Token(Arc::new(changed)));
    assert!(house.world.token_of(&made.secret.hash()).is_none());
    assert!(
        house
            .world
            .token_of(&TokenHash::of("regenerated"))
            .is_some()
    );
}

/// Adds up what there is of a workflow's finished jobs, and holds the stock to it.
fn counted(house: &House, workflow: WorkflowId) -> Stock {
    let heads = house.world.heads().filter(|head| head.workflow == workflow);
    let retained = heads.map(|head| house.world.retained(head));
    let sum = retained.fold(Stock::default(), |sum, retained| Stock {
        jobs: sum.jobs + retained.jobs(),
        bytes: sum.bytes + retained.bytes,
    });
    let stock = house.world.stocks().get(&workflow).copied();
    assert_eq!(stock.unwrap_or_default(), sum);
    sum
}

#[test]
fn the_finished_jobs_of_each_workflow_are_counted() {
    let mut house = House::new();
    let (job, token) = house.running();
    let workflow = house.world.job(job).unwrap().workflow.id;
    let other = house.push("other", NIGHTLY);
    let ended = house.run(complete(job, token)).unwrap();
    assert_eq!(counted(&house, workflow).bytes, 300);
    let runner = house.world.runners().next().unwrap().id;
    let second = house.dispatch(other, "probe", json!({})).unwrap();
    let token = house.claim(second, runner).unwrap();
    assert_eq!(counted(&house, other), Stock::default());
    house.run(complete(second, token)).unwrap();
    let delete = DeleteJob {
        job: ended,
        actor: Actor::Daemon,
    };
    house.run(delete).unwrap();
    assert_eq!(counted(&house, workflow), Stock::default());
    assert_eq!(counted(&house, other).jobs, 1);
}
