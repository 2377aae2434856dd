//! How a runner takes jobs, reports which jobs it holds, and ends.

use std::time::{Duration, Instant};

use runner::{Configuration, InstanceError, Options, SessionError, Urgency, limits};
use uuid::Uuid;
use wire::JobFailure;

use crate::fake_daemon::Fault;
use crate::harness::{CANCELLED, Harness, OPTIONS, PATIENCE, SUCCEEDED, ends, job};

#[tokio::test]
async fn a_full_runner_polls_once_for_the_end_of_a_job_and_the_next_job() {
    let options = Options {
        full_pause: PATIENCE,
        ..OPTIONS
    };
    let harness = Harness::start_with(options, 1).await;
    let jobs = 5;
    for _ in 0..jobs {
        harness.run(&job(&["true"])).await;
    }
    let has_polled = |state: &crate::fake_daemon::State| (state.polls.len() > jobs).then_some(());
    harness.daemon.wait_for("the last poll", has_polled).await;
    let state = harness.daemon.state();
    assert_eq!(state.polls.len(), jobs + 1);
    assert!(state.polls.iter().all(|poll| poll.holding.is_empty()));
}

#[tokio::test]
async fn a_runner_reports_the_jobs_it_holds_and_frees_them_at_once() {
    let harness = Harness::start_with(OPTIONS, 2).await;
    let one = job(&["while [ ! -e ../go ]; do sleep 0.02; done"]);
    let two = job(&["echo up; sleep 60"]);
    harness.daemon.offer(one.clone());
    harness.daemon.offer(two.clone());
    let holding = |count: usize| {
        move |state: &crate::fake_daemon::State| {
            let newest = state.polls.last()?;
            (newest.holding.len() == count).then(|| newest.clone())
        }
    };
    let poll = harness.daemon.wait_for("both in hand", holding(2)).await;
    assert_eq!(poll.capacity, 2);
    harness.daemon.line(two.job_id, "up").await;
    std::fs::write(harness.work().join("go"), "").unwrap();
    assert_eq!(
        ends(&harness.daemon.completion(one.job_id).await),
        [SUCCEEDED]
    );
    let poll = harness.daemon.wait_for("one in hand", holding(1)).await;
    assert_eq!(poll.holding, [two.job_id]);
    harness.daemon.cancel(two.job_id);
    harness.daemon.completion(two.job_id).await;
    harness.idle().await;
}

