use std::collections::BTreeMap;

use chrono::TimeDelta;
use model::decide::Retire;
use model::limits::{RUNNER_SILENCE, TIMEOUT_END};
use model::{Actor, JobState, Reason};
use tempfile::TempDir;
use tokio::time::advance;

use super::*;
use crate::testing::{
    TestDaemon, activate, check_deadlines, end_of, freeze, in_time, jump, pass, source_name,
};
use crate::{Message, SourceError, WorkerError};

#[tokio::test(start_paused = true)]
async fn a_silent_runner_loses_its_job_and_a_connected_runner_keeps_it() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (silent, _) = daemon.register("silent", 1).await;
    let (heard, _) = daemon.register("heard", 1).await;
    let lost = daemon.run(silent, workflow, "plain").await.job().id;
    let kept = daemon.run(heard, workflow, "plain").await.job().id;

    pass(&daemon, RUNNER_SILENCE.to_std().unwrap() / 2).await;
    daemon.handle.runners().heard(heard.runner());
    pass(&daemon, RUNNER_SILENCE.to_std().unwrap() / 2).await;
    assert_eq!(end_of(&daemon, lost).await, Reason::RunnerLost);
    check_deadlines(&daemon).await;
    let kept = daemon.job(kept).await;
    assert!(matches!(kept.state, JobState::Running { .. }));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn downtime_and_clock_changes_do_not_count_as_runner_silence() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    daemon.close().await;

    let daemon = TestDaemon::open(&folder, 3 * 60 * 60, Vec::new()).await;
    check_deadlines(&daemon).await;
    daemon.clock.set_forward(TimeDelta::minutes(30));
    check_deadlines(&daemon).await;
    assert!(!daemon.job(job).await.state.is_terminal());

    pass(&daemon, RUNNER_SILENCE.to_std().unwrap()).await;
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_standstill_a_job_is_lost_only_if_its_runner_stays_silent() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let job = daemon.run(runner, workflow, "plain").await.job().id;
    jump(&daemon, Duration::from_secs(130)).await;
    check_deadlines(&daemon).await;
    pass(&daemon, RUNNER_SILENCE.to_std().unwrap() - DEADLINE_CHECK).await;
    check_deadlines(&daemon).await;
    assert!(!daemon.job(job).await.state.is_terminal());
    pass(&daemon, DEADLINE_CHECK).await;
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_if_its_runner_misses_the_timeout_and_its_worker_may_still_log() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let worker = daemon.run(runner, workflow, "short").await;
    let job = worker.job().id;

    daemon.clock.set_forward(TimeDelta::minutes(30));
    pass(&daemon, TIMEOUT_END.to_std().unwrap() - DEADLINE_CHECK).await;
    daemon.handle.runners().heard(runner.runner());
    check_deadlines(&daemon).await;
    assert!(!daemon.job(job).await.state.is_terminal());
    pass(&daemon, DEADLINE_CHECK).await;
    assert_eq!(end_of(&daemon, job).await, Reason::TimedOut);
    // The next message cancels the job on the runner. The runner's completion then returns the final state.
    let messages = daemon
        .handle
        .runners()
        .poll(runner, None, 1, vec![job])
        .await
        .unwrap();
    assert_eq!(messages, [Message::Cancelled(job)]);
    let over = daemon.handle.worker(job, worker.token()).await.unwrap();
    let appended = daemon.handle.append_log(&over, 0, Vec::new()).await;
    assert!(appended.is_ok(), "{appended:?}");
    let completed = daemon
        .handle
        .complete(
            &over,
            Vec::new(),
            workflow::Outputs::new(),
            BTreeMap::new(),
            0,
            None,
        )
        .await;
    assert!(matches!(completed.unwrap().state, JobState::Failed { .. }));

    daemon.clock.set_forward(TimeDelta::minutes(2));
    let late = daemon.handle.append_log(&over, 0, Vec::new()).await;
    assert!(matches!(late, Err(WorkerError::Over { .. })), "{late:?}");
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn ending_a_job_is_retried_a_minute_after_a_panic() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    // When this job ends, the daemon creates a retry.
    let job = daemon.run(runner, workflow, "again").await.job().id;
    daemon.defect.enable();
    pass(&daemon, RUNNER_SILENCE.to_std().unwrap()).await;
    let panicked = async {
        while daemon.defect.panics() == 0 {
            tokio::task::yield_now().await;
        }
    };
    in_time("the panic", panicked).await;
    for name in ["b", "c", "d"] {
        daemon.activate(name).await;
        pass(&daemon, DEADLINE_CHECK / 2).await;
    }
    assert_eq!(daemon.defect.panics(), 1);
    daemon.defect.disable();
    pass(&daemon, DEADLINE_CHECK).await;
    assert_eq!(end_of(&daemon, job).await, Reason::RunnerLost);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_session_ends_after_four_hours() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let worker = daemon.run(runner, workflow, "plain").await;
    daemon.clock.set_forward(TimeDelta::hours(4));
    let refused = daemon.handle.worker(worker.job().id, worker.token()).await;
    assert!(matches!(refused, Err(WorkerError::Unauthorized { .. })));
    advance(DEADLINE_CHECK).await;
    assert_eq!(
        end_of(&daemon, worker.job().id).await,
        Reason::SessionExpired
    );
    let job = worker.job().id;
    let state = daemon.job(job).await.state.clone();
    assert!(matches!(state, JobState::Cancelled { .. }), "{state:?}");
    let messages = daemon
        .handle
        .runners()
        .poll(runner, None, 1, vec![job])
        .await
        .unwrap();
    assert_eq!(messages, [Message::Cancelled(job)]);
    // The runner has stopped the job, and its only slot is free.
    let next = daemon.dispatch(workflow, "plain").await.id;
    assert_eq!(daemon.offer(runner, &[]).await.0, next);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn scheduled_jobs_of_removed_scans_are_cancelled_and_running_jobs_finish() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let (runner, _) = daemon.register("r", 1).await;
    let running = daemon.run(runner, workflow, "plain").await.job().id;
    let (stays, goes) = (
        daemon.dispatch(workflow, "special").await.id,
        daemon.dispatch(workflow, "short").await.id,
    );
    let without_short = "
