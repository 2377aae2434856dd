//! The records that the world keeps, and the records that it removes.

use serde_json::json;

use super::*;
use crate::Actor;
use crate::decide::{Cancel, DeleteJob};
use crate::testing::{NIGHTLY, TestWorld, complete};

#[test]
fn only_the_heads_of_finished_jobs_stay() {
    let mut test = TestWorld::new();
    for number in 0..20 {
        let (job, token) = test.running();
        let workflow = test.world.job(job).unwrap().workflow.id;
        let waiting = test.dispatch(workflow, "probe", json!({})).unwrap();
        test.push("nightly", &format!("{NIGHTLY}# {number}\n"));
        test.run(complete(job, token)).unwrap();
        let cancel = Cancel {
            job: waiting,
            actor: Actor::Daemon,
        };
        test.run(cancel).unwrap();
    }
    let world = &test.world;
    assert!(world.jobs.is_empty());
    assert_eq!((world.heads.len(), world.revisions.len()), (1, 1));
}

#[test]
fn the_newest_job_and_order_are_known_from_heads() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    test.run(complete(job, token)).unwrap();
    let mut loaded = World::default();
    for head in test.world.heads() {
        loaded.apply(&Change::Head(head.clone()));
    }
    assert_eq!(loaded.latest_job(), job);
    assert_eq!(loaded.latest_order(), test.order);
}

#[test]
fn a_token_is_not_found_by_its_earlier_hash() {
    let mut test = TestWorld::new();
    let create = crate::decide::CreateToken {
        name: "ci".to_owned(),
        scopes: crate::Scopes::admin(),
        life: None,
        projects: crate::Projects::All,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: crate::Rights::admin(),
        ends_by: None,
    };
    let made = test.run(create).unwrap();
    let changed = Token {
        hash: TokenHash::of("regenerated"),
        ..Token::clone(&made.token)
    };
    test.world.apply(&Change::Token(Arc::new(changed)));
    assert!(test.world.token_of(&made.secret.hash()).is_none());
    assert!(test.world.token_of(&TokenHash::of("regenerated")).is_some());
}

/// Adds up the finished jobs of a workflow, and compares the result with the stock.
fn counted(test: &TestWorld, workflow: WorkflowId) -> Stock {
    let heads = test.world.heads().filter(|head| head.workflow == workflow);
    let retained = heads.map(|head| test.world.retained(head));
    let sum = retained.fold(Stock::default(), |sum, retained| Stock {
        jobs: sum.jobs + retained.jobs(),
        bytes: sum.bytes + retained.bytes,
    });
    let stock = test.world.stocks().get(&workflow).copied();
    assert_eq!(stock.unwrap_or_default(), sum);
    sum
}

#[test]
fn the_finished_jobs_of_each_workflow_are_counted() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let workflow = test.world.job(job).unwrap().workflow.id;
    let other = test.push("other", NIGHTLY);
    let ended = test.run(complete(job, token)).unwrap();
    assert_eq!(counted(&test, workflow).bytes, 300);
    let runner = test.world.runners().next().unwrap().id;
    let second = test.dispatch(other, "probe", json!({})).unwrap();
    let token = test.claim(second, runner).unwrap();
    assert_eq!(counted(&test, other), Stock::default());
    test.run(complete(second, token)).unwrap();
    let delete = DeleteJob {
        job: ended,
        actor: Actor::Daemon,
    };
    test.run(delete).unwrap();
    assert_eq!(counted(&test, workflow), Stock::default());
    assert_eq!(counted(&test, other).jobs, 1);
}
