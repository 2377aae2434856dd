//! Helpers for tests: short constructors of batches, stores with small limits, copies of folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use crate::batch::is_live;
use crate::disk::Disk;
use crate::file::OpenError;
use crate::file::{FileEngine, Options};
use crate::key::RESERVED;
use crate::tree::Tree;
use crate::volume::Volume;
use crate::{
    Append, Batch, CloseError, Engine, Epoch, Key, LiveRecord, Put, Seq, Staged, Watermark,
    Watermarks,
};

/// A folder in memory if the machine has such a file system: these tests sync often and do not simulate power cuts.
pub(crate) fn temporary_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

/// One operation of a batch.
pub(crate) enum Op {
    Put(Key, Bytes),
    Delete(Key),
    Append(Key, u64, Bytes),
    Adopt(Key, Staged),
}

pub(crate) fn put(name: &str, content: &str) -> Op {
    Op::Put(key(name), Bytes::copy_from_slice(content.as_bytes()))
}

/// A live record that differs by `n`.
pub(crate) fn live(name: &str, n: u64) -> Op {
    put(name, &format!(r#"{{"live":true,"n":{n}}}"#))
}

pub(crate) fn delete(name: &str) -> Op {
    Op::Delete(key(name))
}

pub(crate) fn append(name: &str, at: u64, content: &str) -> Op {
    Op::Append(key(name), at, Bytes::copy_from_slice(content.as_bytes()))
}

pub(crate) fn adopt(name: &str, staged: Staged) -> Op {
    Op::Adopt(key(name), staged)
}

/// An object that no batch has adopted.
pub(crate) fn staged(volume: &Arc<dyn Volume>, content: &str) -> Staged {
    let mut writer = volume.create_object().unwrap();
    let (first, rest) = content.split_at(content.len() / 2);
    for part in [first, rest] {
        let part = Bytes::copy_from_slice(part.as_bytes());
        writer.write(&[part]).unwrap();
    }
    writer.finish().unwrap()
}

/// The tree of the store in a folder.
pub(crate) fn tree(root: &Path) -> Tree {
    Tree::new(Disk::new(), root.to_owned())
}

pub(crate) fn close(mut engine: FileEngine) -> Result<(), CloseError> {
    engine.shut()
}

/// The names of the objects in `tmp/`.
pub(crate) fn waiting_objects(root: &Path) -> Vec<String> {
    names(&root.join("tmp"))
}

/// The names in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(crate) fn ops(epoch: Epoch, operations: impl IntoIterator<Item = Op>) -> Batch {
    let mut batch = Batch::new(epoch);
    for operation in operations {
        match operation {
            Op::Put(key, bytes) => {
                let live = is_live(&key, &bytes);
                batch.puts.insert(key, Put { bytes, live });
            }
            Op::Delete(key) => {
                batch.deletes.insert(key);
            }
            Op::Append(ledger, at, bytes) => batch.appends.push(Append { ledger, at, bytes }),
            Op::Adopt(key, staged) => {
                batch.adopts.insert(key, staged);
            }
        }
    }
    batch
}

/// A store that is quick to create and reaches its limits soon.
pub(crate) fn tiny() -> Options {
    Options {
        first_segment_bytes: 16 * 1024,
        segment_bytes: 32 * 1024,
        spare_segments: 1,
        gather: Duration::ZERO,
        checkpoint_bytes: 64 * 1024,
        checkpoint_interval: Duration::from_secs(60),
        watermarks: Watermarks {
            low: Watermark::NONE,
            full: Watermark::NONE,
        },
        allow_network: false,
    }
}

/// Never makes a checkpoint by itself.
pub(crate) fn unhurried() -> Options {
    Options {
        checkpoint_bytes: u64::MAX,
        ..tiny()
    }
}

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3600);

/// Writes the tree only on demand.
pub(crate) fn patient() -> Options {
    Options {
        gather: LONG,
        ..tiny()
    }
}

pub(crate) type Records = Vec<(Key, Bytes)>;

/// An open store on files.
pub(crate) struct World {
    pub(crate) engine: FileEngine,
    pub(crate) epoch: Epoch,
    pub(crate) last: Seq,
    pub(crate) records: Records,
}

