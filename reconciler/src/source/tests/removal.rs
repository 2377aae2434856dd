//! Workflows that are retired because their files were removed, and files that are only unreadable.

use model::decide::ApproveRemoval;

use super::*;
use crate::git::testing::LINK;

#[tokio::test]
async fn a_removed_file_retires_its_workflow_and_its_revisions_continue_later() {
    let scene = Scene::new();
    let (a, b) = (
        ("workflows/a.yaml", text("1")),
        ("workflows/b.yaml", text("1")),
    );
    scene.push(&[(a.0, &a.1), (b.0, &b.1)]);
    let daemon = scene.open_and_poll(0).await;
    scene.push(&[(b.0, &b.1)]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"].0, "retired");
    assert_eq!(runs(&daemon)["b"].0, "active");

    scene.push(&[(a.0, &a.1), (b.0, &b.1)]);
    sync(&daemon).await;
    assert_eq!(
        runs(&daemon)["a"],
        run("active", 1, a.0),
        "the same text has the same revision"
    );
    scene.push(&[(b.0, &b.1)]);
    sync(&daemon).await;
    scene.push(&[(a.0, &text("2")), (b.0, &b.1)]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"], run("active", 2, a.0));
    daemon.close().await;
}

#[tokio::test]
async fn removing_the_last_file_of_the_folder_retires_its_workflow() {
    let scene = Scene::new();
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    scene.push(&[("readme", "no workflow")]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"].0, "retired");
    let active = condition(&daemon, SourceConditionKind::Active);
    let folder = "workflows".to_owned();
    assert_eq!(active.reason, Reason::FolderMissing { folder });
    daemon.close().await;
}

#[tokio::test]
async fn removing_all_workflows_needs_an_approval() {
    let scene = Scene::new();
    let (a, b, c) = (
        ("workflows/a.yaml", text("1")),
        ("workflows/b.yaml", text("1")),
        ("workflows/c.yaml", text("1")),
    );
    scene.push(&[(a.0, &a.1), (b.0, &b.1)]);
    let daemon = scene.open_and_poll(0).await;
    let approve = async |commit: CommitId| {
        let approve = ApproveRemoval {
            name: source_name(),
            commit: commit.to_string(),
        };
        daemon.handle.state().submit(approve).await
    };
    let states = || -> Vec<(String, &'static str)> {
        let runs = runs(&daemon).into_iter();
        runs.map(|(name, (state, ..))| (name, state)).collect()
    };
    let both = [("a".to_owned(), "active"), ("b".to_owned(), "active")];

    let gone = scene.push(&[(c.0, &c.1)]);
    sync(&daemon).await;
    assert_eq!(states(), both);
    let active = condition(&daemon, SourceConditionKind::Active);
    assert_eq!(
        (active.status, active.reason.code()),
        (Status::False, "removal_held")
    );
    // A later tip needs its own approval.
    let later = scene.push(&[(c.0, &c.1), ("readme", "")]);
    sync(&daemon).await;
    let refused = approve(gone).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(states(), both);
    // The next poll applies the approved removal.
    approve(later).await.unwrap();
    sync(&daemon).await;
    assert_eq!(
        states(),
        [
            ("a".to_owned(), "retired"),
            ("b".to_owned(), "retired"),
            ("c".to_owned(), "active")
        ]
    );
    let source = source(&daemon);
    assert_eq!((source.removal, &source.applied_commit), (None, &None));
    assert_eq!(
        condition(&daemon, SourceConditionKind::Active).status,
        Status::True
    );
    daemon.close().await;
}

#[tokio::test]
async fn a_linked_folder_or_a_missing_repository_retires_no_workflow() {
    let scene = Scene::new();
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    scene.fixture.push(&[
        ("moved/a.yaml", FILE, text("1").as_bytes()),
        ("workflows", LINK, b"moved"),
    ]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"].0, "active");
    let active = condition(&daemon, SourceConditionKind::Active);
    assert_eq!(
        active.reason.to_string(),
        "there is no folder `workflows` at the tip: `workflows` is a symbolic link to `moved`, and links are not \
         followed (name the folder itself as `path`); what was active stays active"
    );

    daemon.clock.set_forward(TimeDelta::seconds(100));
    let path = scene.fixture.path();
    let away = path.with_extension("away");
    fs::rename(&path, &away).unwrap();
    sync(&daemon).await;
    let fetched = condition(&daemon, SourceConditionKind::Fetched);
    assert!(matches!(fetched.reason, Reason::FetchFailed { .. }));
    assert_eq!(
        (fetched.status, fetched.changed_at),
        (Status::False, at(100))
    );
    let checked = daemon.handle.sources().checked_at(&source_name());
    daemon.clock.set_forward(TimeDelta::seconds(100));
    sync(&daemon).await;
    let fetched = condition(&daemon, SourceConditionKind::Fetched);
    assert_eq!(
        fetched.changed_at,
        at(100),
        "the time of the first failure is kept"
    );
    assert_eq!(daemon.handle.sources().checked_at(&source_name()), checked);
    assert_eq!(runs(&daemon)["a"].0, "active");

    fs::rename(&away, &path).unwrap();
    sync(&daemon).await;
    assert_eq!(
        condition(&daemon, SourceConditionKind::Fetched).status,
        Status::True
    );
    assert_eq!(
        daemon.handle.sources().checked_at(&source_name()),
        Some(at(200))
    );
    daemon.close().await;
}
