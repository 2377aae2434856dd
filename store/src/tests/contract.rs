//! The promises of every engine, one function per promise, run on all engines.

mod adoption;
mod growing;
mod reading;

use bytes::Bytes;
use tempfile::TempDir;

use adoption::{
    an_object_appears_with_the_batch_that_adopts_it, an_object_may_have_two_keys,
    an_object_without_a_batch_is_removed,
};
use growing::{
    a_batch_may_end_a_growing_file, a_growing_file_continues_at_its_end_after_reopening,
    a_torn_end_is_cut_off,
};
use reading::{
    children_are_listed_in_order, many_files_are_read_in_the_order_of_their_keys,
    pieces_end_at_the_requested_byte,
};

use super::world::{
    Op, append, delete, key, live, ops, owned, patient, put, temporary_folder, tiny,
    waiting_objects,
};
use crate::file::FileEngine;
use crate::limits::{BATCH_BYTES, BATCH_OPERATIONS};
use crate::memory::{MemoryEngine, MemoryStore};
use crate::{
    Append, Batch, CommitError, Engine, Epoch, InvalidBatch, Key, Prefix, Reader, Room, Seq,
};

/// A store that outlives its engines.
trait Store {
    type Engine: Engine;
    fn new() -> Self;
    fn engine(&self) -> Self::Engine;
    /// The objects that no batch has adopted yet, if the store keeps them in a folder.
    fn waiting_objects(&self) -> Vec<String>;
}

impl Store for MemoryStore {
    type Engine = MemoryEngine;

    fn new() -> Self {
        Self::new()
    }

    fn engine(&self) -> MemoryEngine {
        self.engine()
    }

