use chrono::TimeDelta;
use model::limits::{
    RUNNER_RENEWAL, RUNNER_RENEWAL_OVERLAP, RUNNER_RENEWAL_RETRY, RUNNER_SESSION, RUNNER_SILENCE,
};
use model::{PlainToken, Reason};
use tempfile::TempDir;
use tokio::time::advance;

use super::*;
use crate::limits::{OFFER, POLL, RETURN};
use crate::testing::{TestDaemon, end_of, freeze, in_time, pass};
use crate::{RunnerError, WorkerError};

/// The process of a runner starts.
async fn starts(daemon: &TestDaemon, session: RunnerSession) -> Result<(), RunnerError> {
    let version = "0.1.0".to_owned();
    daemon
        .handle
        .runners()
        .starts(session, version, Vec::new())
        .await
}

#[tokio::test(start_paused = true)]
async fn an_unclaimed_offer_goes_to_another_runner_that_waits_with_nothing_else_happening() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (slow, _) = daemon.register("slow", 1).await;
    let (other, _) = daemon.register("other", 1).await;
    let job = daemon.dispatch(workflow, "plain").await.id;
    let (offered, token) = daemon.offer(slow, &[]).await;
    assert_eq!(offered, job);

    let handle = daemon.handle.clone();
    let waiting =
        tokio::spawn(async move { handle.runners().poll(other, None, 1, Vec::new()).await });
    tokio::task::yield_now().await;
    pass(&daemon, OFFER).await;
    let messages = in_time("the offer that lapsed", waiting).await.unwrap();
    assert!(matches!(messages.unwrap().as_slice(), [Message::Assigned(again, _)] if *again == job));
    let late = daemon.handle.worker(job, token.hash()).await;
    assert!(matches!(late, Err(WorkerError::Unauthorized { .. })));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn one_claim_wins_and_its_repeat_gets_the_same_answer() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (first, _) = daemon.register("first", 1).await;
    let (second, _) = daemon.register("second", 1).await;
    daemon.dispatch(workflow, "plain").await;
    let (job, early) = daemon.offer(first, &[]).await;
    let of_first = daemon.handle.worker(job, early.hash()).await.unwrap();
    pass(&daemon, OFFER).await;
    let (_, late) = daemon.offer(second, &[]).await;
    let of_second = daemon.handle.worker(job, late.hash()).await.unwrap();

    // Both were authenticated while their offers were valid; the committer decides.
    let resolved = daemon.handle.resolve(&of_second).await.unwrap();
    let refused = daemon.handle.resolve(&of_first).await;
    assert!(matches!(refused, Err(WorkerError::OfferLapsed { .. })));
    let again = daemon.handle.resolve(&of_second).await.unwrap();
    assert_eq!(again.job, resolved.job);
    let executing = daemon.handle.worker(job, late.hash()).await.unwrap();
    assert_eq!(
        daemon.handle.resolve(&executing).await.unwrap().job,
        resolved.job
    );
    assert_eq!(resolved.job.state.run().unwrap().runner.id, second.runner());
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn freed_and_unused_capacity_is_filled_while_a_claim_is_under_way() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 2).await;
    let first = daemon.dispatch(workflow, "plain").await.id;
    let (_, token) = daemon.offer(runner, &[]).await;
    let handle = daemon.handle.clone();
    let waiting =
        tokio::spawn(async move { handle.runners().poll(runner, None, 2, vec![first]).await });
    tokio::task::yield_now().await;
    let worker = daemon.handle.worker(first, token.hash()).await.unwrap();
    daemon.handle.resolve(&worker).await.unwrap();
    let second = daemon.dispatch(workflow, "plain").await.id;
    let messages = in_time("the second job", waiting).await.unwrap().unwrap();
    assert!(matches!(messages.as_slice(), [Message::Assigned(job, _)] if *job == second));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_does_not_name_a_job_loses_it_unless_it_was_claimed_a_moment_ago() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 2).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    daemon.dispatch(workflow, "plain").await;
    daemon
        .handle
        .runners()
        .poll(runner, None, 2, Vec::new())
        .await
        .unwrap();
    assert!(!daemon.job(job).await.state.is_terminal());

    pass(&daemon, OFFER).await;
    daemon.dispatch(workflow, "plain").await;
    daemon
        .handle
        .runners()
        .poll(runner, None, 2, Vec::new())
        .await
        .unwrap();
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_a_newer_one_has_overtaken_loses_no_job() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    let handle = daemon.handle.clone();
    let newest =
        tokio::spawn(async move { handle.runners().poll(runner, Some(2), 1, vec![job]).await });
    while daemon.handle.runners().waiting_polls() == 0 {
        tokio::task::yield_now().await;
    }
    pass(&daemon, OFFER).await;
    // It was sent before the job was there.
    let late = daemon.handle.runners().poll(runner, Some(1), 1, Vec::new());
    let messages = in_time("its end", late).await.unwrap();
    assert!(messages.is_empty());
    assert!(!daemon.job(job).await.state.is_terminal());
    assert!(!newest.is_finished());
    daemon.close().await;
    newest.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_before_a_start_excuses_no_missing_job() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 3_600, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, secret) = daemon.register("r", 2).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    daemon.close().await;

    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let runner = daemon.handle.runners().session(secret.hash()).unwrap();
    pass(&daemon, RETURN).await;
    // So that the poll is answered.
    let workflow = daemon.activate("a").await;
    daemon.dispatch(workflow, "plain").await;
    daemon
        .handle
        .runners()
        .poll(runner, None, 2, Vec::new())
        .await
        .unwrap();
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_excuses_no_missing_job() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    daemon.clock.jump(-TimeDelta::days(1));
    // As long as a poll may have been on its way.
    daemon
        .clock
        .set_forward(TimeDelta::from_std(OFFER).unwrap());
    daemon.dispatch(workflow, "plain").await;
    daemon.offer(runner, &[]).await;
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn hello_ends_what_the_runner_ran_and_takes_back_what_it_was_offered() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 2).await;
    let running = daemon.run(runner, workflow, "plain").await.job().id;
    let offered = daemon.dispatch(workflow, "plain").await.id;
    let (_, before) = daemon.offer(runner, &[running]).await;

    starts(&daemon, runner).await.unwrap();
    assert_eq!(end_of(&daemon, running).await, Reason::RunnerLost);
    let (again, after) = daemon.offer(runner, &[]).await;
    assert_eq!(again, offered);
    assert_ne!(before, after);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_process_with_a_runners_session_changes_nothing_while_the_first_is_there() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (session, _) = daemon.register("r", 2).await;
    let [first, second] = [1, 2].map(|number| {
        let instance = Instance::from_uuid(uuid::Uuid::from_u128(number));
        session.spoken_by(instance)
    });
    starts(&daemon, first).await.unwrap();
    let job = daemon.run(first, workflow, "plain").await.job().id;

    let refused = starts(&daemon, second).await;
    assert!(matches!(refused, Err(RunnerError::InUse)));
    let refused = daemon
        .handle
        .runners()
        .poll(second, None, 1, Vec::new())
        .await;
    assert!(matches!(refused, Err(RunnerError::PollReplaced)));
    daemon.handle.runners().stops(second).await.unwrap();
    assert!(!daemon.job(job).await.state.is_terminal());

    // The first falls silent.
    pass(&daemon, RUNNER_SILENCE.to_std().unwrap()).await;
    starts(&daemon, second).await.unwrap();
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    let refused = daemon
        .handle
        .runners()
        .poll(first, None, 1, Vec::new())
        .await;
    assert!(matches!(refused, Err(RunnerError::PollReplaced)));

    // Who says goodbye makes room at once.
    daemon.handle.runners().stops(second).await.unwrap();
    starts(&daemon, first).await.unwrap();
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_says_goodbye_is_not_connected_any_more() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let (session, _) = daemon.register("r", 1).await;
    starts(&daemon, session).await.unwrap();
    let handle = daemon.handle.clone();
    let waiting =
        tokio::spawn(async move { handle.runners().poll(session, None, 1, Vec::new()).await });
    while daemon.handle.runners().waiting_polls() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(daemon.handle.runners().is_connected(session.runner()));

    daemon.handle.runners().stops(session).await.unwrap();
    let messages = in_time("the end of its poll", waiting).await.unwrap();
    assert!(messages.unwrap().is_empty());
    assert!(!daemon.handle.runners().is_connected(session.runner()));
    let heard = daemon.handle.runners().heard_at(session.runner());
    assert!(heard.is_some(), "it is still known when it was there");

    starts(&daemon, session).await.unwrap();
    assert!(daemon.handle.runners().is_connected(session.runner()));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_start_of_the_daemon_no_other_process_ends_a_runners_jobs() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (session, token) = daemon.register("r", 1).await;
    let job = daemon.run(session, workflow, "plain").await.job().id;
    daemon.close().await;

    let daemon = TestDaemon::open(&folder, 60, Vec::new()).await;
    let session = daemon.handle.runners().session(token.hash()).unwrap();
    let second = session.spoken_by(Instance::from_uuid(uuid::Uuid::from_u128(2)));
    let refused = starts(&daemon, second).await;
    assert!(matches!(refused, Err(RunnerError::InUse)));
    let refused = daemon
        .handle
        .runners()
        .poll(second, None, 1, Vec::new())
        .await;
    assert!(matches!(refused, Err(RunnerError::PollReplaced)));
    daemon.handle.runners().stops(second).await.unwrap();
    assert!(!daemon.job(job).await.state.is_terminal());

    // One that died meanwhile comes back as soon as nobody else can be expected.
    pass(&daemon, RETURN).await;
    starts(&daemon, second).await.unwrap();
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn replacing_or_removing_a_runner_loses_its_jobs() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (old, token) = daemon.register("r", 1).await;
    let first = daemon.run(old, workflow, "plain").await.job().id;
    let (new, _) = daemon.register("r", 1).await;
    assert_eq!(end_of(&daemon, first).await, Reason::RunnerLost);
    assert_eq!(daemon.handle.runners().session(token.hash()), None);

    let second = daemon.run(new, workflow, "plain").await.job().id;
    daemon.handle.remove_runner(new.runner()).await.unwrap();
    assert_eq!(end_of(&daemon, second).await, Reason::RunnerLost);
    let messages = daemon
        .handle
        .runners()
        .poll(new, None, 1, Vec::new())
        .await
        .unwrap();
    assert_eq!(messages, []);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_answered_with_nothing_in_the_end_and_at_once_when_the_daemon_stops() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let (runner, _) = daemon.register("r", 1).await;
    let handle = daemon.handle.clone();
    let waiting =
        tokio::spawn(async move { handle.runners().poll(runner, None, 1, Vec::new()).await });
    tokio::task::yield_now().await;
    advance(POLL).await;
    let messages = in_time("an empty answer", waiting).await.unwrap();
    assert_eq!(messages.unwrap(), []);

    let handle = daemon.handle.clone();
    let waiting =
        tokio::spawn(async move { handle.runners().poll(runner, None, 1, Vec::new()).await });
    tokio::task::yield_now().await;
    daemon.handle.drain();
    let messages = in_time("the end", waiting).await.unwrap();
    assert_eq!(messages.unwrap(), []);
    in_time("the end", daemon.handle.stopping()).await;
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_session_is_renewed_after_a_day_once_and_both_are_good_for_a_while() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let (runner, old) = daemon.register("r", 1).await;
    let renew = |session| daemon.handle.runners().renew(session);
    assert!(renew(runner).await.unwrap().is_none());
    daemon.clock.set_forward(RUNNER_RENEWAL);
    // Two polls that end together bring one new token, not two.
    let (first, second) = tokio::join!(renew(runner), renew(runner));
    let tokens: Vec<PlainToken> = [first, second]
        .into_iter()
        .filter_map(|renewed| Some(renewed.unwrap()?.secret))
        .collect();
    let [new] = tokens.as_slice() else {
        panic!("{} tokens", tokens.len());
    };
    let holder = |token: &PlainToken| {
        let session = daemon.handle.runners().session(token.hash());
        session.map(RunnerSession::runner)
    };
    assert_eq!(holder(&old), Some(runner.runner()));
    assert_eq!(holder(new), Some(runner.runner()));
    daemon.clock.set_forward(RUNNER_RENEWAL_OVERLAP);
    assert_eq!(holder(&old), None);
    assert_eq!(holder(new), Some(runner.runner()));
    daemon.clock.set_forward(RUNNER_SESSION);
    assert_eq!(holder(new), None);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_made_up_for() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let (session, old) = daemon.register("r", 1).await;
    daemon.clock.set_forward(RUNNER_RENEWAL);
    let lost = daemon.handle.runners().renew(session).await.unwrap();
    assert!(lost.is_some());
    daemon.clock.set_forward(RUNNER_RENEWAL_RETRY);
    let session = daemon.handle.runners().session(old.hash()).unwrap();
    let new = daemon
        .handle
        .runners()
        .renew(session)
        .await
        .unwrap()
        .unwrap();
    daemon.clock.set_forward(RUNNER_RENEWAL_OVERLAP);
    assert!(daemon.handle.runners().session(new.secret.hash()).is_some());
    daemon.close().await;
}
