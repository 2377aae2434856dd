//! Blobs that are changed at the same time, and blobs that expire.

use bytes::Bytes;
use chrono::TimeDelta;
use futures_util::future::join_all;
use model::decide::ConfigureSource;
use model::{Actor, Blob, BlobCondition, BlobPath, BlobUsage, KeptVersions, ProjectId};
use state::blobs::BlobQuery;
use state::{SubmitError, blobs::BlobEntry};
use tempfile::TempDir;

use super::{BlobSettings, NewBlob, Stored};
use crate::error::BlobError;
use crate::testing::{TestDaemon, source_name};

fn project() -> ProjectId {
    ProjectId::of_source(&source_name())
}

fn path(text: &str) -> BlobPath {
    text.parse().unwrap()
}

async fn daemon(folder: &TempDir) -> TestDaemon {
    daemon_with(folder, BlobSettings::default()).await
}

async fn daemon_with(folder: &TempDir, settings: BlobSettings) -> TestDaemon {
    let daemon = TestDaemon::storing(folder, settings).await;
    let configure = ConfigureSource {
        name: source_name(),
        url: "/srv/recon.git".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    };
    daemon.handle.state().submit(configure).await.unwrap();
    daemon
}

async fn store(
    daemon: &TestDaemon,
    at: &str,
    content: &'static str,
    expires_in: Option<TimeDelta>,
) -> Result<Stored, BlobError> {
    let new = NewBlob {
        project: project(),
        path: path(at),
        expires_in,
        condition: BlobCondition::None,
        actor: Actor::Daemon,
    };
    let upload = daemon.handle.blobs().begin(new, None).await?;
    let upload = upload.write(Bytes::from(content)).await?;
    upload.finish(None).await
}

async fn all(daemon: &TestDaemon) -> Vec<Blob> {
    let query = BlobQuery {
        project: project(),
        folder: Vec::new(),
        begin: String::new(),
        is_flat: false,
        after: None,
        limit: 20,
        now: daemon.handle.now(),
    };
    let page = daemon.handle.state().list_blobs(&query).await.unwrap();
    let blobs = page.entries.into_iter().map(|entry| match entry {
        BlobEntry::Blob(blob) => blob,
        BlobEntry::Folder(path) => panic!("{path} is in a list of blobs"),
    });
    blobs.collect()
}

fn usage(daemon: &TestDaemon) -> BlobUsage {
    let state = daemon.handle.state();
    state.read(|world| world.blob_usage(project()))
}

#[tokio::test]
async fn concurrent_changes_are_counted_correctly() {
    let folder = TempDir::new().unwrap();
    let daemon = daemon(&folder).await;
    let handle = &daemon.handle;
    store(&daemon, "a", "1", None).await.unwrap();
    let stores = (0..10).map(|_| store(&daemon, "a", "22", None));
    let moves = (0..10).map(|_| {
        handle
            .blobs()
            .rename(project(), path("a"), path("b/c"), BlobCondition::None)
    });
    let deletes = (0..5).map(|_| {
        handle
            .blobs()
            .delete(project(), path("b/c"), BlobCondition::None)
    });
    let (stored, moved, deleted) =
        tokio::join!(join_all(stores), join_all(moves), join_all(deletes));
    assert!(stored.iter().all(Result::is_ok), "{stored:?}");
    let refused = |error: Option<BlobError>| {
        matches!(
            error,
            None | Some(BlobError::Submit(SubmitError::Refused(_)))
        )
    };
    assert!(moved.into_iter().all(|moved| refused(moved.err())));
    assert!(deleted.into_iter().all(|deleted| refused(deleted.err())));
    let stored = all(&daemon).await;
    let bytes = stored.iter().map(|blob| blob.size).sum::<u64>();
    let blobs = stored.len() as u64;
    let used = usage(&daemon);
    assert_eq!((used.blobs, used.bytes), (blobs, bytes));
    daemon.close().await;
}

#[tokio::test]
async fn an_expired_blob_is_removed_and_no_longer_counted() {
    let folder = TempDir::new().unwrap();
    let daemon = daemon(&folder).await;
    let hour = TimeDelta::hours(1);
    store(&daemon, "old", "1", Some(hour)).await.unwrap();
    store(&daemon, "new", "22", Some(hour * 3)).await.unwrap();
    store(&daemon, "kept", "333", None).await.unwrap();
    daemon.clock.set_forward(hour * 2);
    daemon
        .handle
        .blobs()
        .remove_expired(|| daemon.handle.clock().ages())
        .await
        .unwrap();
    assert_eq!((usage(&daemon).blobs, usage(&daemon).bytes), (2, 5));
    let state = daemon.handle.state();
    assert_eq!(state.blob(project(), &path("old")).await.unwrap(), None);
    daemon.close().await;
}

#[tokio::test]
async fn the_newest_former_contents_are_kept() {
    let folder = TempDir::new().unwrap();
    let settings = BlobSettings {
        quota: Some(12),
        versions: KeptVersions::new([(vec!["kept".to_owned()], 2)].into()),
    };
    let daemon = daemon_with(&folder, settings).await;
    let handle = &daemon.handle;
    for content in ["1", "22", "22", "333", "4"] {
        daemon.clock.set_forward(TimeDelta::minutes(1));
        store(&daemon, "kept/a", content, None).await.unwrap();
        store(&daemon, "b", content, None).await.unwrap();
    }
    let sizes = async || {
        let blobs = all(&daemon).await;
        let sizes = blobs.iter().filter(|blob| blob.path.name() != "b");
        sizes.map(|blob| blob.size).collect::<Vec<_>>()
    };
    // Versions "22" and "333", then the present content. Storing the same content again makes no version.
    assert_eq!(sizes().await, [2, 3, 1]);
    assert_eq!((usage(&daemon).blobs, usage(&daemon).bytes), (4, 7));
    // A write that is refused because of its condition makes no version.
    let moved = handle
        .blobs()
        .rename(project(), path("b"), path("kept/a"), BlobCondition::Absent);
    moved.await.unwrap_err();
    assert_eq!(sizes().await, [2, 3, 1]);
    // A copy or a move that replaces content makes a version.
    daemon.clock.set_forward(TimeDelta::minutes(1));
    store(&daemon, "b", "55", None).await.unwrap();
    let moved = handle
        .blobs()
        .rename(project(), path("b"), path("kept/a"), BlobCondition::None);
    moved.await.unwrap();
    assert_eq!(sizes().await, [3, 1, 2]);
    // Versions count towards the quota.
    store(&daemon, "kept/a", "666666666", None)
        .await
        .unwrap_err();
    daemon.clock.set_forward(TimeDelta::minutes(1));
    store(&daemon, ".versions/kept/a/0", "1", None)
        .await
        .unwrap_err();
    let version = all(&daemon).await.remove(0);
    assert!(
        version.path.to_string().starts_with(".versions/kept/a/"),
        "{}",
        version.path
    );
    let copy = NewBlob {
        project: project(),
        path: path("kept/a"),
        expires_in: None,
        condition: BlobCondition::None,
        actor: Actor::Daemon,
    };
    handle.blobs().copy(version.path, copy).await.unwrap();
    assert_eq!(sizes().await, [1, 2, 3]);
    daemon.close().await;
}
