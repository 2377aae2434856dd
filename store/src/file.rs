//! The engine on local files: a redo journal and a tree with one file per key. A commit is one write to the journal
//! and one sync. Another thread writes the tree. After a clean close the tree holds everything. Only one process at a
//! time can open a store.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::applier::{Applier, End, Unsynced};
use crate::batch::{Batch, Epoch, Seq};
use crate::disk::{Action, Disk, DiskError};
use crate::engine::{self, CloseError, CommitError, Engine, LiveRecord};
use crate::failpoint;
use crate::fault::Fault;
use crate::file_volume::FileVolume;
use crate::journal::Journal;
use crate::key::{Key, Prefix};
use crate::limits;
pub use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::pending::{Pending, Refused};
use crate::quarantine;
use crate::recovery::{self, Recovered};
use crate::space::{Gauge, Watermarks};
use crate::staged::Staged;
use crate::top_folders::TopFolders;
use crate::tree::Tree;
pub use crate::view::FileReader;
use crate::volume::Volume;

/// How a store uses its disk. The defaults suit a daemon; tests make everything smaller.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of a segment that is created at open because there is no spare.
    pub first_segment_bytes: u64,
    /// Size of all later segments.
    pub segment_bytes: u64,
    /// Segments kept ready for a full disk.
    pub spare_segments: usize,
    /// How long a change may wait for more before its files are written, unless somebody reads them.
    pub gather: Duration,
    pub checkpoint_bytes: u64,
    pub checkpoint_interval: Duration,
    /// When the volume reports `Low` and `Full`.
    pub watermarks: Watermarks,
    /// Allows a network file system, where locks and syncs may not work.
    pub allow_network: bool,
}

/// A store on local files; see [`Engine`]. Dropping it closes it.
pub struct FileEngine {
    disk: Disk,
    paths: Paths,
    options: Options,
    pending: Arc<Pending>,
    gauge: Gauge,
    opened: Option<Opened>,
}

struct Opened {
    journal: Journal,
    applier: JoinHandle<Result<End, Fault>>,
    is_restored: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            first_segment_bytes: limits::FIRST_SEGMENT_BYTES,
            segment_bytes: limits::SEGMENT_BYTES_ON_DISK,
            spare_segments: limits::SPARE_SEGMENTS,
            gather: limits::GATHER,
            checkpoint_bytes: limits::CHECKPOINT_BYTES,
            checkpoint_interval: limits::CHECKPOINT_INTERVAL,
            watermarks: Watermarks::default(),
            allow_network: false,
        }
    }
}

impl FileEngine {
    /// Does not access the disk; [`Engine::open`] does.
    pub fn new(root: impl AsRef<Path>, options: Options) -> Self {
        Self::on(Disk::new(), root.as_ref(), options)
    }

    pub(crate) fn on(disk: Disk, root: &Path, options: Options) -> Self {
        let gauge = Gauge::new(disk.clone(), root.to_owned(), options.watermarks);
        Self {
            paths: Paths::new(root),
            disk,
            options,
            pending: Arc::default(),
            gauge,
            opened: None,
        }
    }

