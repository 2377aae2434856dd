//! Tests the task that opens and closes conditions on a real state.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use model::callback::{AskedCertificate, CertificateSecret};
use model::condition::Problem;
use model::decide::{KeepCertificate, Precondition, Retire, SetVar};
use model::{Actor, SealingKey, WorkflowId, World};
use tempfile::TempDir;
use tokio::sync::watch;

use super::keep_conditions;
use crate::Upkeep;
use crate::testing::{Seeded, TestDaemon, activate, configure, freeze, pass, source_name};

const BACKUP: &str = "
scans:
  backup:
    on: {dispatch: {}}
    expect: {success_every: 1h}
    steps: [{run: 'echo ${{ vars.TARGET }}'}]
";

fn codes(world: &World) -> Vec<&'static str> {
    let mut codes: Vec<_> = world.conditions().map(|open| open.problem.code()).collect();
    codes.sort_unstable();
    codes
}

async fn push(daemon: &TestDaemon) -> WorkflowId {
    let state = daemon.handle.state();
    state.submit(configure()).await.unwrap();
    state.submit(activate("w", BACKUP)).await.unwrap();
    WorkflowId::derive(&source_name(), "w")
}

#[tokio::test(start_paused = true)]
async fn time_and_waiting_jobs_open_conditions_without_another_change() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let workflow = push(&daemon).await;
    assert_eq!(daemon.handle.state().read(codes), ["missing_var"]);
    daemon.dispatch(workflow, "backup").await;
    pass(&daemon, Duration::from_secs(61 * 60)).await;
    daemon
        .until("all conditions", |world| {
            codes(world) == ["missing_var", "overdue", "stuck"]
        })
        .await;
    let set = SetVar {
        project: daemon.handle.state().read(|world| {
            let mut sources = world.sources();
            sources.next().unwrap().project
        }),
        name: "TARGET".to_owned(),
        value: "x".to_owned(),
        expects: Precondition::Anything,
        actor: Actor::Daemon,
    };
    daemon.handle.state().submit(set).await.unwrap();
    assert_eq!(daemon.handle.state().read(codes), ["overdue", "stuck"]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_missing_vars_do_not_keep_other_conditions_from_opening() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    push(&daemon).await;
    let step = |name: usize| format!("{{run: 'echo ${{{{ vars.V{name} }}}}'}}, ");
    let steps: String = (1..1_000).map(step).collect();
    let text = format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{steps}]}}}}");
    let state = daemon.handle.state();
    state.submit(activate("many", &text)).await.unwrap();
    daemon
        .until("a thousand", |world| codes(world) == ["missing_var"; 1_000])
        .await;
    let workflow = WorkflowId::derive(&source_name(), "many");
    state.submit(Retire { workflow }).await.unwrap();
    daemon
        .until("one", |world| codes(world) == ["missing_var"])
        .await;
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_backup_and_the_end_of_the_certificate_are_conditions() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let expires = watch::Sender::new(None);
    let upkeep = Upkeep {
        certificate: Some(expires.subscribe()),
        backup_within: Some(TimeDelta::hours(26)),
        ..Upkeep::default()
    };
    let daemon = TestDaemon::watching(&folder, upkeep).await;
    let becomes = async |expected: &[&str]| {
        pass(&daemon, Duration::from_secs(180)).await;
        let what = format!("{expected:?}");
        daemon.until(&what, |world| codes(world) == expected).await;
    };
    becomes(&["backup_old"]).await;
    let root = folder.path().join("state");
    state::back_up(&root, &folder.path().join("backup"), &|| false).unwrap();
    becomes(&[]).await;
    let newest = daemon.handle.state().newest_backup().unwrap();

    daemon.clock.set_forward(newest - daemon.handle.now());
    expires.send_replace(Some(newest + TimeDelta::days(15)));
    becomes(&[]).await;
    daemon.clock.set_forward(TimeDelta::hours(26));
    becomes(&["backup_old", "certificate_expires"]).await;
    let is_dated = |world: &World| {
        let newest = Some(newest);
        let mut open = world.conditions();
        open.any(|one| one.problem == Problem::BackupOld { newest })
    };
    assert!(daemon.handle.state().read(is_dated));
    expires.send_replace(Some(newest + TimeDelta::days(90)));
    becomes(&["backup_old"]).await;
}