scans:
  special:
    on: {dispatch: {}}
    runs_on: [gpu]
    steps: [{run: 'true'}]
";
    let state = daemon.handle.state();
    state.submit(activate("a", without_short)).await.unwrap();
    assert_eq!(end_of(&daemon, goes).await, Reason::Retired);
    assert!(!daemon.job(stays).await.state.is_terminal());
    state.submit(Retire { workflow }).await.unwrap();
    assert_eq!(end_of(&daemon, stays).await, Reason::Retired);
    assert!(!daemon.job(running).await.state.is_terminal());
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_cannot_end_twice() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let job = daemon.dispatch(workflow, "plain").await.id;
    let cancelled = daemon.handle.cancel(job, Actor::Daemon).await.unwrap();
    assert!(daemon.handle.cancel(job, Actor::Daemon).await.is_err());
    let (state, runners) = (daemon.handle.state(), daemon.handle.runners());
    runners.end(state, job, Loss::RunnerLost).await.unwrap();
    assert_eq!(daemon.job(job).await, cancelled);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn workflows_of_an_unconfigured_source_are_retired_at_the_start() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = daemon.activate("a").await;
    let job = daemon.dispatch(workflow, "plain").await.id;
    daemon.close().await;
    let daemon = TestDaemon::open(&folder, 60, Vec::new()).await;
    assert_eq!(end_of(&daemon, job).await, Reason::Retired);
    let given = BTreeMap::new();
    let handle = &daemon.handle;
    let dispatched = handle.dispatch(workflow, "plain", &given, Actor::Daemon, None);
    assert!(dispatched.await.is_err());
    let unknown = handle.sources().sync(&source_name(), true).await;
    assert!(matches!(unknown, Err(SourceError::NoSuchSource { .. })));
    daemon.close().await;
}