    pub(crate) fn start(
        &mut self,
        live: &mut (dyn FnMut(&[LiveRecord<'_>]) + Send),
    ) -> Result<(Epoch, Seq), OpenError> {
        if let Err(error) = self.shut() {
            tracing::warn!(%error, "the store was not closed cleanly before it is opened again");
        }
        let recovered = recovery::recover(&self.disk, &self.paths, &self.options)?;
        let Recovered {
            live: records,
            journal,
            checkpointer,
            noted,
            is_restored,
        } = recovered;
        let (epoch, last) = (journal.epoch(), journal.last());
        self.pending.begin();
        failpoint::reach("store-opened");
        live(&records.iter().collect::<Vec<_>>());
        let tree = self.tree();
        let applier = Applier {
            folders: TopFolders::of(&tree)?,
            tree,
            pending: self.pending.clone(),
            checkpointer,
            noted,
            live: records,
            applied: last,
            options: self.options.clone(),
            unsynced: Unsynced::default(),
        };
        let applier = std::thread::Builder::new()
            .name("store-applier".to_owned())
            .spawn(move || applier.run())
            .map_err(|error| DiskError::new(Action::Thread, &self.paths.root, error))?;
        self.opened = Some(Opened {
            journal,
            applier,
            is_restored,
        });
        Ok((epoch, last))
    }

    fn write(&mut self, batch: Batch) -> Result<Seq, CommitError> {
        let view = self.reader();
        let Some(opened) = &mut self.opened else {
            return Err(CommitError::Fenced {
                batch: batch.epoch,
                current: Epoch::default(),
            });
        };
        if let Some(source) = self.pending.failure() {
            return Err(CommitError::Unknown { source });
        }
        let current = opened.journal.epoch();
        if batch.epoch != current {
            return Err(CommitError::Fenced {
                batch: batch.epoch,
                current,
            });
        }
        if batch.is_too_large() {
            return Err(CommitError::TooLarge {
                operations: batch.len(),
                bytes: batch.bytes(),
            });
        }
        if batch.is_empty() {
            return Ok(opened.journal.last());
        }
        batch.check()?;
        if let Err(contradicted) = view.check(&batch) {
            // If the whole state was removed, the caller made no mistake.
            let journal = opened.journal.verify();
            journal.map_err(|error| CommitError::Unknown {
                source: error.into(),
            })?;
            return Err(contradicted);
        }
        self.pending.wait_for_room()?;
        let seq = opened.journal.last().next();
        failpoint::reach("commit-begun");
        let mut written = opened.journal.append(seq, &batch);
        if matches!(written, Err(Refused::Full)) {
            // A checkpoint turns old segments into spares.
            self.pending.wait_for_checkpoint()?;
            written = opened.journal.append(seq, &batch);
        }
        if !matches!(written, Err(Refused::Full)) {
            // Also after a failed write: the next open may find a record that names these objects.
            batch.adopts.values().for_each(Staged::adopt);
        }
        written?;
        self.pending.publish(seq, batch);
        failpoint::reach("commit-visible");
        Ok(seq)
    }

    pub(crate) fn shut(&mut self) -> Result<(), CloseError> {
        let Some(Opened {
            journal, applier, ..
        }) = self.opened.take()
        else {
            return Ok(());
        };
        self.pending.stop();
        match applier.join() {
            Ok(Ok(End::Clean)) => journal
                .finish()
                .map_err(|error| CloseError::Fault(error.into())),
            Ok(Err(fault)) => Err(CloseError::Fault(fault)),
            // The next open uses the journal.
            Ok(Ok(End::Unfinished)) | Err(_) => Err(CloseError::Unfinished),
        }
    }

    fn tree(&self) -> Tree {
        Tree::new(self.disk.clone(), self.paths.root.clone())
    }
}

impl Engine for FileEngine {
    type Reader = FileReader;

    async fn open(
        &mut self,
        live: &mut (dyn FnMut(&[LiveRecord<'_>]) + Send),
    ) -> Result<(Epoch, Seq), engine::OpenError> {
        Ok(self.start(live)?)
    }

    /// Blocks for one sync, and longer when the tree is far behind.
    async fn commit(&mut self, batch: Batch) -> Result<Seq, CommitError> {
        let result = self.write(batch);
        if let Err(CommitError::Unknown { source }) = &result {
            self.pending.fail(source.clone());
        }
        result
    }

    fn reader(&self) -> FileReader {
        FileReader {
            tree: self.tree(),
            pending: self.pending.clone(),
        }
    }

    fn volume(&self) -> Arc<dyn Volume> {
        Arc::new(FileVolume {
            tree: self.tree(),
            pending: self.pending.clone(),
            gauge: self.gauge.clone(),
        })
    }

    /// Stores the copy in `quarantine/`.
    async fn set_aside(&mut self, key: &Key, content: &[u8]) -> Result<String, Fault> {
        let from = self.tree().path(key);
        let path = quarantine::keep(&self.disk, &self.paths, &from, content)?;
        Ok(path.display().to_string())
    }

    async fn has_set_aside(&self, folder: &Prefix) -> Result<bool, Fault> {
        Ok(quarantine::holds(&self.disk, &self.paths, folder.as_str())?)
    }

    /// True if the folder has the manifest of a backup.
    fn is_restored(&self) -> bool {
        self.opened
            .as_ref()
            .is_some_and(|opened| opened.is_restored)
    }

    /// Writes everything to the tree, durably, and empties the journal.
    async fn close(mut self) -> Result<(), CloseError> {
        self.shut()
    }
}

impl Drop for FileEngine {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            tracing::warn!(%error, "the store was not closed cleanly");
        }
    }
}