impl World {
    pub(crate) async fn open(root: &Path) -> Result<Self, OpenError> {
        Self::open_on(Disk::new(), root, tiny()).await
    }

    pub(crate) async fn open_on(
        disk: Disk,
        root: &Path,
        options: Options,
    ) -> Result<Self, OpenError> {
        let mut engine = FileEngine::on(disk, root, options);
        let mut records = Records::new();
        let (epoch, last) =
            engine.start(&mut |found| records.extend(owned(found.iter().copied())))?;
        Ok(Self {
            engine,
            epoch,
            last,
            records,
        })
    }

    pub(crate) async fn commit(
        &mut self,
        operations: impl IntoIterator<Item = Op>,
    ) -> Result<Seq, crate::CommitError> {
        let seq = self.engine.commit(ops(self.epoch, operations)).await?;
        self.last = seq;
        Ok(seq)
    }

    /// One round of a workload that touches every kind of change: two records that change together,
    /// a ledger, a record that is live for a while, a file that is created and deleted, and a name
    /// that alternates between file and folder.
    pub(crate) async fn round(&mut self, n: u64) -> Result<Seq, crate::CommitError> {
        let line = format!("{n:07}\n");
        let turn = if n.is_multiple_of(2) {
            [delete("turn/deep/file"), put("even", &line)]
        } else {
            [put("turn/deep/file", &line), delete("even")]
        };
        let settled = match n.checked_sub(2) {
            Some(old) => put(&format!("jobs/{old}.json"), r#"{"live":false}"#),
            None => delete("jobs/none.json"),
        };
        let rest = [
            live("head.json", n),
            put("twin", &line),
            append("log.jsonl", n * 8, &line),
        ];
        self.commit(
            turn.into_iter()
                .chain([settled, live(&format!("jobs/{n}.json"), n)])
                .chain(rest),
        )
        .await
    }
}

/// The expected files of keys after rounds `0..rounds`.
pub(crate) fn expected(rounds: u64) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for n in 0..rounds {
        let line = format!("{n:07}\n");
        if n.is_multiple_of(2) {
            files.remove("turn/deep/file");
            files.insert("even".to_owned(), line.clone());
        } else {
            files.insert("turn/deep/file".to_owned(), line.clone());
            files.remove("even");
        }
        if let Some(old) = n.checked_sub(2) {
            files.insert(format!("jobs/{old}.json"), r#"{"live":false}"#.to_owned());
        }
        let record = format!(r#"{{"live":true,"n":{n}}}"#);
        files.insert(format!("jobs/{n}.json"), record.clone());
        files.insert("head.json".to_owned(), record);
        files.insert("twin".to_owned(), line.clone());
        files
            .entry("log.jsonl".to_owned())
            .or_default()
            .push_str(&line);
    }
    files
}

/// Copies of what a start passes on.
pub(crate) fn owned<'a>(records: impl IntoIterator<Item = LiveRecord<'a>>) -> Records {
    let records = records.into_iter();
    records
        .map(|(key, bytes)| (key.clone(), Bytes::copy_from_slice(bytes)))
        .collect()
}

/// The live records among files, in order.
pub(crate) fn live_of(files: &BTreeMap<String, String>) -> Records {
    let records = files
        .iter()
        .map(|(name, content)| (key(name), Bytes::from(content.clone())));
    records
        .filter(|(key, content)| is_live(key, content))
        .collect()
}

/// Every file of a key in the file system.
pub(crate) fn files(root: &Path) -> BTreeMap<String, String> {
    fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if RESERVED.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                collect(root, &path, found);
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(root, root, &mut found);
    found
}

/// Copies a folder that may change meanwhile.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let Ok(entries) = fs::read_dir(from) else {
        return;
    };
    for entry in entries {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy(&entry.path(), &target),
            // A file may vanish between its listing and its copy.
            Ok(_) | Err(_) => drop(fs::copy(entry.path(), target)),
        }
    }
}

/// Puts the journal of one copy in place of another's.
pub(crate) fn replace_journal(from: &Path, to: &Path) {
    fs::remove_dir_all(to.join("journal")).unwrap();
    copy(&from.join("journal"), &to.join("journal"));
}

/// The segments of a journal, oldest first.
pub(crate) fn segments(root: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(root.join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "jnl"))
        .collect();
    segments.sort();
    segments
}