#[tokio::test]
async fn many_jobs_run_without_loss() {
    let harness = Harness::start_with(OPTIONS, 4).await;
    let jobs: Vec<_> = (0..40).map(|_| job(&["echo x"])).collect();
    for job in &jobs {
        harness.daemon.offer(job.clone());
    }
    for job in &jobs {
        assert_eq!(
            ends(&harness.daemon.completion(job.job_id).await),
            [SUCCEEDED]
        );
    }
    harness.idle().await;
    assert_eq!(harness.daemon.state().completions.len(), jobs.len());
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn a_repeated_offer_is_ignored_and_a_lapsed_one_dropped() {
    let harness = Harness::start().await;
    let one = job(&["echo up; while [ ! -e ../go ]; do sleep 0.02; done"]);
    harness.daemon.offer(one.clone());
    harness.daemon.line(one.job_id, "up").await;
    harness.daemon.offer_again(one.job_id);
    harness.daemon.offer_again(Uuid::now_v7());
    let resolved = |state: &crate::fake_daemon::State| {
        let resolves = state
            .requests
            .iter()
            .filter(|request| *request == "POST resolve");
        (resolves.count() == 2).then_some(())
    };
    harness
        .daemon
        .wait_for("the lapsed offer's claim", resolved)
        .await;
    std::fs::write(harness.work().join("go"), "").unwrap();
    harness.daemon.completion(one.job_id).await;
    harness.idle().await;
    let state = harness.daemon.state();
    assert_eq!(state.completions.len(), 1);
    assert!(resolved(&state).is_some());
}

#[tokio::test]
async fn a_renewed_token_is_stored_and_used() {
    let harness = Harness::start().await;
    harness.daemon.renew_token("renewed");
    harness
        .daemon
        .wait_for("the new token", |state| {
            state.tokens.contains("renewed").then_some(())
        })
        .await;
    let stored = Configuration::load(harness.home.path(), "test").unwrap();
    assert_eq!(stored.token, "renewed");
}

#[tokio::test]
async fn draining_finishes_running_jobs_and_takes_no_new_ones() {
    let harness = Harness::start().await;
    let one = job(&["echo up; while [ ! -e ../go ]; do sleep 0.02; done"]);
    harness.daemon.offer(one.clone());
    harness.daemon.line(one.job_id, "up").await;
    harness.on_urgency(Urgency::Drain);
    harness
        .daemon
        .wait_for("no capacity", |state| {
            (state.polls.last()?.capacity == 0).then_some(())
        })
        .await;
    std::fs::write(harness.work().join("go"), "").unwrap();
    assert_eq!(
        ends(&harness.daemon.completion(one.job_id).await),
        [SUCCEEDED]
    );
    let daemon = harness.daemon.clone();
    harness.ended().await.unwrap();
    assert_eq!(daemon.state().goodbyes, 1);
}

#[tokio::test]
async fn a_second_signal_cancels_running_jobs() {
    let harness = Harness::start().await;
    let one = job(&["echo up; sleep 60"]);
    harness.daemon.offer(one.clone());
    harness.daemon.line(one.job_id, "up").await;
    harness.on_urgency(Urgency::Drain);
    harness.on_urgency(Urgency::Cancel);
    let end = harness.daemon.completion(one.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    assert!(matches!(end.failure, Some(JobFailure::RunnerStopped(_))));
    harness.ended().await.unwrap();
}

#[tokio::test]
async fn a_claim_in_flight_is_completed_although_the_runner_stops() {
    let harness = Harness::start().await;
    let one = job(&["echo never"]);
    harness.daemon.hold("resolve");
    harness.daemon.offer(one.clone());
    harness
        .daemon
        .wait_for("the claim", |state| {
            let mut requests = state.requests.iter();
            requests
                .find(|request| *request == "POST resolve")
                .map(|_| ())
        })
        .await;
    harness.on_urgency(Urgency::Cancel);
    harness.logged("cancelling the running jobs").await;
    harness.daemon.release();
    let end = harness.daemon.completion(one.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    assert!(matches!(end.failure, Some(JobFailure::RunnerStopped(_))));
    harness.ended().await.unwrap();
}

#[tokio::test]
async fn a_runner_that_stops_with_its_daemon_finishes_its_jobs_and_names_unreported_jobs() {
    let options = Options {
        stopped_silence: Duration::from_millis(10),
        ..OPTIONS
    };
    let harness = Harness::start_with(options, 1).await;
    let one = job(&["echo up; until [ -e ../go ]; do sleep 0.02; done; touch ../done"]);
    harness.daemon.offer(one.clone());
    harness.daemon.line(one.job_id, "up").await;
    harness.daemon.go_away("");
    harness.on_urgency(Urgency::Drain);
    harness.logged("waiting for the daemon").await;
    std::fs::write(harness.work().join("go"), "").unwrap();
    harness.logged("it is not reported how the job ended").await;
    let log = harness.log();
    let named = log
        .lines()
        .find(|line| line.contains("it is not reported how the job ended"));
    assert!(named.unwrap().contains(&one.job_id.to_string()));
    assert!(harness.work().join("done").exists());
    harness.ended().await.unwrap();
}

#[tokio::test]
async fn a_runner_that_cannot_set_up_jobs_claims_none_until_it_can() {
    let harness = Harness::start().await;
    harness.idle().await;
    std::fs::remove_dir_all(harness.work()).unwrap();
    std::fs::write(harness.work(), "").unwrap();
    let one = job(&["true"]);
    harness.daemon.offer(one.clone());
    harness.logged("cannot set up jobs").await;
    let capacity = |expected: u32| {
        move |state: &crate::fake_daemon::State| {
            let newest = state.polls.last()?;
            (newest.capacity == expected && newest.holding.is_empty()).then_some(())
        }
    };
    harness.daemon.wait_for("no capacity", capacity(0)).await;
    std::fs::remove_file(harness.work()).unwrap();
    // Without a free file descriptor, an attempt cannot remove its own folder.
    std::fs::create_dir_all(harness.work().join(Uuid::nil().to_string())).unwrap();
    harness.daemon.wait_for("capacity", capacity(4)).await;
    assert!(
        !harness
            .daemon
            .state()
            .requests
            .contains(&"POST resolve".to_owned())
    );
    harness.daemon.offer_again(one.job_id);
    assert_eq!(
        ends(&harness.daemon.completion(one.job_id).await),
        [SUCCEEDED]
    );
}

#[tokio::test]
async fn an_idle_runner_leaves_at_once() {
    let harness = Harness::start().await;
    harness.idle().await;
    harness.on_urgency(Urgency::Drain);
    let daemon = harness.daemon.clone();
    harness.ended().await.unwrap();
    assert_eq!(daemon.state().goodbyes, 1);
}

#[tokio::test]
async fn a_runner_waits_for_a_daemon_that_starts_later() {
    let harness = Harness::start().await;
    for route in ["hello", "messages", "messages"] {
        harness.daemon.fail_next(route, Fault::Unavailable);
    }
    assert_eq!(ends(&harness.run(&job(&["true"])).await), [SUCCEEDED]);
}

#[tokio::test]
async fn a_poll_that_is_not_held_is_repeated_with_a_pause() {
    const TIMES: u32 = 4;
    let start = Instant::now();
    let harness = Harness::start().await;
    for _ in 0..TIMES {
        harness.daemon.fail_next("messages", Fault::Nothing);
    }
    let held = harness.daemon.wait_for("a poll that is held", |state| {
        let requests = state.requests.iter();
        let polls = requests.filter(|one| *one == "POST messages").count();
        (polls > TIMES as usize).then_some(())
    });
    held.await;
    assert!(start.elapsed() >= limits::FIRST_PAUSE * TIMES);
}

#[tokio::test]
async fn a_runner_waits_while_another_process_uses_its_name() {
    let harness = Harness::start().await;
    for (route, fault) in [
        ("hello", Fault::RunnerInUse),
        ("messages", Fault::PollReplaced),
        ("messages", Fault::PollReplaced),
    ] {
        harness.daemon.fail_next(route, fault);
    }
    assert_eq!(ends(&harness.run(&job(&["true"])).await), [SUCCEEDED]);
    let state = harness.daemon.state();
    // Its instance name never changes.
    let [hello] = state.hellos.as_slice() else {
        panic!("{:?}", state.hellos);
    };
    assert!(!hello.instance.is_nil());
    let mut polls = state.polls.iter();
    assert!(polls.all(|poll| poll.instance == hello.instance));
}

#[tokio::test]
async fn two_processes_in_one_folder_are_refused_at_once() {
    let harness = Harness::start().await;
    harness.idle().await;
    let (_shutdown, urgency) = tokio::sync::watch::channel(Urgency::None);
    let second = runner::serve(harness.setup(), urgency).await;
    assert!(matches!(
        second,
        Err(SessionError::Instance(InstanceError::Running { .. }))
    ));
}

#[tokio::test]
async fn a_forgotten_runner_stops_its_jobs_and_fails() {
    let harness = Harness::start().await;
    let one = job(&["echo up; exec sleep 600"]);
    harness.daemon.offer(one.clone());
    harness.daemon.line(one.job_id, "up").await;
    harness.daemon.forget_runner();
    let ended = harness.ended().await;
    assert!(matches!(ended, Err(SessionError::Unknown { .. })));
}
