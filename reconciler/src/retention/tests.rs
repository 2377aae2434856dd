//! Retention policies on a real state.

use std::sync::Arc;

use bytes::Bytes;
use chrono::TimeDelta;
use model::decide::Refusal;
use model::limits::REMOVAL_OPERATIONS;
use model::retention::{RetentionPolicy, RetentionSettings};
use model::{ActiveWorkflow, Actor, JobId, Reason, WorkflowId};
use state::SubmitError;
use tempfile::TempDir;

use crate::error::RemovalError;
use crate::expiry::remove_expired_artifacts;
use crate::testing::{TestDaemon, activate, source_name, succeeded};
use crate::{Retained, RunnerSession};

/// A scan with artifacts of different lifetimes, and a scan without artifacts.
const SCANS: &str = "
scans:
  build:
    on: {dispatch: {}}
    steps: [{run: 'true'}]
    artifacts:
      - {name: report, paths: [out]}
      - {name: cache, paths: [out], expires_in: 2h}
      - {name: note, paths: [out], expires_in: 5h}
  plain:
    on: {dispatch: {}}
    steps: [{run: 'true'}]
";

fn age(days: i64) -> RetentionPolicy {
    RetentionPolicy {
        age: Some(TimeDelta::days(days)),
        ..RetentionPolicy::default()
    }
}

fn bytes(count: u64) -> RetentionPolicy {
    RetentionPolicy {
        bytes: Some(count),
        ..RetentionPolicy::default()
    }
}

fn jobs(count: u64) -> RetentionPolicy {
    RetentionPolicy {
        jobs: Some(count),
        ..RetentionPolicy::default()
    }
}

async fn daemon(folder: &TempDir, default: RetentionPolicy) -> (TestDaemon, WorkflowId) {
    let retention = RetentionSettings {
        default,
        ..RetentionSettings::default()
    };
    let daemon = TestDaemon::keeping(folder, 0, Vec::new(), retention).await;
    let state = daemon.handle.state();
    state.submit(activate("kept", SCANS)).await.unwrap();
    (daemon, WorkflowId::derive(&source_name(), "kept"))
}

/// Runs a job of the scan successfully, with artifacts of these names.
async fn success(
    daemon: &TestDaemon,
    runner: RunnerSession,
    workflow: WorkflowId,
    scan: &str,
    artifacts: &[&str],
) -> JobId {
    daemon.clock.set_forward(TimeDelta::seconds(1));
    let worker = daemon.run(runner, workflow, scan).await;
    for name in artifacts {
        let upload = daemon.handle.state().begin_upload().await.unwrap();
        let upload = upload
            .write(Bytes::from_static(b"0123456789"))
            .await
            .unwrap();
        let stored =
            daemon
                .handle
                .store_artifact(&worker, (*name).to_owned(), upload, "d".to_owned());
        stored.await.unwrap();
    }
    let complete = daemon.handle.complete(
        &worker,
        vec![succeeded()],
        workflow::Outputs::new(),
        std::collections::BTreeMap::new(),
        0,
        None,
    );
    complete.await.unwrap().id
}

/// Creates jobs and cancels them before they start.
async fn cancelled(daemon: &TestDaemon, workflow: WorkflowId, count: usize) -> Vec<JobId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let job = daemon.dispatch(workflow, "plain").await.id;
        daemon.handle.cancel(job, Actor::Daemon).await.unwrap();
        ids.push(job);
    }
    ids
}

fn found(daemon: &TestDaemon, workflow: WorkflowId) -> ActiveWorkflow {
    let found = daemon.handle.state().read(|world| world.workflow(workflow));
    found.unwrap()
}

async fn pruned(daemon: &TestDaemon, workflow: WorkflowId, policy: RetentionPolicy) -> Retained {
    let workflow = found(daemon, workflow);
    let done = daemon.handle.prune(&workflow, Some(policy), false).await;
    done.unwrap()
}

fn kept(retained: &Retained, scan: &str) -> (u64, u64, u64) {
    let scan = retained.scans.iter().find(|it| it.scan.as_str() == scan);
    let scan = scan.unwrap();
    (scan.removed.jobs, scan.kept.jobs, scan.newest_successes)
}

#[tokio::test]
async fn concurrent_passes_remove_no_more_jobs_than_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    cancelled(&daemon, workflow, 20).await;
    let (first, second) = tokio::join!(
        pruned(&daemon, workflow, jobs(12)),
        pruned(&daemon, workflow, jobs(12))
    );
    assert_eq!(kept(&first, "plain"), (8, 12, 0));
    assert_eq!(kept(&second, "plain"), (0, 12, 0));
}

