//! Tests the task that checks triggers on a real state.

use chrono::TimeDelta;
use model::decide::Cancel;
use model::event::{Event, What};
use model::{Actor, Cause, Outcome, Reason, Trigger, WorkflowId, World};
use state::{NewLogRecord, Stream};
use tempfile::TempDir;
use tokio::time::advance;

use super::*;
use crate::SourceConfig;
use crate::clock::ClockTrouble;
use crate::git::Access;
use crate::git::testing::{FILE, Fixture};
use crate::testing::{TestDaemon, activate, freeze, in_time, source_name};

const LOOP: &str = "
scans:
  hosts:
    on: {cron: '* * * * *', dispatch: {}}
    steps: [{run: x}]
  changes:
    on: {expr: \"scans.hosts.filter(j, j.state == 'succeeded').size() > 1\"}
    steps: [{run: x}]
";

async fn push(daemon: &TestDaemon, text: &str) -> WorkflowId {
    let state = daemon.handle.state();
    state.submit(activate("loop", text)).await.unwrap();
    WorkflowId::derive(&source_name(), "loop")
}

fn scan(workflow: WorkflowId, name: &str) -> ScanKey {
    ScanKey {
        workflow,
        scan: serde_json::from_value(name.into()).unwrap(),
    }
}

fn unfinished(world: &World, scan: &ScanKey) -> usize {
    world.jobs_of(scan).count()
}

async fn cancel_all(daemon: &TestDaemon, scan: &ScanKey) {
    let jobs: Vec<_> = daemon
        .handle
        .state()
        .read(|world| world.jobs_of(scan).map(|job| job.id).collect());
    for job in jobs {
        let actor = Actor::Daemon;
        daemon
            .handle
            .state()
            .submit(Cancel { job, actor })
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_due_slot_creates_a_job() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let hosts = scan(push(&daemon, LOOP).await, "hosts");
    daemon.clock.set_forward(TimeDelta::seconds(30));
    advance(Duration::from_secs(30)).await;
    daemon
        .until("the job of a slot", |world| unfinished(world, &hosts) == 1)
        .await;
    let why = daemon.handle.why(&hosts, None, 10).await.unwrap();
    assert_eq!(why.unfinished[0].trigger, Trigger::Cron);
    let [record] = why.records.as_slice() else {
        panic!("{:?}", why.records);
    };
    assert!(matches!(record.cause, Cause::Slots { count: 1, .. }));
    assert_eq!(
        record.outcome,
        Outcome::Made {
            job: why.unfinished[0].id
        }
    );
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_whose_decision_panics_is_not_retried_for_a_minute() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let hosts = scan(push(&daemon, LOOP).await, "hosts");
    daemon.defect.enable();
    pass(&daemon, 60).await;
    let panicked = async {
        while daemon.defect.panics() == 0 {
            tokio::task::yield_now().await;
        }
    };
    in_time("the panic", panicked).await;
    // Commits of other commands wake the task.
    for name in ["b", "c", "d", "e"] {
        pass(&daemon, 8).await;
        daemon.activate(name).await;
    }
    assert_eq!(daemon.defect.panics(), 1);
    daemon.defect.disable();
    pass(&daemon, 60).await;
    daemon
        .until("the job of a slot", |world| unfinished(world, &hosts) == 1)
        .await;
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_replaced_job_is_counted_with_its_log() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let text = LOOP.replacen("    steps", "    overlap: replace\n    steps", 1);
    let hosts = scan(push(&daemon, &text).await, "hosts");
    let (runner, _) = daemon.register("r", 1).await;
    daemon.clock.set_forward(TimeDelta::seconds(60));
    advance(Duration::from_secs(60)).await;
    let (older, token) = daemon.offer(runner, &[]).await;
    let worker = daemon.handle.worker(older, token.hash()).await.unwrap();
    daemon.handle.resolve(&worker, None).await.unwrap();
    let line = NewLogRecord {
        at: daemon.handle.now(),
        step: None,
        stream: Stream::Stdout,
        text: "a line".to_owned(),
    };
    let logs = daemon.handle.state().logs();
    logs.append(older, 0, vec![line]).await.unwrap();
    daemon.clock.set_forward(TimeDelta::seconds(60));
    advance(Duration::from_secs(60)).await;
    daemon
        .until("the newer job", |world| world.job(older).is_none())
        .await;
    let older = daemon.job(older).await;
    assert_eq!(older.state.name(), "cancelled");
    let bytes = older.state.run().unwrap().log_bytes;
    assert!(bytes > 0, "the log is counted");
    let total = |world: &World| world.head(&hosts).unwrap().totals.bytes;
    assert_eq!(daemon.handle.state().read(total), bytes);
    daemon.close().await;
}

#[tokio::test]
async fn slots_missed_during_downtime_create_one_job_and_are_recorded() {
    let (folder, fixture) = (TempDir::new().unwrap(), Fixture::bare());
    fixture.push(&[("workflows/loop.yaml", FILE, LOOP.as_bytes())]);
    let config = SourceConfig {
        name: source_name(),
        location: fixture.location(),
        access: Access::default(),
        reference: None,
        folder: "workflows".to_owned(),
        interval: Duration::from_secs(3600),
    };
    let daemon = TestDaemon::open(&folder, 10, vec![config.clone()]).await;
    daemon
        .handle
        .sources()
        .sync(&source_name(), true)
        .await
        .unwrap();
    daemon.close().await;

    let daemon = TestDaemon::open(&folder, 10 + 3600, vec![config]).await;
    let hosts = scan(WorkflowId::derive(&source_name(), "loop"), "hosts");
    daemon
        .until("the job of the newest slot", |world| {
            unfinished(world, &hosts) == 1
        })
        .await;
    let why = daemon.handle.why(&hosts, None, 10).await.unwrap();
    let outcomes: Vec<_> = why
        .records
        .iter()
        .map(|record| (&record.cause, &record.outcome))
        .collect();
    let [
        (Cause::Slots { count: 1, .. }, Outcome::Made { .. }),
        (missed, not_made),
    ] = outcomes.as_slice()
    else {
        panic!("{outcomes:?}");
    };
    assert!(
        matches!(missed, Cause::Slots { count: 59, .. }),
        "{missed:?}"
    );
    let reason = Reason::SlotsMissed;
    assert_eq!(**not_made, Outcome::NotMade { reason });
    let is_missed = |event: &Event| event.what == What::SlotMissed;
    let events = daemon.handle.state().events((None, None), is_missed, 10);
    assert_eq!(events.await.unwrap().len(), 1);
    daemon.close().await;
}

#[tokio::test]
async fn an_expression_reads_the_stored_history_of_a_scan() {
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = push(&daemon, LOOP).await;
    let (hosts, changes) = (scan(workflow, "hosts"), scan(workflow, "changes"));
    let (runner, _) = daemon.register("r", 1).await;
    for round in 0..2 {
        let worker = daemon.run(runner, workflow, "hosts").await;
        daemon
            .handle
            .complete(
                &worker,
                vec![crate::testing::succeeded()],
                workflow::Outputs::new(),
                std::collections::BTreeMap::new(),
                0,
                None,
            )
            .await
            .unwrap();
        let made = daemon
            .handle
            .state()
            .read(|world| unfinished(world, &changes));
        assert_eq!(made, round, "the expression needs two successes");
    }
    let why = daemon.handle.why(&changes, None, 10).await.unwrap();
    assert_eq!(why.evaluation.unwrap().holds(), Some(true));
    let outcomes: Vec<_> = why.records.iter().map(|record| &record.outcome).collect();
    let [Outcome::Made { .. }, Outcome::NotMade { reason }] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(*reason, Reason::ExpressionFalse);
    cancel_all(&daemon, &changes).await;
    cancel_all(&daemon, &hosts).await;
    daemon.close().await;
}

const COSTLY: &str = "
scans:
  source:
    on: {dispatch: {}}
    steps: [{run: x}]
  costly:
    on: {expr: \"scans.source.exists(a, scans.source.exists(b, a.id == b.id && a.state == 'succeeded'))\"}
    steps: [{run: x}]
";

#[tokio::test]
async fn costly_expressions_are_evaluated_outside_of_the_committer() {
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
    let workflow = push(&daemon, COSTLY).await;
    let costly = scan(workflow, "costly");
    let (runner, _) = daemon.register("r", 1).await;
    let worker = daemon.run(runner, workflow, "source").await;
    let (steps, outputs) = (vec![crate::testing::succeeded()], workflow::Outputs::new());
    let source = daemon.handle.complete(
        &worker,
        steps,
        outputs,
        std::collections::BTreeMap::new(),
        0,
        None,
    );
    let source = source.await.unwrap().id;
    daemon
        .until("the job of the expression", |world| {
            unfinished(world, &costly) == 1
        })
        .await;
    let why = daemon.handle.why(&costly, None, 10).await.unwrap();
    let [record] = why.records.as_slice() else {
        panic!("{:?}", why.records);
    };
    assert!(matches!(&record.cause, Cause::Success { job, .. } if *job == source));
    let (job, token) = daemon.offer(runner, &[]).await;
    let worker = daemon.handle.worker(job, token.hash()).await.unwrap();
    let resolved = daemon.handle.resolve(&worker, None).await.unwrap();
    assert_eq!(
        (resolved.job.id, resolved.job.state.name()),
        (job, "running")
    );
    cancel_all(&daemon, &costly).await;
    daemon.close().await;
}

const YEAR: TimeDelta = TimeDelta::days(400);

/// Moves both clocks, which wakes the task.
async fn pass(daemon: &TestDaemon, seconds: u64) {
    let time = Duration::from_secs(seconds);
    daemon.clock.set_forward(TimeDelta::from_std(time).unwrap());
    advance(time).await;
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_wrong_time_is_reported_and_schedules_continue() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let hosts = scan(push(&daemon, LOOP).await, "hosts");
    let one = |world: &World| unfinished(world, &hosts) == 1;
    daemon.clock.jump(YEAR);
    pass(&daemon, 62).await;
    daemon.until("the job at the wrong time", one).await;
    cancel_all(&daemon, &hosts).await;
    daemon.clock.jump(-YEAR);
    pass(&daemon, 30).await;
    let now = daemon.handle.now();
    let is_back = |world: &World| world.followed_until(&hosts).is_some_and(|it| it <= now);
    daemon.until("the schedule to move back", is_back).await;
    let why = daemon.handle.why(&hosts, None, 1).await.unwrap();
    assert!(matches!(
        why.records[0].outcome,
        Outcome::NotMade {
            reason: Reason::ClockSetBack { .. }
        }
    ));
    let is_reported = || {
        let trouble = daemon.handle.clock().trouble();
        matches!(trouble, Some(ClockTrouble::Jumped { schedules: 1, .. }))
    };
    // The task reports the schedule a moment after the schedule has moved back.
    in_time("the report of the schedule", async {
        while !is_reported() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pass(&daemon, 60).await;
    daemon.until("the job of the next slot", one).await;
    // The clock is trusted again when it has been right for an hour.
    daemon.clock.set_forward(TimeDelta::hours(1));
    assert_eq!(daemon.handle.clock().trouble(), None);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn moving_a_schedule_back_is_retried_after_a_pause() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let hosts = scan(push(&daemon, LOOP).await, "hosts");
    daemon.clock.jump(YEAR);
    pass(&daemon, 62).await;
    daemon
        .until("the job", |world| unfinished(world, &hosts) == 1)
        .await;
    cancel_all(&daemon, &hosts).await;
    let handle = &daemon.handle;
    // Let the task handle the change and go to sleep.
    handle.state().settled().await.unwrap();
    tokio::task::yield_now().await;
    daemon.clock.jump(-YEAR);
    // A folder blocks the path of a file that the commit would write.
    let in_the_way = format!(
        "state/workflows/{}/scans/hosts/repeats.json",
        hosts.workflow
    );
    let in_the_way = folder.path().join(in_the_way);
    std::fs::create_dir(&in_the_way).unwrap();
    let is_ahead = || {
        let read = |world: &World| world.followed_until(&hosts).unwrap();
        handle.state().read(read) > handle.now()
    };
    let mut resting = HashMap::new();
    check_cursors(handle, &mut None, &mut resting).await;
    std::fs::remove_dir(&in_the_way).unwrap();
    check_cursors(handle, &mut None, &mut resting).await;
    assert!(is_ahead(), "retried at once");
    resting.clear();
    check_cursors(handle, &mut None, &mut resting).await;
    assert!(!is_ahead());
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_some_hours_ahead_waits_and_is_reported() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let hosts = scan(push(&daemon, LOOP).await, "hosts");
    let hours = TimeDelta::hours(5);
    daemon.clock.jump(hours);
    pass(&daemon, 62).await;
    daemon
        .until("the job", |world| unfinished(world, &hosts) == 1)
        .await;
    daemon.clock.jump(-hours);
    let why = daemon.handle.why(&hosts, None, 1).await.unwrap();
    let until = why.ahead.unwrap();
    assert!(until - daemon.handle.now() > TimeDelta::hours(4));
    daemon.clock.set_forward(TimeDelta::hours(1));
    let expected = ClockTrouble::Ahead {
        schedules: 1,
        until,
    };
    daemon.clock.set_forward(TimeDelta::minutes(1));
    // The checks saw both jumps, and an hour has passed since then.
    while daemon.handle.clock().trouble() != Some(expected) {
        daemon.clock.set_forward(TimeDelta::minutes(1));
        assert!(daemon.handle.now() < until, "never reported");
    }
    daemon.close().await;
}
