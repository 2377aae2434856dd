//! The end of a chain of retries.

use super::*;
use crate::decide::{Resume, Retire};

#[test]
fn the_chain_ends_with_its_last_attempt_or_a_success() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let second = scene.retry(first);
    let now = scene.test.now;
    let third = scene.retry(second);
    let retry = scene.job(third).retry_of.unwrap();
    assert_eq!((retry.attempt, retry.attempts), (3, 3));
    let due = now + TimeDelta::minutes(1);
    assert_eq!(scene.job(third).not_before, Some(due), "doubled");
    assert_eq!(scene.fail(third).retried_by, None);
    assert!(scene.unfinished("poke").is_empty());

    let first = scene.dispatch("poke");
    let second = scene.retry(first);
    scene.succeed(second);
    assert!(scene.unfinished("poke").is_empty());
    let source = scene.dispatch("source");
    assert_eq!(scene.fail(source).retried_by, None, "it has no `retry`");
}

#[test]
fn jobs_of_a_removed_or_suspended_scan_are_not_retried() {
    let mut scene = Scene::new();
    let jobs: Vec<_> = (0..3).map(|_| scene.dispatch("poke")).collect();
    scene
        .test
        .run(suspend(scene.workflow))
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    assert!(scene.test.claim(jobs[0], scene.runner).is_err(), "held");
    let resume = Resume {
        workflow: scene.workflow,
        scan: None,
        reason: None,
        actor: Actor::Daemon,
    };
    scene.test.run(resume).unwrap();

    let token = scene.test.claim(jobs[0], scene.runner).unwrap();
    let other = scene.test.claim(jobs[1], scene.runner).unwrap();
    scene.test.run(suspend(scene.workflow)).unwrap();
    let ended = scene.test.run(failed(complete_all(jobs[0], token)));
    assert_eq!(ended.unwrap().retried_by, None, "suspended");
    scene
        .test
        .run(Retire {
            workflow: scene.workflow,
        })
        .unwrap();
    let ended = scene.test.run(failed(complete_all(jobs[1], other)));
    assert_eq!(ended.unwrap().retried_by, None, "retired");
}

#[test]
fn a_suspension_ends_a_pending_retry_of_any_trigger() {
    for is_dispatched in [true, false] {
        let mut scene = Scene::new();
        let first = if is_dispatched {
            scene.dispatch("poke")
        } else {
            scene.fire("poke").unwrap()
        };
        let retry = scene.retry(first);
        scene.test.run(suspend(scene.workflow)).unwrap();
        assert_eq!(scene.test.world.withdrawn().collect::<Vec<_>>(), [retry]);
        scene.test.pass(TimeDelta::minutes(1));
        assert_eq!(scene.offered(), None);
        let ended = scene.test.run(EndJob::new(retry, Loss::Suspended)).unwrap();
        assert_eq!(ended.state.name(), "cancelled");
        assert_eq!(ended.reason().code(), "suspended");
        assert_eq!(ended.retried_by, None);
        // The slot had its job, so the resumption has no slot to repeat.
        let head = scene.test.world.head(&ended.scan_key()).unwrap();
        assert_eq!((head.passed_slots, head.passed_successes), (None, None));
    }
}

#[test]
fn a_newer_slot_replaces_a_retry_unless_it_was_dispatched() {
    for is_running in [false, true] {
        let mut scene = Scene::new();
        let first = scene.fire("newest").unwrap();
        let retry = scene.retry(first);
        if is_running {
            scene.test.claim(retry, scene.runner).unwrap();
        }
        let newer = scene.fire("newest").unwrap();
        assert_eq!(scene.unfinished("newest"), [newer]);
        let ended = scene.test.decided.iter().find_map(|change| match change {
            Change::Job(job) if job.id == retry && job.state.is_terminal() => Some(job),
            _ => None,
        });
        let ended = ended.unwrap();
        assert_eq!(*ended.reason(), Reason::Replaced { by: newer });
        assert_eq!(ended.retried_by, None);
    }
    let mut scene = Scene::new();
    let first = scene.dispatch("newest");
    let retry = scene.retry(first);
    assert_eq!(scene.fire("newest"), None);
    assert_eq!(scene.unfinished("newest"), [retry]);
}
