//! A revision that was accepted, but is refused by the language of a later release.

use model::decide::Activate;
use model::{JobState, RevisionRef};
use state::State;

use super::*;
use crate::testing::activate;

/// A workflow that an earlier release accepted. It is stored in place of [`text`].
const REFUSED: &str = "scans: { probe: { was_allowed: true } }\n";

fn last_good(state: &State) -> Option<RevisionRef> {
    state.read(|world| {
        let source = world.source(&source_name()).unwrap();
        assert!(!source.stale_files[0].diagnostics.is_empty());
        world.last_good(&source.stale_files[0]).cloned()
    })
}

#[tokio::test]
async fn a_revision_that_this_release_refuses_is_reported_and_keeps_its_jobs() {
    let scene = Scene::new();
    scene.push(&[("workflows/b.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    let accepted = Activate {
        text: REFUSED.into(),
        sha256: workflow::sha256(REFUSED.as_bytes()),
        ..activate("a", &text("1"))
    };
    daemon.handle.state().submit(accepted).await.unwrap();
    let a = WorkflowId::derive(&source_name(), "a");
    let job = daemon.dispatch(a, "probe").await;
    daemon.close().await;

    scene.push(&[
        ("workflows/a.yaml", REFUSED),
        ("workflows/b.yaml", &text("1")),
    ]);
    let daemon = scene.open_and_poll(10).await;
    let others = BTreeMap::from([("b".to_owned(), run("active", 1, "workflows/b.yaml"))]);
    assert_eq!(runs(&daemon), others);
    let state = daemon.handle.state();
    let record = state.read(|world| world.workflow_record(a).cloned().unwrap());
    assert_eq!(record.status, WorkflowStatus::Active);
    assert_eq!(last_good(state), Some(record.revision.clone()));
    let waiting = state.read(|world| world.job(job.id).cloned().unwrap());
    assert!(matches!(waiting.state, JobState::Scheduled));
    let given = BTreeMap::new();
    let dispatched = daemon
        .handle
        .dispatch(a, "probe", &given, Actor::Daemon, None);
    assert!(dispatched.await.is_err());

    scene.push(&[
        ("workflows/a.yaml", &text("2")),
        ("workflows/b.yaml", &text("1")),
    ]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"], run("active", 2, "workflows/a.yaml"));
    assert_eq!(source(&daemon).stale_files, []);
    daemon.dispatch(a, "probe").await;
    daemon.close().await;
}
