//! Blobs that are changed at the same time, and blobs that run out.

use bytes::Bytes;
use chrono::TimeDelta;
use futures_util::future::join_all;
use model::decide::ConfigureSource;
use model::{Actor, BlobCondition, BlobPath, BlobUsage, ProjectId};
use state::blobs::BlobQuery;
use state::{SubmitError, blobs::BlobEntry};
use tempfile::TempDir;

use super::{NewBlob, Stored};
use crate::error::BlobError;
use crate::testing::{House, source_name};

fn project() -> ProjectId {
    ProjectId::of_source(&source_name())
}

fn path(text: &str) -> BlobPath {
    text.parse().unwrap()
}

async fn house(folder: &TempDir) -> House {
    let house = House::open(folder, 0, Vec::new()).await;
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
    let upload = house.handle.begin_blob(new, None).await?;
    let upload = upload.write(Bytes::from(content)).await?;
    upload.finish(None).await
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
    let moves =
        (0..10).map(|_| handle.move_blob(project(), path("a"), path("b/c"), BlobCondition::None));
    let deletes = (0..5).map(|_| handle.delete_blob(project(), path("b/c"), BlobCondition::None));
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
    let query = BlobQuery {
        project: project(),
        folder: Vec::new(),
        begin: String::new(),
        is_flat: false,
        after: None,
        limit: 10,
        now: handle.now(),
    };
    let page = handle.state().list_blobs(&query).await.unwrap();
    let sizes = page.entries.iter().map(|entry| match entry {
        BlobEntry::Blob(blob) => blob.size,
        BlobEntry::Folder(_) => 0,
    });
    let (blobs, bytes) = (page.entries.len() as u64, sizes.sum::<u64>());
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
    house.handle.remove_expired_blobs().await.unwrap();
    assert_eq!((usage(&house).blobs, usage(&house).bytes), (2, 5));
    let state = house.handle.state();
    assert_eq!(state.blob(project(), &path("old")).await.unwrap(), None);
    house.close().await;
}
