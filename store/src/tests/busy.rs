//! A store that is written to without a pause, and what its backups are compared with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::look::shown;
use super::world::{
    Op, World, adopt, append, close, delete, files, live, put, segments, staged, temporary_folder,
    tiny, tree, waiting_objects,
};
use crate::append_file::AppendFile;
use crate::backup::{Copying, restore};
use crate::batch::{Epoch, Seq};
use crate::disk::Disk;
use crate::file::Options;
use crate::limits::COPY_EPOCHS;
use crate::look::Look;
use crate::volume::GrowingFile;
use crate::{Engine, Key};

/// What the files of keys hold.
pub(super) type Files = BTreeMap<String, String>;

/// Checkpoints and segments that end every few commits.
pub(super) fn restless() -> Options {
    Options {
        checkpoint_bytes: 2_000,
        first_segment_bytes: 8 * 1024,
        segment_bytes: 8 * 1024,
        ..tiny()
    }
}

/// A store that is written to, and what its files had to be after each commit.
pub(super) struct Busy {
    pub(super) folder: TempDir,
    pub(super) world: World,
    pub(super) log: AppendFile,
    pub(super) model: Files,
    pub(super) past: BTreeMap<Seq, Files>,
    pub(super) steps: u64,
}

impl Busy {
    pub(super) async fn new() -> Self {
        Self::on(Disk::new()).await
    }

    pub(super) async fn on(disk: Disk) -> Self {
        let folder = temporary_folder();
        let root = folder.path().join("state");
        let world = World::open_on(disk, &root, restless()).await;
        Self {
            log: AppendFile::open(tree(&root), &Key::new("side.log").unwrap()).unwrap(),
            world: world.unwrap(),
            model: Files::new(),
            past: BTreeMap::from([(Seq(0), Files::new())]),
            steps: 0,
            folder,
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) async fn commit(&mut self, operations: Vec<Op>, change: impl FnOnce(&mut Files)) {
        let seq = self.world.commit(operations).await.unwrap();
        change(&mut self.model);
        self.past.insert(seq, self.model.clone());
    }

    /// A line beside the journal, then a commit of every kind of change that counts on it.
    pub(super) async fn step(&mut self) {
        let n = self.steps;
        let line = format!("{n:07}\n");
        self.log.append(line.as_bytes()).unwrap();
        let object = staged(&self.world.engine.volume(), &format!("object {n}"));
        let (zip, old) = (format!("job/{n}/a.zip"), n.wrapping_sub(3));
        let gone = format!("job/{old}/a.zip");
        let operations = vec![
            adopt(&zip, object),
            delete(&gone),
            live("head.json", n),
            put("lines", &format!("{}", n + 1)),
            append("history.jsonl", n * 8, &line),
        ];
        self.commit(operations, |files| {
            files.insert(zip, format!("object {n}"));
            files.remove(&gone);
            files.insert("head.json".into(), format!(r#"{{"live":true,"n":{n}}}"#));
            files.insert("lines".into(), format!("{}", n + 1));
            files
                .entry("history.jsonl".into())
                .or_default()
                .push_str(&line);
        })
        .await;
        self.steps += 1;
    }

    pub(super) async fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step().await;
        }
    }

    /// Opens again what is open, which closes it first.
    pub(super) async fn open_again(&mut self) {
        let (engine, records) = (&mut self.world.engine, &mut self.world.records);
        (self.world.epoch, _) = engine
            .open(&mut |key, bytes| records.push((key, bytes)))
            .await
            .unwrap();
    }

    /// Restores a backup, which must be the store as it was at its last commit. A look tells the same before.
    pub(super) async fn assert_whole(&self, backup: &Path, last: Seq) {
        let root = self.folder("restored");
        restore(backup, &root, copying()).unwrap();
        for folder in [backup, &root] {
            let look = Look::at(folder).unwrap();
            assert_eq!((look.damage(), look.position().last), (&[][..], last));
            assert_eq!(shown(&look), files(folder));
        }
        let opened = World::open(&root).await.unwrap();
        assert_eq!(opened.last, last);
        assert!(opened.engine.is_restored());
        assert!(opened.epoch > Epoch(COPY_EPOCHS), "{}", opened.epoch);
        close(opened.engine).unwrap();
        let mut found = files(&root);
        let log = found.remove("side.log").unwrap_or_default();
        assert_eq!(found, self.past[&last], "at {last}");
        let lines: usize = found.get("lines").map_or(0, |lines| lines.parse().unwrap());
        let all: String = (0..self.steps).map(|n| format!("{n:07}\n")).collect();
        assert!(
            all.starts_with(&log) && log.len() >= lines * 8,
            "{} bytes for {lines} lines",
            log.len()
        );
        assert_eq!(waiting_objects(&root), Vec::<String>::new());
        fs::remove_dir_all(root).unwrap();
    }

    /// What a hold kept is given up.
    pub(super) fn assert_released(self) {
        let root = self.root();
        close(self.world.engine).unwrap();
        assert_eq!(segments(&root), Vec::<PathBuf>::new());
        assert!(!names(&root, "journal").contains(&"HOLD".to_owned()));
    }
}

/// How these stores are copied.
pub(super) fn copying() -> Copying<'static> {
    Copying {
        leave_out: &|_| false,
        counts_on: &|key| (key.as_str() == "lines").then(|| Key::new("side.log").unwrap()),
        is_stopped: &|| false,
    }
}

pub(super) fn names(root: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root.join(folder)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
