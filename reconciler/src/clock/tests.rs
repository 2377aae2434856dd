//! Expiry times that follow the clock.

use std::sync::Arc;
use std::time::Duration;

use model::decide::CreateToken;
use model::limits::WORKER_SESSION;
use model::{Actor, Job, Reason, Scope, Token, TokenId};
use tempfile::TempDir;

use super::*;
use crate::WorkerError;
use crate::testing::{TestDaemon, check_deadlines, end_of, freeze, pass};

#[test]
fn a_jump_is_shown_in_a_suitable_unit() {
    for (by, expected) in [
        (TimeDelta::minutes(61), "ahead 61 minutes"),
        (TimeDelta::hours(-5), "back 5 hours"),
        (TimeDelta::days(400), "ahead 400 days"),
    ] {
        assert_eq!(jump(by), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_and_a_restart_end_no_job_and_no_session() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let hour = Duration::from_secs(3_600);
    for by in [TimeDelta::days(400), TimeDelta::days(-400)] {
        let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
        let workflow = daemon.activate("a").await;
        let (runner, secret) = daemon.register("r", 2).await;
        let before = daemon.run(runner, workflow, "plain").await;
        daemon.clock.jump(by);
        // A job that is claimed while the clock is wrong. The runner's request does not name it yet, which must not end
        // it.
        let (id, token) = {
            let id = daemon.dispatch(workflow, "short").await.id;
            let (offered, token) = daemon.offer(runner, &[before.job().id]).await;
            assert_eq!(offered, id);
            (id, token)
        };
        let during = daemon.handle.worker(id, token.hash()).await.unwrap();
        let resolved = daemon.handle.resolve(&during, None).await.unwrap();
        let deadline = resolved.job.state.run().unwrap().deadline.unwrap();
        let expected = daemon.handle.by_the_clock(deadline);
        assert_eq!(expected - daemon.handle.now(), TimeDelta::minutes(30));
        let is_well = async |daemon: &TestDaemon| {
            check_deadlines(daemon).await;
            assert!(
                daemon.handle.runners().session(secret.hash()).is_some(),
                "{by}"
            );
            let worker = daemon.handle.worker(before.job().id, before.token());
            worker.await.unwrap();
        };
        is_well(&daemon).await;
        assert!(!daemon.job(id).await.state.is_terminal(), "{by}");
        // After an hour the clock is trusted, and the stored times follow it.
        for _ in 0..61 {
            daemon.handle.runners().heard(runner.runner());
            pass(&daemon, hour / 60).await;
        }
        assert_eq!(end_of(&daemon, id).await, Reason::TimedOut);
        daemon
            .until("the ends to follow the clock", |world| {
                daemon.handle.time(world) == daemon.handle.now()
            })
            .await;
        is_well(&daemon).await;
        daemon.close().await;
        let at_restart = by.num_seconds() + 2 * 3_600;
        let daemon = TestDaemon::open(&folder, at_restart, Vec::new()).await;
        is_well(&daemon).await;
        daemon
            .handle
            .remove_runner(runner.runner(), model::Rights::admin())
            .await
            .unwrap();
        daemon.close().await;
    }
}

async fn create_token(daemon: &TestDaemon) -> Arc<Token> {
    let create = CreateToken {
        name: "ci".to_owned(),
        scopes: std::iter::once(Scope::JobRead).collect(),
        life: Some(TimeDelta::days(1)),
        projects: model::Projects::All,
        owner: model::UserId::OWNER,
        by: model::UserId::OWNER,
        granted_by: model::Rights::admin(),
        ends_by: None,
    };
    daemon.handle.state().submit(create).await.unwrap().token
}

/// The stored token, and whether it is valid now.
fn token(daemon: &TestDaemon, id: TokenId) -> (Token, bool) {
    let (token, now) = daemon.handle.state().read(|world| {
        let token = world.tokens().find(|token| token.id == id).unwrap();
        (Token::clone(token), daemon.handle.time(world))
    });
    let is_valid = token.is_valid(now);
    (token, is_valid)
}

#[tokio::test(start_paused = true)]
async fn correcting_a_clock_that_was_wrong_at_the_start_keeps_correct_expiry_times() {
    let _frozen = freeze();
    for by in [TimeDelta::days(400), TimeDelta::days(-400)] {
        let folder = TempDir::new().unwrap();
        let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
        let before = create_token(&daemon).await;
        daemon.close().await;

        let daemon = TestDaemon::open(&folder, by.num_seconds(), Vec::new()).await;
        let during = create_token(&daemon).await;
        daemon.clock.jump(-by);
        for _ in 0..62 {
            pass(&daemon, Duration::from_secs(60)).await;
        }
        daemon
            .until("the clock to be followed", |world| {
                daemon.handle.time(world) == daemon.handle.now()
            })
            .await;
        assert_eq!(token(&daemon, before.id), (Token::clone(&before), true));
        daemon.close().await;

        // Each token is valid for one day of the correct clock.
        for (hours, is_valid) in [(2, true), (26, false)] {
            let daemon = TestDaemon::open(&folder, hours * 3_600, Vec::new()).await;
            assert_eq!(token(&daemon, before.id), (Token::clone(&before), is_valid));
            assert_eq!(token(&daemon, during.id).1, is_valid, "{by}, {hours}");
            daemon.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_within_the_hour_after_a_jump_ends_nothing() {
    let _frozen = freeze();
    let hour = Duration::from_secs(3_600);
    for by in [5, -5, 400 * 24, -400 * 24].map(TimeDelta::hours) {
        // The clock is not corrected during the restart, or it is correct again.
        for stays in [true, false] {
            let folder = TempDir::new().unwrap();
            let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
            let workflow = daemon.activate("a").await;
            let (runner, secret) = daemon.register("r", 1).await;
            let worker = daemon.run(runner, workflow, "plain").await;
            let made = create_token(&daemon).await;
            daemon.clock.jump(by);
            // Any reading of the clock detects the jump and wakes the task that records it.
            assert!(daemon.handle.clock().trouble().is_some());
            daemon
                .until("the jump to be noted", |world| world.clocks().is_some())
                .await;
            daemon.crash().await;

            let minute = 60;
            let start = if stays { by.num_seconds() } else { 0 } + minute;
            let daemon = TestDaemon::open(&folder, start, Vec::new()).await;
            let is_well = async |daemon: &TestDaemon, passed: TimeDelta| {
                check_deadlines(daemon).await;
                assert!(
                    daemon.handle.runners().session(secret.hash()).is_some(),
                    "{by}"
                );
                let found = daemon.handle.worker(worker.job().id, worker.token());
                found.await.unwrap();
                let (token, is_valid) = token(daemon, made.id);
                let left = token.expires_at.unwrap() - daemon.handle.steady();
                assert!(
                    is_valid && left == TimeDelta::days(1) - passed,
                    "{by} {left}"
                );
            };
            let passed = TimeDelta::seconds(minute);
            is_well(&daemon, passed).await;
            // The clock is distrusted for another hour. Nothing is deleted, and the record stays.
            assert!(daemon.handle.clock().ages().is_none());
            assert!(daemon.handle.state().read(|world| world.clocks().is_some()));
            for _ in 0..61 {
                daemon.handle.runners().heard(runner.runner());
                pass(&daemon, hour / 60).await;
            }
            daemon
                .until("the note to go", |world| world.clocks().is_none())
                .await;
            is_well(&daemon, passed + TimeDelta::minutes(61)).await;
            daemon.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recording_a_jump_is_retried_after_a_failure() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    // A folder blocks the path of the file that the commit would write.
    let file = folder.path().join("state/clock.json");
    std::fs::create_dir(&file).unwrap();
    daemon.clock.jump(TimeDelta::hours(5));
    assert!(daemon.handle.clock().ages().is_none());
    while daemon.handle.clock().jumps().rests_until.is_none() {
        tokio::task::yield_now().await;
    }
    std::fs::remove_dir(&file).unwrap();
    pass(&daemon, Duration::from_secs(31)).await;
    daemon
        .until("the jump to be noted", |world| world.clocks().is_some())
        .await;
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn storing_a_moved_expiry_time_is_retried_after_a_failure() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let made = create_token(&daemon).await;
    daemon.handle.state().settled().await.unwrap();
    // A folder blocks the path of the file that the commit would write.
    let file = folder.path().join(format!("state/tokens/{}.json", made.id));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let by = TimeDelta::days(400);
    daemon.clock.jump(by);
    daemon.handle.clock().follow_at_once().await;
    assert_eq!(daemon.handle.steady(), daemon.handle.now());
    std::fs::remove_dir(&file).unwrap();
    daemon.close().await;

    let daemon = TestDaemon::open(&folder, by.num_seconds(), Vec::new()).await;
    let end = made.expires_at.map(|end| end + by);
    assert_eq!(token(&daemon, made.id).0.expires_at, end);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn expiry_times_and_the_clock_are_read_at_the_same_moment() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let worker = daemon.run(runner, workflow, "plain").await;
    let (state, clock) = (daemon.handle.state().clone(), daemon.clock.clone());
    let runtime = tokio::runtime::Handle::current();
    let following = tokio::task::spawn_blocking(move || {
        for days in [400, -400].repeat(2_000) {
            clock.jump(TimeDelta::days(days));
            runtime.block_on(state.submit(FollowClock)).unwrap();
        }
    });
    while !following.is_finished() {
        let found = daemon.handle.worker(worker.job().id, worker.token()).await;
        found.unwrap();
        let is_lost = |job: &Job, now| job.state.run().unwrap().expires_at - now != WORKER_SESSION;
        let runner = runner.runner();
        let runners = daemon.handle.runners();
        runners
            .lose(daemon.handle.state(), runner, is_lost)
            .await
            .unwrap();
        tokio::task::yield_now().await;
    }
    following.await.unwrap();
    assert!(!daemon.job(worker.job().id).await.state.is_terminal());
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_has_two_minutes_for_its_last_logs_despite_clock_jumps() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    for by in [TimeDelta::minutes(5), TimeDelta::days(-400)] {
        let worker = daemon.run(runner, workflow, "plain").await;
        let (id, token) = (worker.job().id, worker.token());
        daemon.handle.cancel(id, Actor::Daemon).await.unwrap();
        daemon.clock.jump(by);
        let worker = daemon.handle.worker(id, token).await.unwrap();
        let append = || daemon.handle.append_log(&worker, 0, Vec::new());
        daemon.clock.set_forward(TimeDelta::seconds(119));
        append().await.unwrap();
        daemon.clock.set_forward(TimeDelta::seconds(1));
        let late = append().await;
        assert!(matches!(late, Err(WorkerError::Over { .. })), "{by}");
    }
    daemon.close().await;
}
