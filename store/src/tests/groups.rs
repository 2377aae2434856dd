//! Batches that are written together: the result is the same as one after the other, and readers
//! that need a file do not wait for more batches.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::simulated::power_cut::Dice;
use super::world::{
    Op, World, adopt, append, close, delete, expected, files, key, live, names, ops, patient, put,
    staged, temporary_folder, tiny, tree, waiting_objects,
};
use crate::batch::{Epoch, Seq};
use crate::disk::{Action, Disk};
use crate::file::Options;
use crate::group::Group;
use crate::limits::GATHERED_BATCHES;
use crate::pending::Committed;
use crate::staged::{Object, StagedName};
use crate::{Engine, Prefix, Reader};

/// Names that conflict with each other, and names of each kind of file.
const NAMES: [&str; 8] = [
    "a",
    "a/b",
    "a/b/c",
    "a/d.jsonl",
    "e.json",
    "f/g.json",
    "h.jsonl",
    "i/object",
];

enum Change {
    Put(String),
    Delete,
    /// The offset of the end, and the text to append there.
    Append(u64, String),
    Adopt(String),
}

type Changes = BTreeMap<&'static str, Change>;

/// Random batches, and the files they result in.
#[derive(Default)]
struct Random {
    dice: Dice,
    files: BTreeMap<String, String>,
    changes: usize,
}

