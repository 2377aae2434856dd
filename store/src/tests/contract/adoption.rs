//! Large objects get their keys in batches, whole and all at once.

use bytes::Bytes;

use super::super::world::{adopt, append, delete, key, ops, put, staged};
use super::{Store, open, text};
use crate::{CommitError, Engine, InvalidBatch, Prefix, Reader};

pub(super) async fn an_object_appears_with_the_batch_that_adopts_it<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let (volume, reader) = (engine.volume(), engine.reader());
    let object = staged(&volume, "one");
    assert_eq!(object.size(), 3);
    assert_eq!(text(&reader, "job/a.zip").await, None);
    let at = key("job/a.zip");
    assert!(volume.open_object(&at).unwrap().is_none());
    let batch = ops(
        epoch,
        [adopt("job/a.zip", object), put("job/job.txt", "a.zip")],
    );
    engine.commit(batch).await.unwrap();
    assert_eq!(text(&reader, "job/a.zip").await.unwrap(), "one");
    let first = volume.open_object(&at).unwrap().unwrap();
    assert_eq!(first.size().unwrap(), 3);
    assert_eq!(first.read_at(1, 1).unwrap(), b"n");
    assert_eq!(first.read_at(1, usize::MAX).unwrap(), b"ne");
    assert_eq!(first.read_at(9, 5).unwrap(), b"");
    let folder = Prefix::folder("job").unwrap();
    let names = reader.children(&folder).await.unwrap();
    assert_eq!(names, ["a.zip", "job.txt"]);

    let second = staged(&volume, "two");
    engine
        .commit(ops(epoch, [adopt("job/a.zip", second)]))
        .await
        .unwrap();
    assert_eq!(text(&reader, "job/a.zip").await.unwrap(), "two");
    assert_eq!(first.read_at(0, 9).unwrap(), b"one", "open since before");
    engine
        .commit(ops(epoch, [append("job/a.zip", 3, "!")]))
        .await
        .unwrap();
    assert_eq!(text(&reader, "job/a.zip").await.unwrap(), "two!");
    engine
        .commit(ops(epoch, [delete("job/a.zip")]))
        .await
        .unwrap();
    assert_eq!(text(&reader, "job/a.zip").await, None);
    let third = staged(&volume, "three");
    engine
        .commit(ops(epoch, [adopt("job/a.zip", third)]))
        .await
        .unwrap();

    drop(engine);
    assert_eq!(store.waiting_objects(), Vec::<String>::new());
    let mut engine = store.engine();
    open(&mut engine).await;
    assert_eq!(text(&engine.reader(), "job/a.zip").await.unwrap(), "three");
}

pub(super) async fn an_object_that_no_batch_took_is_gone<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let volume = engine.volume();
    let mut unfinished = volume.create_object().unwrap();
    unfinished.write(&[Bytes::from("half")]).unwrap();
    drop(unfinished);
    drop(staged(&volume, "unwanted"));
    let object = || staged(&volume, "refused");
    for (batch, wanted) in [
        (
            [adopt("a", object()), put("a", "x")],
            InvalidBatch::NamedTwice { key: key("a") },
        ),
        (
            [adopt("a", object()), delete("a")],
            InvalidBatch::NamedTwice { key: key("a") },
        ),
        (
            [adopt("a", object()), append("a", 0, "x")],
            InvalidBatch::NamedTwice { key: key("a") },
        ),
        (
            [adopt("a.json", object()), put("b", "x")],
            InvalidBatch::AdoptedRecord { key: key("a.json") },
        ),
        (
            [adopt("b/a", object()), put("b", "x")],
            InvalidBatch::PathConflict { key: key("b/a") },
        ),
    ] {
        let refused = engine.commit(ops(epoch, batch)).await;
        assert!(
            matches!(&refused, Err(CommitError::Invalid(found)) if *found == wanted),
            "{refused:?}"
        );
    }
    assert_eq!(store.waiting_objects(), Vec::<String>::new());
    assert_eq!(text(&engine.reader(), "a").await, None);
}
