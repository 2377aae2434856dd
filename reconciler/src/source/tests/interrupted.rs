//! Polls that stop half-way, as after a crash between two commits.

use super::*;
use crate::git::Tip;
use crate::source::poll::poll;
use crate::testing::{HandClock, closed, open_state};

/// Polls, but stops after this number of changes of the world. True if the poll finished first.
async fn poll_until(scene: &Scene, state: &State, applied: &mut Option<Tip>, changes: u64) -> bool {
    let mut commits = state.subscribe(state.seq()).unwrap();
    let stopped = async {
        for _ in 0..changes {
            commits.next().await.unwrap();
        }
    };
    let config = scene.config();
    let folder = mirror_folder(
        &state::mirrors_folder(&scene.folder.path().join("state")),
        &config.name,
    );
    let mirror = Mirror::new(folder, Calls::default());
    tokio::select! {
        // A change is published before its command returns, so no other command is submitted.
        biased;
        () = stopped => false,
        polled = poll(state, &config, &mirror, applied) => {
            assert!(polled.is_ok());
            true
        }
    }
}

#[tokio::test]
async fn the_next_poll_finishes_a_poll_that_stopped_anywhere() {
    let large = format!("# {}\n{}", "x".repeat(70 * 1024), text("2"));
    let prepared = || {
        let scene = Scene::new();
        scene.push(&[
            ("workflows/a.yaml", &text("1")),
            ("workflows/b.yaml", &text("1")),
            ("workflows/c.yaml", &text("1")),
            ("workflows/d.yaml", &text("1")),
        ]);
        scene
    };
    let change = |scene: &Scene| {
        scene.push(&[
            ("workflows/a.yaml", &text("2")),
            ("workflows/b.yaml", &large),
            ("workflows/d.yaml", "scans: 1"),
            ("workflows/e.yaml", &text("1")),
        ])
    };
    let outcome = |daemon: &TestDaemon| {
        let source = source(daemon);
        (
            runs(daemon),
            source.tip.clone(),
            source.stale_files.clone(),
            source.conditions.clone(),
        )
    };

    let scene = prepared();
    scene.open_and_poll(0).await.close().await;
    change(&scene);
    let daemon = scene.open_and_poll(60).await;
    let expected = outcome(&daemon);
    assert_eq!(expected.0["b"].1, 2);
    assert_eq!(expected.0["c"].0, "retired");
    daemon.close().await;

    for stop_after in 1.. {
        let scene = prepared();
        scene.open_and_poll(0).await.close().await;
        change(&scene);
        let (state, closing) = open_state(&scene.folder, HandClock::at(60)).await;
        let has_finished = poll_until(&scene, &state, &mut None, stop_after).await;
        drop(state);
        closed(closing).await;
        let daemon = scene.open_and_poll(60).await;
        assert_eq!(
            outcome(&daemon),
            expected,
            "stopped after {stop_after} changes"
        );
        daemon.close().await;
        if has_finished {
            assert!(
                (4..=7).contains(&stop_after),
                "three files that may share commits, the hold of the invalid file, one removal, and the tip: {stop_after}"
            );
            break;
        }
    }
}

#[tokio::test]
async fn returning_to_the_earlier_tip_reverts_a_partly_applied_tip() {
    let scene = Scene::new();
    let first = scene.push(&[
        ("workflows/a.yaml", &text("1")),
        ("workflows/b.yaml", &text("1")),
    ]);
    let (state, closing) = open_state(&scene.folder, HandClock::at(0)).await;
    let mut applied = None;
    assert!(poll_until(&scene, &state, &mut applied, u64::MAX / 2).await);
    assert_eq!(applied.as_ref().map(|tip| tip.commit), Some(first));

    scene.push(&[
        ("workflows/a.yaml", &text("2")),
        ("workflows/b.yaml", &text("2")),
    ]);
    assert!(!poll_until(&scene, &state, &mut applied, 1).await);
    scene
        .fixture
        .git(&["update-ref", "refs/heads/main", &first.to_string()]);
    assert!(poll_until(&scene, &state, &mut applied, u64::MAX / 2).await);
    let of_a = state.read(|world| {
        let workflow = world
            .workflow(WorkflowId::derive(&source_name(), "a"))
            .unwrap();
        workflow.revision.record.text.sha256.clone()
    });
    assert_eq!(of_a, workflow::sha256(text("1").as_bytes()));
    drop(state);
    closed(closing).await;
}
