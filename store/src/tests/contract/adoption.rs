//! Large objects get their keys in batches, complete and all at once.

use bytes::Bytes;

use super::super::world::{adopt, append, delete, key, put, staged};
use super::{Opened, Store};
use crate::{CommitError, Engine, InvalidBatch, Prefix, Reader};

pub(super) async fn an_object_appears_with_the_batch_that_adopts_it<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let (volume, reader) = (opened.engine.volume(), opened.engine.reader());
    let object = staged(&volume, "one");
    assert_eq!(object.size(), 3);
    assert_eq!(opened.text("job/a.zip").await, None);
    let at = key("job/a.zip");
    assert!(volume.open_object(&at).unwrap().is_none());
    let batch = [adopt("job/a.zip", object), put("job/job.txt", "a.zip")];
    opened.commit(batch).await.unwrap();
    assert_eq!(opened.text("job/a.zip").await.unwrap(), "one");
    let first = volume.open_object(&at).unwrap().unwrap();
    assert_eq!(first.size().unwrap(), 3);
    assert_eq!(first.read_at(1, 1).unwrap(), b"n");
    assert_eq!(first.read_at(1, usize::MAX).unwrap(), b"ne");
    assert_eq!(first.read_at(9, 5).unwrap(), b"");
    let folder = Prefix::folder("job").unwrap();
    let names = reader.children(&folder).await.unwrap();
    assert_eq!(names, ["a.zip", "job.txt"]);

    let second = staged(&volume, "two");
    opened.commit([adopt("job/a.zip", second)]).await.unwrap();
    assert_eq!(opened.text("job/a.zip").await.unwrap(), "two");
    assert_eq!(
        first.read_at(0, 9).unwrap(),
        b"one",
        "opened before the replacement"
    );
    opened.commit([append("job/a.zip", 3, "!")]).await.unwrap();
    assert_eq!(opened.text("job/a.zip").await.unwrap(), "two!");
    opened.commit([delete("job/a.zip")]).await.unwrap();
    assert_eq!(opened.text("job/a.zip").await, None);
    let third = staged(&volume, "three");
    opened.commit([adopt("job/a.zip", third)]).await.unwrap();

    drop(opened.engine);
    assert_eq!(opened.store.waiting_objects(), Vec::<String>::new());
    let opened = Opened::of(opened.store).await;
    assert_eq!(opened.text("job/a.zip").await.unwrap(), "three");
}

pub(super) async fn an_object_without_a_batch_is_removed<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let volume = opened.engine.volume();
    let mut unfinished = volume.create_object().unwrap();
    unfinished.write(&[Bytes::from("half")]).unwrap();
    drop(unfinished);
    drop(staged(&volume, "unwanted"));
    let object = || staged(&volume, "refused");
    let twice = || InvalidBatch::NamedTwice { key: key("a") };
    let record = InvalidBatch::AdoptedRecord { key: key("a.json") };
    let conflict = InvalidBatch::PathConflict { key: key("b/a") };
    for (batch, expected) in [
        ([adopt("a", object()), put("a", "x")], twice()),
        ([adopt("a", object()), delete("a")], twice()),
        ([adopt("a", object()), append("a", 0, "x")], twice()),
        ([adopt("a.json", object()), put("b", "x")], record),
        ([adopt("b/a", object()), put("b", "x")], conflict),
    ] {
        let refused = opened.commit(batch).await;
        assert!(
            matches!(&refused, Err(CommitError::Invalid(found)) if *found == expected),
            "{refused:?}"
        );
    }
    assert_eq!(opened.store.waiting_objects(), Vec::<String>::new());
    assert_eq!(opened.text("a").await, None);
}

pub(super) async fn an_object_may_have_two_keys<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let volume = opened.engine.volume();
    let first = staged(&volume, "one");
    let object = first.object();
    let share = |name: &str| volume.share_object(&key(name), object).unwrap();
    assert!(share("a/one").is_none());
    opened.commit([adopt("a/one", first)]).await.unwrap();
    let copy = share("a/one").unwrap();
    assert_eq!(copy.object(), object);
    opened.commit([adopt("b/copy", copy)]).await.unwrap();
    let moved = share("a/one").unwrap();
    let batch = [adopt("c/moved", moved), delete("a/one")];
    opened.commit(batch).await.unwrap();
    drop(share("b/copy").unwrap());
    let second = staged(&volume, "two");
    opened.commit([adopt("b/copy", second)]).await.unwrap();
    let opened = opened.reopen().await;
    assert_eq!(opened.text("a/one").await, None);
    assert_eq!(opened.text("b/copy").await.unwrap(), "two");
    assert_eq!(opened.text("c/moved").await.unwrap(), "one");
    assert_eq!(opened.store.waiting_objects(), Vec::<String>::new());
}
