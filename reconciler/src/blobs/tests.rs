//! Blobs that are changed at the same time, and blobs that run out.

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
use crate::testing::{House, source_name};

fn project() -> ProjectId {
    ProjectId::of_source(&source_name())
}

fn path(text: &str) -> BlobPath {
    text.parse().unwrap()
}

async fn house(folder: &TempDir) -> House {
    house_with(folder, BlobSettings::default()).await
}

async fn house_with(folder: &TempDir, settings: BlobSettings) -> House {
    let house = House::storing(folder, settings).await;
    let configure = ConfigureSource {
        name: source_name(),
        url: "/srv/recon.git".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    };
    house.handle.state().submit(configure).await.unwrap();
    house
}

async fn store(
    house: &House,
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
    let upload = house.handle.blobs().begin(new, None).await?;
    let upload = upload.write(Bytes::from(content)).await?;
    upload.finish(None).await
}

async fn all(house: &House) -> Vec<Blob> {
    let query = BlobQuery {
        project: project(),
        folder: Vec::new(),
        begin: String::new(),
        is_flat: false,
        after: None,
        limit: 20,
        now: house.handle.now(),
    };
    let page = house.handle.state().list_blobs(&query).await.unwrap();
    let blobs = page.entries.into_iter().map(|entry| match entry {
        BlobEntry::Blob(blob) => blob,
        BlobEntry::Folder(path) => panic!("{path} is in a list of blobs"),
    });
    blobs.collect()
}

fn usage(house: &House) -> BlobUsage {
    let state = house.handle.state();
    state.read(|world| world.blob_usage(project()))
}

#[tokio::test]
async fn changes_at_the_same_time_are_counted_one_by_one() {
    let folder = TempDir::new().unwrap();
    let house = house(&folder).await;
    let handle = &house.handle;
    store(&house, "a", "1", None).await.unwrap();
    let stores = (0..10).map(|_| store(&house, "a", "22", None));
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
    let there = all(&house).await;
    let bytes = there.iter().map(|blob| blob.size).sum::<u64>();
    let blobs = there.len() as u64;
    let used = usage(&house);
    assert_eq!((used.blobs, used.bytes), (blobs, bytes));
    house.close().await;
}

#[tokio::test]
async fn a_blob_that_has_run_out_is_removed_and_counted_out() {
    let folder = TempDir::new().unwrap();
    let house = house(&folder).await;
    let hour = TimeDelta::hours(1);
    store(&house, "old", "1", Some(hour)).await.unwrap();
    store(&house, "new", "22", Some(hour * 3)).await.unwrap();
    store(&house, "kept", "333", None).await.unwrap();
    house.clock.set_forward(hour * 2);
    house
        .handle
        .blobs()
        .remove_expired(|| house.handle.clock().ages())
        .await
        .unwrap();
    assert_eq!((usage(&house).blobs, usage(&house).bytes), (2, 5));
    let state = house.handle.state();
    assert_eq!(state.blob(project(), &path("old")).await.unwrap(), None);
    house.close().await;
}

#[tokio::test]
async fn former_contents_are_kept_the_newest_so_many() {
    let folder = TempDir::new().unwrap();
    let settings = BlobSettings {
        quota: Some(12),
        versions: KeptVersions::new([(vec!["kept".to_owned()], 2)].into()),
    };
    let house = house_with(&folder, settings).await;
    let handle = &house.handle;
    for content in ["1", "22", "22", "333", "4"] {
        house.clock.set_forward(TimeDelta::minutes(1));
        store(&house, "kept/a", content, None).await.unwrap();
        store(&house, "b", content, None).await.unwrap();
    }
    let sizes = async || {
        let blobs = all(&house).await;
        let sizes = blobs.iter().filter(|blob| blob.path.name() != "b");
        sizes.map(|blob| blob.size).collect::<Vec<_>>()
    };
    // "22" and "333" before the present one, and a repeat of the same content is no version.
    assert_eq!(sizes().await, [2, 3, 1]);
    assert_eq!((usage(&house).blobs, usage(&house).bytes), (4, 7));
    // A write that its condition refuses keeps nothing.
    let moved = handle
        .blobs()
        .rename(project(), path("b"), path("kept/a"), BlobCondition::Absent);
    moved.await.unwrap_err();
    assert_eq!(sizes().await, [2, 3, 1]);
    // One that replaces by a copy or a move does.
    house.clock.set_forward(TimeDelta::minutes(1));
    store(&house, "b", "55", None).await.unwrap();
    let moved = handle
        .blobs()
        .rename(project(), path("b"), path("kept/a"), BlobCondition::None);
    moved.await.unwrap();
    assert_eq!(sizes().await, [3, 1, 2]);
    // The quota counts them.
    store(&house, "kept/a", "666666666", None)
        .await
        .unwrap_err();
    house.clock.set_forward(TimeDelta::minutes(1));
    store(&house, ".versions/kept/a/0", "1", None)
        .await
        .unwrap_err();
    let version = all(&house).await.remove(0);
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
    house.close().await;
}