#[tokio::test(start_paused = true)]
async fn callback_servers_without_a_certificate_are_a_condition() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let expires = watch::Sender::new(None);
    let upkeep = Upkeep {
        callback_certificate: Some(expires.subscribe()),
        ..Upkeep::default()
    };
    let daemon = TestDaemon::watching(&folder, upkeep).await;
    let becomes = async |expected: &str| {
        pass(&daemon, Duration::from_secs(180)).await;
        let is_so = |world: &World| {
            let texts = world.conditions().map(|it| it.problem.to_string());
            texts.collect::<String>() == expected
        };
        daemon.until(expected, is_so).await;
    };
    let keep = async |directory: &str, failed: Option<&str>| {
        let keep = KeepCertificate {
            asked: AskedCertificate {
                directory: directory.to_owned(),
                email: "ops@example.com".to_owned(),
                zones: Vec::new(),
            },
            secret: CertificateSecret::default(),
            valid: None,
            failed: failed.map(str::to_owned),
            key: SealingKey::random(&mut Seeded(3)),
        };
        daemon.handle.state().submit(keep).await.unwrap();
    };
    // The first order is under way. The failure of an authority from before says nothing.
    becomes("").await;
    keep("https://old.example", Some("gone")).await;
    becomes("").await;
    keep("https://ca.example", Some("no answer")).await;
    becomes("HTTPS of callback servers has no certificate, and no new one is issued: no answer")
        .await;
    let start = daemon.handle.now();
    expires.send_replace(Some(start + TimeDelta::days(30)));
    becomes("").await;
    daemon.clock.set_forward(TimeDelta::days(20));
    let at = (start + TimeDelta::days(30)).to_rfc3339_opts(SecondsFormat::Secs, true);
    becomes(&format!(
        "the certificate of callback servers expires at {at}, and no new one is issued: no answer"
    ))
    .await;
    keep("https://ca.example", None).await;
    expires.send_replace(Some(start + TimeDelta::days(110)));
    becomes("").await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_and_a_lost_runner_end_no_condition_that_goes_on() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let workflow = push(&daemon).await;
    daemon.dispatch(workflow, "backup").await;
    pass(&daemon, Duration::from_secs(5 * 60)).await;
    let stuck = |world: &World| codes(world) == ["missing_var", "stuck"];
    daemon.until("a waiting job", stuck).await;
    daemon.register("box", 1).await;
    pass(&daemon, Duration::from_secs(5 * 60)).await;
    let all = |world: &World| codes(world) == ["missing_var", "runner_lost", "stuck"];
    daemon.until("a lost runner", all).await;
    let lost = |world: &World| {
        let mut open = world.conditions();
        let lost = open.find(|open| open.problem == Problem::RunnerLost);
        lost.map(|lost| (lost.id, lost.since))
    };
    let before = daemon.handle.state().read(lost);
    daemon.close().await;
    let daemon = TestDaemon::open(&folder, 700, Vec::new()).await;
    push(&daemon).await;
    pass(&daemon, Duration::from_secs(61 * 60)).await;
    // The same task has made several checks before it finds this.
    let is_late = |world: &World| codes(world).contains(&"overdue");
    daemon.until("a later condition", is_late).await;
    assert_eq!(daemon.handle.state().read(lost), before);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn five_thousand_expectations_cost_nothing_while_nothing_is_due() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    let state = daemon.handle.state();
    state.submit(configure()).await.unwrap();
    let scan = |at: usize, every: &str| {
        format!(
            "  s{at}: {{on: {{dispatch: {{}}}}, expect: {{success_every: {every}}}, steps: [{{run: x}}]}}\n"
        )
    };
    for file in 0..50 {
        let scans: String = (0..100).map(|at| scan(at, "26h")).collect();
        let activate = activate(&format!("w{file}"), &format!("scans:\n{scans}"));
        state.submit(activate).await.unwrap();
    }
    let one = activate("one", &format!("scans:\n{}", scan(0, "2h")));
    state.submit(one).await.unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    let (handle, counted) = (daemon.handle.clone(), polls.clone());
    let task = tokio::spawn(async move {
        let mut kept = pin!(keep_conditions(handle));
        let count = std::future::poll_fn(|context| {
            counted.fetch_add(1, Ordering::SeqCst);
            kept.as_mut().poll(context)
        });
        count.await;
    });
    let before = state.seq();
    pass(&daemon, Duration::from_secs(3_600)).await;
    assert_eq!(state.seq(), before, "nothing is written");
    // What no record says is measured once a minute, however many scans there are.
    let polls = polls.load(Ordering::SeqCst);
    assert!((1..=2 * 60).contains(&polls), "{polls} wake-ups");
    pass(&daemon, Duration::from_secs(3_660)).await;
    daemon
        .until("the one that is due", |world| codes(world) == ["overdue"])
        .await;
    assert_eq!(state.seq().0, before.0 + 1, "only one scan is looked at");
    task.abort();
    drop(task.await);
    daemon.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_condition_of_a_clock_that_was_wrong_ends_when_the_clock_is_right() {
    let _frozen = freeze();
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 10, Vec::new()).await;
    push(&daemon).await;
    let becomes = async |expected: &[&str]| {
        pass(&daemon, Duration::from_secs(180)).await;
        let what = format!("{expected:?}");
        daemon.until(&what, |world| codes(world) == expected).await;
    };
    daemon.clock.jump(TimeDelta::hours(5));
    becomes(&["missing_var", "overdue"]).await;
    daemon.clock.jump(TimeDelta::hours(-5));
    becomes(&["missing_var"]).await;
    daemon.close().await;
}