#[tokio::test]
async fn a_job_deleted_during_a_pass_counts_towards_its_removals() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let ids = cancelled(&daemon, workflow, 20).await;
    let (deleted, retained) = tokio::join!(
        daemon.handle.delete_job(ids[19], Actor::Daemon),
        pruned(&daemon, workflow, jobs(12))
    );
    deleted.unwrap();
    assert_eq!(kept(&retained, "plain"), (7, 12, 0));
}

#[tokio::test]
async fn a_dry_run_reports_the_removals_of_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let (runner, _) = daemon.register("one", 1).await;
    let first = success(&daemon, runner, workflow, "plain", &[]).await;
    for _ in 0..4 {
        success(&daemon, runner, workflow, "build", &["report"]).await;
    }
    // Its line stays in the history until a pass reads it. It must not be reported twice.
    let deleted = success(&daemon, runner, workflow, "build", &[]).await;
    for _ in 0..2 {
        success(&daemon, runner, workflow, "build", &["report"]).await;
    }
    daemon
        .handle
        .delete_job(deleted, Actor::Daemon)
        .await
        .unwrap();
    let waiting = daemon.dispatch(workflow, "plain").await.id;
    let of_workflow = found(&daemon, workflow);
    let found = daemon.handle.prune(&of_workflow, Some(jobs(1)), true).await;
    let found = found.unwrap();
    assert_eq!(kept(&found, "build"), (4, 2, 2));
    assert_eq!(kept(&found, "plain"), (0, 1, 1));
    assert_eq!(found.removed().bytes, 40);
    assert!(daemon.handle.state().job(first).await.unwrap().is_some());

    let done = pruned(&daemon, workflow, jobs(1)).await;
    assert_eq!(kept(&done, "build"), kept(&found, "build"));
    assert_eq!(kept(&done, "plain"), kept(&found, "plain"));
    assert_eq!((done.removed(), done.has_more), (found.removed(), false));
    let again = pruned(&daemon, workflow, jobs(1)).await;
    assert_eq!(again.removed().jobs, 0);
    let by_configuration = daemon.handle.prune(&of_workflow, None, false).await;
    assert_eq!(by_configuration.unwrap().removed().jobs, 0);
    assert_eq!(daemon.job(waiting).await.state.name(), "scheduled");
    daemon.close().await;
}

#[tokio::test]
async fn one_pass_removes_more_jobs_than_fit_into_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let ids = cancelled(&daemon, workflow, 130).await;
    daemon.clock.set_forward(TimeDelta::minutes(3));
    let kept = |id: JobId| {
        let state = daemon.handle.state().clone();
        async move { state.job(id).await.unwrap().is_some() }
    };
    daemon
        .handle
        .delete_job(ids[50], Actor::Daemon)
        .await
        .unwrap();
    let done = pruned(&daemon, workflow, jobs(4)).await;
    assert_eq!(done.removed().jobs, 125);
    assert!(!kept(ids[125]).await && kept(ids[126]).await);
    daemon.close().await;
}

/// As if pages of the history and its head had been removed by hand. The commit that skips the missing pages must not
/// be too large.
#[tokio::test]
async fn one_pass_skips_many_missing_pages_of_a_history() {
    for wide in [3, 41, 130] {
        let folder = tempfile::tempdir().unwrap();
        let (first, workflow) = daemon(&folder, RetentionPolicy::default()).await;
        cancelled(&first, workflow, 60).await;
        first.close().await;
        let state = folder.path().join("state");
        let scan = state.join(format!("workflows/{workflow}/scans/plain"));
        std::fs::remove_dir_all(state.join("index")).unwrap();
        std::fs::remove_file(scan.join("head.json")).unwrap();
        let page = |number: u64| scan.join(format!("history/{number}.jsonl"));
        let history = std::fs::read_to_string(page(0)).unwrap();
        let lines: Vec<&str> = history.split_inclusive('\n').collect();
        std::fs::write(page(0), lines[..20].concat()).unwrap();
        std::fs::write(page(wide), lines[20..].concat()).unwrap();

        let again = TestDaemon::open(&folder, 600, Vec::new()).await;
        let done = pruned(&again, workflow, jobs(5)).await;
        assert_eq!(kept(&done, "plain"), (55, 5, 0), "{wide} pages");
        let state = again.handle.state();
        state.settled().await.unwrap();
        assert!(!page(0).exists() && page(wide).exists());
        again.close().await;
    }
}

