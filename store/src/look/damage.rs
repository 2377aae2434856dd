//! What is wrong with the store's own files.

use std::path::Path;

use crate::batch::Seq;
use crate::control::{self, Mark, StoreId};
use crate::disk::{Disk, DiskError};
use crate::manifest::Manifest;
use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::scan::{self, Scan};

/// A file of the store's own that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub part: Part,
    /// Below the root.
    pub path: String,
    pub offset: u64,
    pub what: String,
}

/// What a damaged file is to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing tells up to where the files are complete.
    Checkpoint,
    /// Acknowledged commits are lost, as far as the files do not show them already: all from `first` to `last`.
    Journal { first: Seq, last: Seq },
    /// It is rebuilt from the files.
    Index,
}

/// Damage as it is found.
pub(super) struct DamageList<'a> {
    paths: &'a Paths,
    pub(super) found: Vec<Damage>,
}

impl<'a> DamageList<'a> {
    pub(super) fn of(paths: &'a Paths) -> Self {
        Self {
            paths,
            found: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, part: Part, path: &Path, offset: u64, what: String) {
        self.found.push(Damage {
            part,
            path: self.paths.below(path),
            offset,
            what,
        });
    }

    /// What `CHECKPOINT` says, when that can be read.
    pub(super) fn read_mark(
        &mut self,
        disk: &Disk,
        store: StoreId,
    ) -> Result<Option<Mark>, DiskError> {
        let path = &self.paths.checkpoint;
        let what = match control::read_mark(disk, path, store) {
            Ok(mark) => return Ok(mark),
            Err(OpenError::Disk(error)) => return Err(error),
            Err(OpenError::Damaged { what, .. }) => what,
            Err(other) => other.to_string(),
        };
        self.add(Part::Checkpoint, path, 0, what);
        Ok(None)
    }

    /// What is missing of a journal, given the last record that an index has seen applied.
    pub(super) fn add_journal(
        &mut self,
        disk: &Disk,
        store: StoreId,
        scan: &Scan,
        indexed: Option<Seq>,
    ) -> Result<(), DiskError> {
        let (end, first) = (scan.last, scan.last.next());
        if let Some(broken) = &scan.broken {
            let last = scan::last_cut_off(disk, scan, store)?.unwrap_or(first);
            let what = broken.what.clone();
            self.add(
                Part::Journal { first, last },
                &broken.path,
                broken.offset,
                what,
            );
        } else if let Some(last) = indexed.filter(|indexed| *indexed > end) {
            let what = format!("it ends with record {end}, but record {last} was applied");
            let journal = &self.paths.journal;
            self.add(Part::Journal { first, last }, journal, 0, what);
        }
        Ok(())
    }

    /// What a backup lacks of what its manifest tells.
    pub(super) fn add_manifest(
        &mut self,
        disk: &Disk,
        store: StoreId,
        last: Seq,
    ) -> Result<(), DiskError> {
        if let Some(manifest) = Manifest::read(disk, self.paths)?
            && let Some(what) = manifest.contradicts(store, last)
        {
            let part = Part::Journal {
                first: last.next(),
                last: manifest.sequence.max(last.next()),
            };
            self.add(part, &self.paths.manifest, 0, what);
        }
        Ok(())
    }

    /// Whether something is wrong with the checkpoint.
    pub(super) fn has_checkpoint(&self) -> bool {
        self.found
            .iter()
            .any(|damage| damage.part == Part::Checkpoint)
    }
}