    fn waiting_objects(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Store for TempDir {
    type Engine = FileEngine;

    fn new() -> Self {
        temporary_folder()
    }

    fn engine(&self) -> FileEngine {
        FileEngine::new(self.path(), tiny())
    }

    fn waiting_objects(&self) -> Vec<String> {
        waiting_objects(self.path())
    }
}

/// A store that writes the tree only on demand.
struct Patient(TempDir);

impl Store for Patient {
    type Engine = FileEngine;

    fn new() -> Self {
        Self(temporary_folder())
    }

    fn engine(&self) -> FileEngine {
        FileEngine::new(self.0.path(), patient())
    }

    fn waiting_objects(&self) -> Vec<String> {
        waiting_objects(self.0.path())
    }
}

/// Makes a test of each promise for each engine.
macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        mod file { $(#[tokio::test] async fn $name() { super::$name::<super::TempDir>().await; })* }
        mod patient { $(#[tokio::test] async fn $name() { super::$name::<super::Patient>().await; })* }
        mod memory { $(#[tokio::test] async fn $name() { super::$name::<super::MemoryStore>().await; })* }
    };
}

promises!(
    epochs_grow_and_sequence_numbers_continue,
    a_commit_is_visible_completely_and_at_once,
    everything_acknowledged_exists_after_reopening,
    open_streams_exactly_the_live_records,
    a_batch_of_another_epoch_is_fenced,
    a_batch_beyond_the_limits_is_refused,
    contradictions_are_refused_and_change_nothing,
    a_name_may_turn_from_file_to_folder_and_back,
    appends_are_idempotent_and_leave_no_gap,
    children_are_listed_in_order,
    many_files_are_read_in_the_order_of_their_keys,
    pieces_end_at_the_requested_byte,
    a_damaged_record_is_set_aside,
    a_closed_store_opens_again,
    an_object_appears_with_the_batch_that_adopts_it,
    an_object_without_a_batch_is_removed,
    an_object_may_have_two_keys,
    a_growing_file_continues_at_its_end_after_reopening,
    a_torn_end_is_cut_off,
    a_batch_may_end_a_growing_file,
);

/// A store with its open engine.
struct Opened<S: Store> {
    store: S,
    engine: S::Engine,
    epoch: Epoch,
}

impl<S: Store> Opened<S> {
    async fn fresh() -> Self {
        Self::of(S::new()).await
    }

    async fn of(store: S) -> Self {
        let mut engine = store.engine();
        let (epoch, ..) = open(&mut engine).await;
        Self {
            store,
            engine,
            epoch,
        }
    }

    /// Drops the engine and opens another one.
    async fn reopen(self) -> Self {
        drop(self.engine);
        Self::of(self.store).await
    }

    async fn commit(
        &mut self,
        operations: impl IntoIterator<Item = Op>,
    ) -> Result<Seq, CommitError> {
        self.engine.commit(ops(self.epoch, operations)).await
    }

    async fn text(&self, name: &str) -> Option<String> {
        text(&self.engine.reader(), name).await
    }
}

async fn open<E: Engine>(engine: &mut E) -> (Epoch, Seq, Vec<(Key, Bytes)>) {
    let mut records = Vec::new();
    let (epoch, seq) = engine
        .open(&mut |found| records.extend(owned(found.iter().copied())))
        .await
        .unwrap();
    (epoch, seq, records)
}

async fn text<R: Reader>(reader: &R, name: &str) -> Option<String> {
    let bytes = reader.get(&key(name)).await.unwrap()?;
    Some(String::from_utf8(bytes.into()).unwrap())
}

async fn epochs_grow_and_sequence_numbers_continue<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    assert_eq!(open(&mut engine).await, (Epoch(1), Seq(0), vec![]));
    assert_eq!(
        engine.commit(ops(Epoch(1), [put("a", "1")])).await.unwrap(),
        Seq(1)
    );
    assert_eq!(
        engine.commit(ops(Epoch(1), [put("a", "2")])).await.unwrap(),
        Seq(2)
    );
    assert_eq!(
        open(&mut engine).await.0,
        Epoch(2),
        "an open engine is closed and opened again"
    );
    drop(engine);
    let mut engine = store.engine();
    assert_eq!(open(&mut engine).await, (Epoch(3), Seq(2), vec![]));
    assert_eq!(
        engine.commit(ops(Epoch(3), [put("a", "3")])).await.unwrap(),
        Seq(3)
    );
}

async fn a_commit_is_visible_completely_and_at_once<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let reader = opened.engine.reader();
    for round in 0..50_u64 {
        let line = format!("{round:04}\n");
        let batch = [
            put("a/b.json", &line),
            put("a/c.txt", &line),
            append("a/ledger.jsonl", round * 5, &line),
            if round % 2 == 0 {
                put("a/even", &line)
            } else {
                delete("a/even")
            },
        ];
        opened.commit(batch).await.unwrap();
        assert_eq!(opened.text("a/b.json").await.unwrap(), line);
        assert_eq!(opened.text("a/c.txt").await.unwrap(), line);
        assert_eq!(
            opened.text("a/even").await,
            (round % 2 == 0).then_some(line)
        );
        let ledger = opened.text("a/ledger.jsonl").await.unwrap();
        assert_eq!(
            ledger,
            (0..=round).map(|n| format!("{n:04}\n")).collect::<String>()
        );
        let names = reader.children(&Prefix::folder("a").unwrap()).await;
        assert_eq!(names.unwrap().len(), if round % 2 == 0 { 4 } else { 3 });
    }
}

async fn everything_acknowledged_exists_after_reopening<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    opened
        .commit([put("a/1", "x"), put("a/2", "y"), append("l", 0, "12")])
        .await
        .unwrap();
    opened
        .commit([put("a/1", "z"), delete("a/2"), append("l", 2, "3")])
        .await
        .unwrap();
    opened = opened.reopen().await;
    assert_eq!(opened.text("a/1").await.unwrap(), "z");
    assert_eq!(opened.text("a/2").await, None);
    assert_eq!(opened.text("l").await.unwrap(), "123");
    assert_eq!(opened.text("a").await, None, "a folder is not a file");
    assert_eq!(opened.text("l/x").await, None, "a file is not a folder");
}

async fn open_streams_exactly_the_live_records<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    engine
        .commit(ops(
            epoch,
            [
                live("j/1.json", 1),
                live("j/2.json", 1),
                live("j/3.json", 1),
            ],
        ))
        .await
        .unwrap();
    let settled = put("j/2.json", r#"{"live":false}"#);
    engine
        .commit(ops(
            epoch,
            [
                live("j/1.json", 2),
                settled,
                delete("j/3.json"),
                put("k", "x"),
            ],
        ))
        .await
        .unwrap();
    drop(engine);
    for _ in 0..2 {
        let mut engine = store.engine();
        let records = open(&mut engine).await.2;
        assert_eq!(
            records,
            [(key("j/1.json"), Bytes::from(r#"{"live":true,"n":2}"#))]
        );
        drop(engine);
    }
}

async fn a_batch_of_another_epoch_is_fenced<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let unopened = engine.commit(ops(Epoch(0), [put("a", "1")])).await;
    assert!(
        matches!(unopened, Err(CommitError::Fenced { .. })),
        "{unopened:?}"
    );
    open(&mut engine).await;
    let (epoch, ..) = open(&mut engine).await;
    for wrong in [Epoch(epoch.0 - 1), epoch.next()] {
        let result = engine.commit(ops(wrong, [put("a", "1")])).await;
        assert!(
            matches!(result, Err(CommitError::Fenced { batch, current }) if batch == wrong && current == epoch)
        );
    }
    assert_eq!(text(&engine.reader(), "a").await, None);
    assert_eq!(
        engine.commit(ops(epoch, [put("a", "1")])).await.unwrap(),
        Seq(1)
    );
}

async fn a_batch_beyond_the_limits_is_refused<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let epoch = opened.epoch;
    let many = |count: usize| ops(epoch, (0..count).map(|n| put(&format!("many/{n}"), "x")));
    let large = |length: usize| ops(epoch, [put("large", &"x".repeat(length - 5))]);
    for batch in [many(BATCH_OPERATIONS + 1), large(BATCH_BYTES + 1)] {
        let (count, size) = (batch.len(), batch.bytes());
        let result = opened.engine.commit(batch).await;
        let expected = |operations, bytes| operations == count && bytes == size;
        assert!(
            matches!(result, Err(CommitError::TooLarge { operations, bytes }) if expected(operations, bytes))
        );
    }
    assert_eq!(
        opened.engine.commit(many(BATCH_OPERATIONS)).await.unwrap(),
        Seq(1)
    );
    assert_eq!(
        opened.engine.commit(large(BATCH_BYTES)).await.unwrap(),
        Seq(2)
    );
    let found = opened
        .engine
        .reader()
        .get(&key("large"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.len(), BATCH_BYTES - 5);
}

async fn contradictions_are_refused_and_change_nothing<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    opened.commit([put("folder/file", "x")]).await.unwrap();
    for contradiction in [
        put("folder", "x"),
        put("folder/file/below", "x"),
        append("folder", 0, "x"),
        delete("other"),
        append("record.json", 0, "x"),
        append("ledger", 1, "x"),
    ] {
        let result = opened.commit([put("other", "x"), contradiction]).await;
        assert!(matches!(result, Err(CommitError::Invalid(_))), "{result:?}");
    }
    assert_eq!(opened.text("other").await, None);
    assert_eq!(opened.commit([put("other", "x")]).await.unwrap(), Seq(2));
}

async fn a_name_may_turn_from_file_to_folder_and_back<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    for _ in 0..5 {
        opened.commit([put("a/b", "file")]).await.unwrap();
        opened.commit([delete("a/b")]).await.unwrap();
        opened.commit([put("a/b/c/d", "deep")]).await.unwrap();
        opened.commit([delete("a/b/c/d")]).await.unwrap();
    }
    opened.commit([put("a", "at last")]).await.unwrap();
    assert_eq!(opened.text("a").await.unwrap(), "at last");
    assert_eq!(opened.text("a/b/c/d").await, None);
}

async fn appends_are_idempotent_and_leave_no_gap<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let mut batch = Batch::new(opened.epoch);
    for (at, piece) in [(0, "ab"), (2, "cd"), (1, "bc")] {
        batch.appends.push(Append {
            ledger: key("l"),
            at,
            bytes: Bytes::from(piece),
        });
    }
    for _ in 0..2 {
        opened.engine.commit(batch.clone()).await.unwrap();
        assert_eq!(opened.text("l").await.unwrap(), "abcd");
    }
    let gap = opened.commit([append("l", 5, "x")]).await;
    let expected = InvalidBatch::Gap {
        key: key("l"),
        at: 5,
        length: 4,
    };
    assert!(matches!(gap, Err(CommitError::Invalid(found)) if found == expected));
    opened.commit([append("l", 4, "e")]).await.unwrap();
    opened.commit([delete("l")]).await.unwrap();
    let gap = opened.commit([append("l", 5, "x")]).await;
    assert!(matches!(
        gap,
        Err(CommitError::Invalid(InvalidBatch::Gap { length: 0, .. }))
    ));
    opened.commit([append("l", 0, "new")]).await.unwrap();
    assert_eq!(opened.text("l").await.unwrap(), "new");
}

async fn a_damaged_record_is_set_aside<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let (tokens, jobs) = (
        Prefix::folder("tokens").unwrap(),
        Prefix::folder("jobs").unwrap(),
    );
    assert!(!opened.engine.has_set_aside(&tokens).await.unwrap());
    let place = opened
        .engine
        .set_aside(&key("tokens/a.json"), b"half")
        .await;
    assert!(place.unwrap().contains("tokens/a.json"));
    for _ in 0..2 {
        assert!(opened.engine.has_set_aside(&tokens).await.unwrap());
        assert!(!opened.engine.has_set_aside(&jobs).await.unwrap());
        for (name, is_kept) in [("tokens/a.json", true), ("tokens/b.json", false)] {
            let record = Prefix::folder(name).unwrap();
            assert_eq!(opened.engine.has_set_aside(&record).await.unwrap(), is_kept);
        }
        opened = opened.reopen().await;
    }
}

async fn a_closed_store_opens_again<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    opened.commit([put("a", "x")]).await.unwrap();
    assert_eq!(opened.commit([]).await.unwrap(), Seq(1), "nothing changes");
    opened.engine.reader().settled().await.unwrap();
    assert!(!opened.engine.is_restored());
    assert_eq!(opened.engine.volume().room().unwrap(), Room::Enough);
    opened.engine.close().await.unwrap();
    let mut engine = opened.store.engine();
    let (next, last, _) = open(&mut engine).await;
    assert_eq!((next, last), (opened.epoch.next(), Seq(1)));
    assert_eq!(text(&engine.reader(), "a").await.unwrap(), "x");
}