impl Random {
    /// A batch that an engine accepts.
    fn batch(&mut self) -> Changes {
        let mut batch = Changes::new();
        for _ in 0..=self.dice.roll(3) {
            let name = NAMES[self.dice.roll(NAMES.len())];
            let written = batch.iter().filter(|(_, it)| !matches!(it, Change::Delete));
            let mut others = written
                .map(|(name, _)| *name)
                .chain(self.files.keys().map(String::as_str));
            let is_in_the_way = others.any(|other| lies_in(name, other) || lies_in(other, name));
            let is_record = key(name).is_record();
            self.changes += 1;
            let text = format!(r#"{{"live":true,"n":{}}}"#, self.changes);
            let change = match self.dice.roll(8) {
                _ if is_in_the_way => Change::Delete,
                0 | 1 => Change::Delete,
                2 | 3 if !is_record => {
                    let length = self.files.get(name).map_or(0, String::len);
                    Change::Append(length as u64, text)
                }
                4 | 5 if !is_record => Change::Adopt(text),
                _ => Change::Put(text),
            };
            batch.insert(name, change);
        }
        for (name, change) in &batch {
            match change {
                Change::Put(text) | Change::Adopt(text) => {
                    self.files.insert((*name).to_owned(), text.clone());
                }
                Change::Append(_, text) => {
                    let file = self.files.entry((*name).to_owned()).or_default();
                    file.push_str(text);
                }
                Change::Delete => drop(self.files.remove(*name)),
            }
        }
        batch
    }
}

fn lies_in(name: &str, folder: &str) -> bool {
    let rest = name.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The operations of a batch; `make` creates the objects.
fn operations(changes: &Changes, mut make: impl FnMut(&str) -> crate::Staged) -> Vec<Op> {
    let operation = |(name, change): (&&str, &Change)| match change {
        Change::Put(text) => put(name, text),
        Change::Delete => delete(name),
        Change::Append(at, text) => append(name, *at, text),
        Change::Adopt(text) => adopt(name, make(text)),
    };
    changes.iter().map(operation).collect()
}

/// A durable batch for the tree at `root`.
fn committed(root: &Path, seq: u64, changes: &Changes) -> Arc<Committed> {
    let mut objects = 0;
    let make = |text: &str| {
        objects += 1;
        let name = StagedName::numbered(u128::from(seq) * 100 + objects);
        fs::write(root.join("tmp").join(name.as_str()), text).unwrap();
        crate::Staged::recorded(name, Object::of(text.as_bytes()))
    };
    let batch = ops(Epoch(1), operations(changes, make));
    Arc::new(Committed {
        seq: Seq(seq),
        batch,
    })
}

fn write(root: &Path, mut waiting: Vec<Arc<Committed>>) {
    while !waiting.is_empty() {
        let group = Group::of(waiting.clone());
        group.changes().apply(&tree(root)).unwrap();
        waiting.drain(..group.batches().count());
    }
}

#[test]
fn a_group_gives_the_same_files_as_its_batches_one_after_the_other() {
    let mut random = Random::default();
    for _ in 0..100 {
        let folder = temporary_folder();
        let [single, grouped] = ["single", "grouped"].map(|name| folder.path().join(name));
        for root in [&single, &grouped] {
            fs::create_dir_all(root.join("tmp")).unwrap();
        }
        let mut waiting = Vec::new();
        random.files.clear();
        for seq in 1..=50 {
            let batch = random.batch();
            write(&single, vec![committed(&single, seq, &batch)]);
            waiting.push(committed(&grouped, seq, &batch));
            if random.dice.roll(10) == 0 || seq == 50 {
                write(&grouped, std::mem::take(&mut waiting));
                for root in [&single, &grouped] {
                    assert_eq!(files(root), random.files);
                    assert_eq!(waiting_objects(root), [""; 0]);
                }
            }
        }
        let nothing = NAMES.map(|name| (name, Change::Delete)).into();
        for root in [&single, &grouped] {
            write(root, vec![committed(root, 51, &nothing)]);
            assert_eq!(names(root), ["tmp"], "no empty folder is left");
        }
    }
}

#[tokio::test]
async fn readers_see_the_newest_value_of_each_key_while_groups_are_written() {
    let folder = temporary_folder();
    let options = Options {
        gather: Duration::from_millis(1),
        ..tiny()
    };
    let opened = World::open_on(Disk::new(), folder.path(), options).await;
    let mut world = opened.unwrap();
    let (reader, volume) = (world.engine.reader(), world.engine.volume());
    let mut random = Random::default();
    for _ in 0..1000 {
        let batch = random.batch();
        let batch = operations(&batch, |text| staged(&volume, text));
        world.commit(batch).await.unwrap();
        let found = reader.get_many(NAMES.map(key).into()).await.unwrap();
        for (name, found) in NAMES.iter().zip(found) {
            let found = found.map(|it| String::from_utf8(it.into()).unwrap());
            assert_eq!(found.as_ref(), random.files.get(*name), "{name}");
        }
    }
    close(world.engine).unwrap();
    assert_eq!(files(folder.path()), random.files);
    assert_eq!(waiting_objects(folder.path()), [""; 0]);
}

#[tokio::test]
async fn a_record_replaced_a_hundred_times_is_written_once() {
    let folder = temporary_folder();
    let writes = Arc::new(AtomicUsize::new(0));
    let counter = writes.clone();
    let disk = Disk::with_hook(move |action, path| {
        let makes = matches!(action, Action::CreateFile | Action::Rename);
        if makes && path.to_string_lossy().contains("head.json") {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    let opened = World::open_on(disk, folder.path(), patient()).await;
    let mut world = opened.unwrap();
    for n in 0..100 {
        world.commit([live("head.json", n)]).await.unwrap();
    }
    assert_eq!(writes.load(Ordering::SeqCst), 0);
    world.engine.reader().settled().await.unwrap();
    // The new content is created and then renamed.
    assert_eq!(writes.load(Ordering::SeqCst), 2);
    let head = files(folder.path()).remove("head.json");
    assert_eq!(head.unwrap(), r#"{"live":true,"n":99}"#);
}

#[tokio::test]
async fn a_reader_that_needs_the_tree_does_not_wait_for_more_batches() {
    let folder = temporary_folder();
    let (written, is_written) = mpsc::channel();
    let disk = Disk::with_hook(move |action, path| {
        if action == Action::Rename && path.ends_with("many") {
            written.send(()).unwrap();
        }
        Ok(())
    });
    let opened = World::open_on(disk, folder.path(), patient()).await;
    let mut world = opened.unwrap();
    let reader = world.engine.reader();
    world.round(0).await.unwrap();
    assert_eq!(files(folder.path()), expected(0));
    reader.settled().await.unwrap();
    assert_eq!(files(folder.path()), expected(1));
    world.round(1).await.unwrap();
    let names = reader.children(&Prefix::folder("turn").unwrap()).await;
    assert_eq!(names.unwrap(), ["deep"]);
    world.round(2).await.unwrap();
    reader.pending.wait_for_checkpoint().unwrap();
    assert_eq!(files(folder.path()), expected(3));
    // The file still exists when its name should become a folder.
    world.commit([delete("even")]).await.unwrap();
    world.commit([put("even/file", "")]).await.unwrap();
    for _ in 0..GATHERED_BATCHES {
        world.commit([put("many", "")]).await.unwrap();
    }
    is_written.recv_timeout(Duration::from_secs(300)).unwrap();
    world.commit([put("last", "")]).await.unwrap();
    close(world.engine).unwrap();
    assert!(folder.path().join("last").exists());
}

#[tokio::test]
async fn an_object_replaced_before_it_moves_to_its_key_leaves_no_file() {
    let folder = temporary_folder();
    let opened = World::open_on(Disk::new(), folder.path(), patient()).await;
    let mut world = opened.unwrap();
    let (reader, volume) = (world.engine.reader(), world.engine.volume());
    for text in ["first", "second"] {
        let object = staged(&volume, text);
        world.commit([adopt("object", object)]).await.unwrap();
        let found = reader.get(&key("object")).await.unwrap();
        assert_eq!(found.unwrap(), text);
    }
    world.commit([delete("object")]).await.unwrap();
    let object = staged(&volume, "third");
    world.commit([adopt("object", object)]).await.unwrap();
    world
        .commit([append("object", 5, " and more")])
        .await
        .unwrap();
    reader.settled().await.unwrap();
    assert_eq!(waiting_objects(folder.path()), [""; 0]);
    assert_eq!(files(folder.path())["object"], "third and more");
}
