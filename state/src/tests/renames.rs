//! Tests that a renamed scan continues from its old state, even after a crash.

use model::decide::Suspend;
use model::{Actor, ScanHead, World};

use super::fixture::{Folder, Opened};
use super::fsck::findings;
use super::news;
use crate::fsck::Code;

/// Ignores modes, because a crashed copy has different modes.
fn assert_clean(folder: &Folder) {
    let found = findings(folder).into_iter();
    let found = found.filter(|finding| finding.code != Code::Mode);
    assert_eq!(found.collect::<Vec<_>>(), []);
}

#[tokio::test]
async fn the_state_that_a_renamed_scan_took_over_survives_a_crash_and_a_lost_index() {
    let mut folder = Folder::new();
    let (opened, fleet, first) = news::watching(&mut folder).await;
    let second = news::built(&opened, fleet).await;
    let running = opened.running_job(fleet, "reader").await;
    let suspend = Suspend {
        workflow: fleet.workflow,
        scan: Some("reader".to_owned()),
        reason: "too loud".to_owned(),
        actor: Actor::Daemon,
    };
    opened.state.submit(suspend).await.unwrap();
    opened.state.settled().await.unwrap();
    let before = opened.head(fleet, "reader");
    let renamed = news::WATCHING.replace("  reader:\n", "  worker:\n    renamed_from: reader\n");
    opened.activate("watching", &renamed).await;
    let mut crashed = folder.crashed();

    let worker = fleet.scan("worker");
    let known = |opened: &Opened| {
        let head = ScanHead::clone(&opened.head(fleet, "worker"));
        let suspension = |world: &World| world.suspension(&worker).cloned();
        (head, opened.state.read(suspension))
    };
    let (head, suspension) = known(&opened);
    assert_eq!(head.renamed_from, Some(before.scan.clone()));
    assert_eq!(head.successes, before.successes);
    assert_eq!(head.processed, before.processed);
    assert_eq!(head.processed["build"].success, first);
    assert_eq!(suspension.as_ref().unwrap().reason, "too loud");
    opened.close();
    assert_clean(&folder);

    for has_index in [true, false] {
        if !has_index {
            crashed.remove_index();
        }
        let opened = crashed.open().await;
        assert_eq!(known(&opened), (head.clone(), suspension.clone()));
        assert_eq!(opened.head(fleet, "reader"), before);
        opened.close();
        assert_clean(&crashed);
    }

    // A job that still runs under the old name ends there. Its result also counts for the new name.
    let opened = crashed.open().await;
    opened.complete(running).await;
    let (head, _) = known(&opened);
    assert_eq!(head.successes[0].job, running);
    assert_eq!(head.processed["build"].success, second);
    assert_eq!(head.totals.jobs(), 0);
    opened.close();
    assert_clean(&crashed);
    let opened = crashed.open().await;
    assert_eq!(known(&opened).0, head);
    opened.close();
}
