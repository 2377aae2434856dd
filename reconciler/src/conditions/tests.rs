//! Tests the task that opens and closes conditions on a real state.

use std::time::Duration;

use model::decide::{Precondition, SetVar};
use model::{Actor, WorkflowId, World};
use tempfile::TempDir;

use crate::testing::{TestDaemon, activate, configure, freeze, pass, source_name};

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
