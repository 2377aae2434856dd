//! A store that is written without a pause, and the expected content of its backups.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::look::shown;
use super::world::{
    World, close, expected, files, key, names, owned, segments, temporary_folder, tiny, tree,
    waiting_objects,
};
use crate::append_file::AppendFile;
use crate::backup::{Copying, restore};
use crate::disk::Disk;
use crate::file::Options;
use crate::limits::COPY_EPOCHS;
use crate::look::Look;
use crate::volume::GrowingFile;
use crate::{Engine, Epoch, Seq};

/// Checkpoints and segments that end every few commits.
pub(super) fn restless() -> Options {
    Options {
        checkpoint_bytes: 2_000,
        first_segment_bytes: 8 * 1024,
        segment_bytes: 8 * 1024,
        gather: Duration::from_millis(1),
        ..tiny()
    }
}

/// A store that is written to.
pub(super) struct Busy {
    pub(super) folder: TempDir,
    pub(super) world: World,
    pub(super) log: AppendFile,
}

impl Busy {
    pub(super) async fn new() -> Self {
        let folder = temporary_folder();
        let root = folder.path().join("state");
        let world = World::open_on(Disk::new(), &root, restless()).await;
        Self {
            log: AppendFile::open(tree(&root), &key("side.log")).unwrap(),
            world: world.unwrap(),
            folder,
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Appends a line without the journal, then commits a round that depends on it.
    pub(super) async fn step(&mut self) {
        let n = self.world.last.0;
        self.log.append(format!("{n:07}\n").as_bytes()).unwrap();
        self.world.round(n).await.unwrap();
    }

    pub(super) async fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step().await;
        }
    }

    /// Opens an open store again, which closes it first.
    pub(super) async fn open_again(&mut self) {
        let (engine, records) = (&mut self.world.engine, &mut self.world.records);
        (self.world.epoch, _) = engine
            .open(&mut |found| records.extend(owned(found.iter().copied())))
            .await
            .unwrap();
    }

    /// Restores a backup. It must equal the store at its last commit; an inspection before that shows the same.
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
        assert_eq!(found, expected(last.0), "at {last}");
        let all: String = (0..self.world.last.0)
            .map(|n| format!("{n:07}\n"))
            .collect();
        let bytes = log.len() as u64;
        assert!(
            all.starts_with(&log) && bytes >= last.0 * 8,
            "{bytes} bytes of the log at {last}"
        );
        assert_eq!(waiting_objects(&root), Vec::<String>::new());
        fs::remove_dir_all(root).unwrap();
    }

    /// Segments kept by a hold are released.
    pub(super) fn assert_released(self) {
        let root = self.root();
        close(self.world.engine).unwrap();
        assert_eq!(segments(&root), Vec::<PathBuf>::new());
        assert!(!names(&root.join("journal")).contains(&"HOLD".to_owned()));
    }
}

/// How these stores are copied.
pub(super) fn copying() -> Copying<'static> {
    Copying {
        leave_out: &|_| false,
        counts_on: &|changed| (changed.as_str() == "twin").then(|| key("side.log")),
        is_stopped: &|| false,
    }
}
