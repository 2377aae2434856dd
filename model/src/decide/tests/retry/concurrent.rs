//! A retry among the other jobs of its scan.

use super::*;
use crate::decide::{Claim, ClaimOutcome, Consider, Considered, Evaluate, check_rerun};
use crate::ledger::{Cause, Outcome};
use crate::{TokenHash, Trigger};

#[test]
fn a_pending_retry_counts_as_active_and_each_slot_has_one_record() {
    let mut scene = Scene::new();
    let first = scene.fire("poke").unwrap();
    let retry = scene.retry(first);
    assert_eq!(scene.fire("poke"), None, "skipped");
    scene.succeed(retry);
    let next = scene.fire("poke").unwrap();
    let records = scene.ledger("poke");
    let outcomes: Vec<_> = records.iter().map(|record| &record.outcome).collect();
    let reason = Reason::Overlap { job: retry };
    let expected = [
        &Outcome::Made { job: first },
        &Outcome::NotMade { reason },
        &Outcome::Made { job: next },
    ];
    assert_eq!(outcomes, expected);
    for record in records {
        assert!(matches!(record.cause, Cause::Slots { count: 1, .. }));
    }
}

#[test]
fn the_expression_is_not_evaluated_again_for_a_retry() {
    let mut scene = Scene::new();
    let source = scene.dispatch("source");
    scene.succeed(source);
    let [first] = scene.unfinished("after")[..] else {
        panic!("the success starts a job")
    };
    let retry = scene.retry(first);
    assert_eq!(scene.job(retry).trigger, Trigger::Expr);
    // The scan has run since the success, so its expression is false now.
    scene.test.pass(TimeDelta::seconds(10));
    let claim = Claim {
        job: retry,
        runner: scene.runner,
        token: TokenHash::of(&retry.to_string()),
        job_token: None,
        evaluate: Evaluate::CHEAP,
    };
    let outcome = scene.test.run(claim).unwrap();
    assert!(matches!(outcome, ClaimOutcome::Claimed(_)));
    let claimed = scene
        .test
        .world
        .head(&key(scene.workflow, "after"))
        .unwrap();
    assert_eq!(claimed.latest_claim, Some(scene.test.order));

    // A success during the chain is checked when the chain has ended.
    let source = scene.dispatch("source");
    scene.succeed(source);
    assert_eq!(scene.unfinished("after"), [retry]);
    let token = TokenHash::of(&retry.to_string());
    let ended = scene.test.run(failed(complete_all(retry, token))).unwrap();
    assert_eq!(ended.retried_by, None, "the last attempt");
    let next = scene.unfinished("after");
    assert_eq!(next.len(), 1, "created in the commit of the end");
    assert_eq!(scene.job(next[0]).retry_of, None);
}

#[test]
fn the_end_of_a_job_starts_no_other_job_while_its_retry_waits() {
    let mut scene = Scene::new();
    let source = scene.dispatch("source");
    scene.succeed(source);
    let [first] = scene.unfinished("after")[..] else {
        panic!("the success starts a job")
    };
    let token = scene.test.claim(first, scene.runner).unwrap();
    let source = scene.dispatch("source");
    scene.succeed(source);
    let ended = scene.test.run(failed(complete_all(first, token))).unwrap();
    let retry = ended.retried_by.unwrap();
    assert_eq!(scene.unfinished("after"), [retry]);
    let scan = key(scene.workflow, "after");
    let consider = Consider {
        scan,
        evaluate: Evaluate::HERE,
    };
    let considered = scene.test.run(consider).unwrap();
    assert_eq!(considered, Considered::Settled(None));
}

#[test]
fn a_rerun_is_refused_while_the_chain_is_unfinished() {
    let mut scene = Scene::new();
    let id = scene.dispatch("poke");
    let first = scene.fail(id);
    let retry = first.retried_by.unwrap();
    let refused = check_rerun(&scene.test.world, &first, scene.job(retry)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "job {id} is retried as {retry}, which is not finished; wait for it, or cancel it first"
        )
    );
    let over = scene.cancel(retry);
    assert_eq!(check_rerun(&scene.test.world, &first, &over), Ok(()));
}