#[tokio::test]
async fn removed_artifacts_are_not_counted_again_with_their_job() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let (runner, _) = daemon.register("one", 1).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(success(&daemon, runner, workflow, "build", &["report", "note"]).await);
    }
    let name = "report".to_owned();
    let deleted = daemon.handle.delete_artifact(ids[0], name, Actor::Daemon);
    deleted.await.unwrap();
    let done = pruned(&daemon, workflow, bytes(75)).await;
    assert_eq!((done.removed().jobs, done.removed().bytes), (2, 30));
    assert_eq!(done.scans[0].kept.bytes, 60);
    daemon.close().await;
}

#[tokio::test]
async fn only_the_job_that_is_too_large_for_one_commit_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, _) = daemon(&folder, RetentionPolicy::default()).await;
    let names: Vec<String> = (0..REMOVAL_OPERATIONS).map(|it| format!("a{it}")).collect();
    let declared = names
        .iter()
        .map(|it| format!("{{name: {it}, paths: [out]}}"));
    let declared = declared.collect::<Vec<_>>().join(", ");
    let scan = "{on: {dispatch: {}}, steps: [{run: 'true'}]";
    let text = format!("scans: {{build: {scan}, artifacts: [{declared}]}}}}");
    let state = daemon.handle.state();
    state.submit(activate("large", &text)).await.unwrap();
    let workflow = WorkflowId::derive(&source_name(), "large");
    let (runner, _) = daemon.register("one", 1).await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    success(&daemon, runner, workflow, "build", &names).await;
    for _ in 0..3 {
        success(&daemon, runner, workflow, "build", &names[..1]).await;
    }
    let done = pruned(&daemon, workflow, bytes(40)).await;
    let large = 10 * names.len() as u64;
    assert_eq!((done.removed().jobs, done.removed().bytes), (1, large));
    assert_eq!((done.scans[0].kept.jobs, done.scans[0].kept.bytes), (3, 30));
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_daemon_enforces_its_policy_automatically() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, jobs(2)).await;
    let ids = cancelled(&daemon, workflow, 5).await;
    daemon.clock.set_forward(TimeDelta::minutes(3));
    let retained = |count| {
        move |world: &model::World| {
            let heads = world.heads().map(|head| world.retained(head).jobs());
            heads.sum::<u64>() == count
        }
    };
    daemon
        .until("the oldest jobs are removed", retained(2))
        .await;
    let state = daemon.handle.state();
    assert!(state.job(ids[2]).await.unwrap().is_none());
    assert!(state.job(ids[3]).await.unwrap().is_some());
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_are_removed_when_they_become_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, age(30)).await;
    cancelled(&daemon, workflow, 3).await;
    let none = |world: &model::World| world.heads().all(|head| world.retained(head).jobs() == 0);
    assert!(!daemon.handle.state().read(none));
    daemon.clock.set_forward(TimeDelta::days(31));
    daemon.until("all jobs are too old", none).await;
    daemon.close().await;
}

