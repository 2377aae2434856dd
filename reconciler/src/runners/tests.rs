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

/// Reports the start of a runner's process.
async fn starts(daemon: &TestDaemon, session: RunnerSession) -> Result<(), RunnerError> {
    let version = "0.1.0".to_owned();
    daemon
        .handle
        .runners()
        .starts(session, version, Vec::new())
        .await
}

#[tokio::test(start_paused = true)]
async fn an_expired_offer_goes_to_a_waiting_runner_without_another_event() {
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
async fn one_of_two_claims_wins_and_its_repeat_gets_the_same_answer() {
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

    // Both workers were authenticated while their offers were valid; the committer decides.
    let resolved = daemon.handle.resolve(&of_second, None).await.unwrap();
    let refused = daemon.handle.resolve(&of_first, None).await;
    assert!(matches!(refused, Err(WorkerError::OfferLapsed { .. })));
    let again = daemon.handle.resolve(&of_second, None).await.unwrap();
    assert_eq!(again.job, resolved.job);
    let executing = daemon.handle.worker(job, late.hash()).await.unwrap();
    assert_eq!(
        daemon.handle.resolve(&executing, None).await.unwrap().job,
        resolved.job
    );
    assert_eq!(resolved.job.state.run().unwrap().runner.id, second.runner());
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_free_slot_is_filled_while_another_job_is_claimed() {
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
    daemon.handle.resolve(&worker, None).await.unwrap();
    let second = daemon.dispatch(workflow, "plain").await.id;
    let messages = in_time("the second job", waiting).await.unwrap().unwrap();
    assert!(matches!(messages.as_slice(), [Message::Assigned(job, _)] if *job == second));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_missing_in_a_poll_is_lost_unless_it_was_just_claimed() {
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
async fn an_overtaken_poll_loses_no_job() {
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
    // This poll was sent before the runner had the job.
    let late = daemon.handle.runners().poll(runner, Some(1), 1, Vec::new());
    let messages = in_time("the end of the older poll", late).await.unwrap();
    assert!(messages.is_empty());
    assert!(!daemon.job(job).await.state.is_terminal());
    assert!(!newest.is_finished());
    daemon.close().await;
    newest.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_job_is_lost_after_a_start_with_the_clock_set_back() {
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
    // With a job to offer, the poll is answered at once.
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
async fn a_missing_job_is_lost_although_the_clock_was_set_back() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    daemon.clock.jump(-TimeDelta::days(1));
    // A poll may have been in transit for this long.
    daemon
        .clock
        .set_forward(TimeDelta::from_std(OFFER).unwrap());
    daemon.dispatch(workflow, "plain").await;
    daemon.offer(runner, &[]).await;
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn hello_ends_the_runners_jobs_and_withdraws_its_offers() {
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
async fn a_second_process_of_a_runner_is_refused_while_the_first_is_connected() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (session, _) = daemon.register("r", 2).await;
    let [first, second] = [1, 2].map(|number| {
        let instance = Instance::from_uuid(uuid::Uuid::from_u128(number));
        session.with_instance(instance)
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

    // The first process is silent.
    pass(&daemon, RUNNER_SILENCE.to_std().unwrap()).await;
    starts(&daemon, second).await.unwrap();
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    let refused = daemon
        .handle
        .runners()
        .poll(first, None, 1, Vec::new())
        .await;
    assert!(matches!(refused, Err(RunnerError::PollReplaced)));

    // After a goodbye, another process is admitted at once.
    daemon.handle.runners().stops(second).await.unwrap();
    starts(&daemon, first).await.unwrap();
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_is_disconnected_after_its_goodbye() {
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
    assert!(
        heard.is_some(),
        "the time of the last contact is still known"
    );

    starts(&daemon, session).await.unwrap();
    assert!(daemon.handle.runners().is_connected(session.runner()));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_start_of_the_daemon_a_second_process_ends_no_jobs() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (session, token) = daemon.register("r", 1).await;
    let job = daemon.run(session, workflow, "plain").await.job().id;
    daemon.close().await;

    let daemon = TestDaemon::open(&folder, 60, Vec::new()).await;
    let session = daemon.handle.runners().session(token.hash()).unwrap();
    let second = session.with_instance(Instance::from_uuid(uuid::Uuid::from_u128(2)));
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

    // A restarted process is admitted as soon as no other process can be expected.
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
    daemon
        .handle
        .remove_runner(new.runner(), model::Rights::admin())
        .await
        .unwrap();
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
async fn a_poll_gets_an_empty_answer_at_its_timeout_and_when_the_daemon_stops() {
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
    let messages = in_time("the end of the poll", waiting).await.unwrap();
    assert_eq!(messages.unwrap(), []);
    in_time("the stop", daemon.handle.stopping()).await;
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_session_is_renewed_once_and_both_tokens_are_valid_for_a_while() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let (runner, old) = daemon.register("r", 1).await;
    let renew = |session| daemon.handle.runners().renew(session);
    assert!(renew(runner).await.unwrap().is_none());
    daemon.clock.set_forward(RUNNER_RENEWAL);
    // Two polls that end together create one new token, not two.
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
async fn a_renewal_is_repeated_if_its_answer_was_lost() {
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
