//! The pause before a retry.

use std::collections::HashMap;

use super::*;
use crate::decide::{FollowClock, RemoveRunner, StoreExpiry};
use crate::{Holder, Timestamp, World, waiting};

#[test]
fn a_retry_is_not_offered_before_it_is_due() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let retry = scene.retry(first);
    let due = scene.job(retry).not_before.unwrap();
    let world = |scene: &Scene| World::clone(&scene.test.world);
    assert_eq!(scene.offered(), None);
    assert_eq!(world(&scene).next_delayed(scene.test.now), Some(due));
    let why = scene.job(retry).waits_for_its_time(scene.test.now).unwrap();
    assert_eq!(
        why.to_string(),
        "retry at 2026-11-21T10:30:30Z (attempt 2 of 3)"
    );

    scene.test.pass(TimeDelta::milliseconds(29_999));
    assert_eq!(scene.offered(), None);
    scene.test.pass(TimeDelta::milliseconds(1));
    assert_eq!(scene.offered(), Some(retry));
    assert_eq!(world(&scene).next_delayed(scene.test.now), None);
    assert_eq!(scene.job(retry).waits_for_its_time(scene.test.now), None);
    let why = waiting(
        &scene.test.world,
        scene.job(retry),
        scene.test.now,
        |_| true,
        |_| None,
    );
    assert!(matches!(why, Some(Reason::NotFetched { .. })), "{why:?}");
    let younger = scene.dispatch("source");
    let (world, job) = (&scene.test.world, scene.job(younger));
    let why = waiting(world, job, scene.test.now, |_| true, |_| None).unwrap();
    assert_eq!(
        why.to_string(),
        "no runner with room for it has asked for work yet; 1 older job of `poke` waits for the same runners"
    );
    scene.fail(younger);

    // A new revision adds the job to the queue again, with the same time.
    let text = TEXT.replace("overlap", "runs_on: [gpu]\n    overlap");
    scene.test.push("retrying", &text);
    assert_eq!(scene.offered(), Some(retry));
    let stored = serde_json::to_string(scene.job(retry)).unwrap();
    assert_eq!(
        serde_json::from_str::<Job>(&stored).unwrap(),
        *scene.job(retry)
    );
    scene.succeed(retry);
    assert_eq!(scene.offered(), None);
}

#[test]
fn a_jump_of_the_clock_changes_no_pause() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let retry = scene.retry(first);
    let left = |scene: &Scene| {
        let time = scene.test.world.time(scene.test.steady());
        scene.job(retry).not_before.unwrap() - time
    };
    assert_eq!(left(&scene), TimeDelta::seconds(30));
    for by in [TimeDelta::hours(2), TimeDelta::days(-400)] {
        scene.test.jump(by);
        assert_eq!(left(&scene), TimeDelta::seconds(30));
        scene.test.run(FollowClock).unwrap();
        assert_eq!(left(&scene), TimeDelta::seconds(30));
        let at = scene.job(retry).not_before.unwrap();
        assert_eq!(at - scene.test.now, TimeDelta::seconds(30), "by the clock");
        assert_eq!(scene.test.world.next_delayed(Timestamp::MIN_UTC), Some(at));
    }
    let holder = Holder::Job(retry);
    assert!(scene.test.world.holders().contains(&holder));
    let (changes, ()) = scene.test.changes(StoreExpiry { holder }).unwrap();
    assert!(matches!(&changes[..], [Change::Job(job)] if job.id == retry));
    assert_eq!(scene.offered(), None);
    scene.test.pass(TimeDelta::seconds(30));
    assert_eq!(scene.offered(), Some(retry));
}

#[test]
fn the_loaded_start_time_of_a_retry_does_not_follow_the_clock() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let retry = scene.retry(first);
    let now = scene.test.now;
    scene.test.world.finish_loading(now, HashMap::new());
    let before = scene.job(retry).retry_of;
    scene.test.jump(TimeDelta::hours(2));
    scene.test.run(FollowClock).unwrap();
    assert_eq!(scene.job(retry).retry_of, before);
    assert_eq!(scene.offered(), Some(retry));
    scene.test.claim(retry, scene.runner).unwrap();
    let holders = scene.test.world.holders();
    assert!(holders.contains(&Holder::Job(retry)));
}

#[test]
fn the_retry_of_a_removed_runners_job_waits_until_the_runner_has_stopped() {
    let mut scene = Scene::new();
    let job = scene.dispatch("poke");
    scene.test.claim(job, scene.runner).unwrap();
    let runner = scene.runner;
    scene
        .test
        .run(RemoveRunner {
            runner,
            by: crate::Rights::admin(),
        })
        .unwrap();
    let ended = scene.test.run(EndJob::new(job, Loss::RunnerLost)).unwrap();
    let retry = ended.retried_by.unwrap();
    let due = scene.test.now + RUNNER_SILENCE;
    assert_eq!(
        scene.job(retry).not_before,
        Some(due),
        "the pause is longer than 30 s"
    );

    // A runner that is still registered has ended the job, or was already silent for this long.
    scene.cancel(retry);
    scene.runner = scene.test.runner("another", &[]);
    let job = scene.dispatch("poke");
    let ended = scene.lose(job, Loss::RunnerLost);
    let retry = ended.retried_by.unwrap();
    let due = scene.test.now + TimeDelta::seconds(30);
    assert_eq!(scene.job(retry).not_before, Some(due));
}