#[tokio::test]
async fn concurrent_requests_delete_a_job_once() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let (runner, _) = daemon.register("one", 1).await;
    let names = ["report", "cache"];
    let job = success(&daemon, runner, workflow, "build", &names).await;
    let waiting = daemon.dispatch(workflow, "plain").await.id;
    let refused = daemon.handle.delete_job(waiting, Actor::Daemon).await;
    assert!(matches!(
        refused,
        Err(RemovalError::Submit(SubmitError::Refused(
            Refusal::JobNotOver { .. }
        )))
    ));
    let deletions: Vec<_> = (0..8)
        .map(|_| {
            let handle = daemon.handle.clone();
            tokio::spawn(async move { handle.delete_job(job, Actor::Daemon).await })
        })
        .collect();
    let mut deleted = 0;
    for deletion in deletions {
        match deletion.await.unwrap() {
            Ok(()) => deleted += 1,
            Err(RemovalError::NoSuchJob { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(deleted, 1);
    daemon.handle.state().read(|world| {
        let head = world.heads().find(|head| head.scan.as_str() == "build");
        assert_eq!(world.retained(head.unwrap()), model::Totals::NONE);
    });
    daemon.close().await;
}

#[tokio::test]
async fn expired_artifacts_are_removed_every_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let (runner, _) = daemon.register("one", 1).await;
    let names = ["report", "cache", "note"];
    let first = success(&daemon, runner, workflow, "build", &names).await;
    let second = success(&daemon, runner, workflow, "build", &["cache"]).await;
    daemon.handle.state().settled().await.unwrap();
    // Files that were removed by hand do not stop the pass.
    let id = second.to_string();
    remove_below(&folder.path().join("state/jobs"), &id);
    let removed = async |hours| {
        daemon.clock.set_forward(TimeDelta::hours(hours));
        remove_expired_artifacts(&daemon.handle).await.unwrap();
        let job: Arc<model::Job> = daemon.job(first).await;
        let artifacts = &job.state.run().unwrap().artifacts;
        let gone = artifacts.iter().filter(|it| it.removed.is_some());
        let gone = gone.map(|it| it.name.clone()).collect::<Vec<_>>().join(" ");
        (gone, job)
    };
    assert_eq!(removed(0).await.0, "");
    assert_eq!(removed(3).await.0, "cache");
    let (gone, job) = removed(3).await;
    assert_eq!(gone, "cache note");
    let note = &job.state.run().unwrap().artifacts[2];
    assert_eq!(note.removed.as_ref().unwrap().reason, Reason::Expired);
    let state = daemon.handle.state();
    let opened = async |name| state.open_artifact(first, name).await.unwrap().is_some();
    state.settled().await.unwrap();
    assert!(opened("report").await && !opened("note").await);
    assert!(!folder.path().join("state/expiries").exists());
    daemon.close().await;
}

/// Removes the folder of this name at any depth.
fn remove_below(folder: &std::path::Path, name: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(name) {
            std::fs::remove_dir_all(&path).unwrap();
        } else if path.is_dir() {
            remove_below(&path, name);
        }
    }
}

#[tokio::test]
async fn nothing_is_removed_by_age_within_an_hour_after_a_clock_jump() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let (runner, _) = daemon.register("one", 1).await;
    let names = ["cache"];
    let kept_job = success(&daemon, runner, workflow, "build", &names).await;
    cancelled(&daemon, workflow, 3).await;
    let prune = async |expected: u64, waits: bool| {
        let done = pruned(&daemon, workflow, age(30)).await;
        assert_eq!((done.removed().jobs, done.age_waits), (expected, waits));
        remove_expired_artifacts(&daemon.handle).await.unwrap();
        let job = daemon.job(kept_job).await;
        job.stored_artifacts().count()
    };
    let year = TimeDelta::days(400);
    daemon.clock.jump(year);
    assert_eq!(prune(0, true).await, 1);
    daemon.clock.set_forward(TimeDelta::minutes(1));
    daemon.clock.jump(-year);
    assert_eq!(prune(0, true).await, 1);
    daemon.clock.set_forward(TimeDelta::minutes(59));
    assert_eq!(prune(0, true).await, 1);
    daemon.clock.set_forward(TimeDelta::minutes(2));
    assert_eq!(prune(0, false).await, 1);
    daemon.clock.set_forward(TimeDelta::hours(3));
    assert_eq!(prune(0, false).await, 0);
    daemon.clock.set_forward(TimeDelta::days(30));
    assert_eq!(prune(3, false).await, 0);
    daemon.close().await;
}

#[tokio::test]
async fn a_job_that_has_just_ended_stays_and_is_reported_without_blocking_others() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, workflow) = daemon(&folder, RetentionPolicy::default()).await;
    let (runner, _) = daemon.register("one", 1).await;
    let young = daemon.run(runner, workflow, "plain").await.job().id;
    daemon.handle.cancel(young, Actor::Daemon).await.unwrap();
    let mut later = Vec::new();
    for _ in 0..4 {
        later.push(success(&daemon, runner, workflow, "plain", &[]).await);
    }
    let workflow = found(&daemon, workflow);
    let prune = async |dry_run| {
        let done = daemon.handle.prune(&workflow, Some(jobs(0)), dry_run).await;
        let done = done.unwrap();
        let just_ended: u64 = done.scans.iter().map(|it| it.just_ended).sum();
        (kept(&done, "plain"), just_ended)
    };
    assert_eq!(prune(true).await, ((2, 3, 2), 1));
    assert_eq!(prune(false).await, ((2, 3, 2), 1));
    daemon.job(young).await;
    assert!(daemon.handle.state().job(later[1]).await.unwrap().is_none());
    daemon.clock.set_forward(TimeDelta::minutes(2));
    assert_eq!(prune(false).await, ((1, 2, 2), 0));
    assert_eq!(prune(false).await, ((0, 2, 2), 0));
    daemon.close().await;
}
