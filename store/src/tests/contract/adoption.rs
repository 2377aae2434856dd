//! Large objects get their keys in batches, whole and all at once.

use super::super::world::{adopt, append, delete, key, ops, put, staged, waiting_objects};
use super::{Store, open, text};
use crate::{CommitError, Engine, InvalidBatch, Prefix, Reader};

pub(super) async fn an_object_appears_with_the_batch_that_adopts_it<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let (objects, reader) = (store.objects(&engine), engine.reader());
    let object = staged(&objects, "one");
    assert_eq!(text(&reader, "job/a.zip").await, None);
    let batch = ops(
        epoch,
        [adopt("job/a.zip", object), put("job/job.txt", "a.zip")],
    );
    engine.commit(batch).await.unwrap();
    assert_eq!(text(&reader, "job/a.zip").await.unwrap(), "one");
    let folder = Prefix::folder("job").unwrap();
    let names = reader.list(&folder, None, 10).await.unwrap().keys;
    assert_eq!(names, [key("job/job.txt"), key("job/a.zip")]);

    let second = staged(&objects, "two");
    engine
        .commit(ops(epoch, [adopt("job/a.zip", second)]))
        .await
        .unwrap();
    assert_eq!(text(&reader, "job/a.zip").await.unwrap(), "two");
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
    let third = staged(&objects, "three");
    engine
        .commit(ops(epoch, [adopt("job/a.zip", third)]))
        .await
        .unwrap();

    drop(engine);
    assert_eq!(waiting_objects(store.root()), Vec::<String>::new());
    let mut engine = store.engine();
    open(&mut engine).await;
    assert_eq!(text(&engine.reader(), "job/a.zip").await.unwrap(), "three");
}

pub(super) async fn an_object_that_no_batch_took_is_gone<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let objects = store.objects(&engine);
    let mut unfinished = objects.create().unwrap();
    unfinished.write(b"half").unwrap();
    assert_eq!(waiting_objects(store.root()).len(), 1);
    drop(unfinished);
    drop(staged(&objects, "unwanted"));
    let object = || staged(&objects, "refused");
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
    assert_eq!(waiting_objects(store.root()), Vec::<String>::new());
    assert_eq!(text(&engine.reader(), "a").await, None);
}
