//! The combined content of the engine's own files: the position of the store, the changes that the journal adds to
//! the tree, and all damage. Each start, inspection and repair begins with it. It takes no lock and writes nothing.

use std::path::{Path, PathBuf};

use crate::applied;
use crate::batch::Seq;
use crate::control::{self, Checkpoint, Mark, StoreId};
use crate::disk::{Disk, DiskError};
use crate::live::{self, Index};
use crate::manifest::Manifest;
use crate::open_error::OpenError;
use crate::overlay::Overlay;
use crate::paths::Paths;
use crate::record::Record;
use crate::scan::{self, Scan};

pub(crate) struct Survey {
    /// The tree is complete up to this commit.
    pub(crate) base: Checkpoint,
    pub(crate) scan: Scan,
    /// The changes of the records after `base` to the tree, by key. The last change of a name
    /// counts, also if a file became a folder.
    pub(crate) overlay: Overlay,
    /// The newest readable index, updated from the journal.
    pub(crate) index: Option<Index>,
    pub(crate) damage: Vec<Damage>,
    /// Unreadable indexes of unfinished checkpoints, as a crash may leave them.
    pub(crate) unfinished_indexes: Vec<PathBuf>,
}

/// A damaged file of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub part: Part,
    /// Relative to the root.
    pub path: String,
    pub offset: u64,
    pub what: String,
}

/// The effect of damage on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is unknown up to which commit the tree is complete, or to which store it belongs.
    Checkpoint,
    /// The acknowledged commits from `first` to `last` are lost, unless the tree already has them.
    Journal { first: Seq, last: Seq },
    /// It can be rebuilt from the tree.
    Index,
}

impl Survey {
    pub(crate) fn read(disk: &Disk, paths: &Paths, store: StoreId) -> Result<Self, DiskError> {
        let mut damage = Vec::new();
        let mut add = |part, path: &Path, offset, what| {
            let path = paths.below(path);
            damage.push(Damage {
                part,
                path,
                offset,
                what,
            });
        };
        let (mark, min_segment_epoch, is_readable) =
            match control::read_mark(disk, &paths.checkpoint, store) {
                Ok(mark) => (mark, Mark::min_segment_epoch(mark), true),
                Err(OpenError::Disk(error)) => return Err(error),
                Err(error) => {
                    let what = match error {
                        OpenError::Damaged { what, .. } => what,
                        other => other.to_string(),
                    };
                    add(Part::Checkpoint, &paths.checkpoint, 0, what);
                    (None, None, false)
                }
            };
        let checkpoint = mark.map(|mark| mark.at);
        // Read this before the journal, which may grow meanwhile.
        let noted = applied::read(disk, paths, store)?;
        let least = checkpoint.map_or(Seq(0), |checkpoint| checkpoint.seq);
        let indexes = live::survey(disk, &paths.index, store, least)?;
        let mut unfinished_indexes = Vec::new();
        for (seq, path) in indexes.unreadable {
            if checkpoint.is_some_and(|checkpoint| seq > checkpoint.seq) {
                unfinished_indexes.push(path);
            } else {
                add(Part::Index, &path, 0, "it is not readable".to_owned());
            }
        }
        let mut index = indexes.newest;
        let indexed = index.as_ref().map(|index| index.at);
        // The index also states the position.
        let base = match checkpoint.or(indexed) {
            Some(base) => base,
            None => {
                if is_readable {
                    let what = "it is missing, and no live index has the position of the store";
                    add(Part::Checkpoint, &paths.checkpoint, 0, what.to_owned());
                }
                scan::beginning(disk, &paths.journal)?
            }
        };
        let mut overlay = Overlay::default();
        let mut take = |record: Record| {
            overlay.add(record.seq, &record.batch);
            index.iter_mut().for_each(|index| index.follow(&record));
        };
        let scan = scan::read(
            disk,
            &paths.journal,
            store,
            base.seq,
            min_segment_epoch,
            &mut take,
        )?;
        let (end, first) = (scan.last, scan.last.next());
        let applied = indexed.map(|at| at.seq).max(noted);
        let applied = applied.filter(|seq| *seq > end);
        if let Some((path, broken)) = &scan.broken {
            let cut_off = scan::last_cut_off(disk, &scan, store)?;
            let last = cut_off.max(applied).unwrap_or(first);
            let part = Part::Journal { first, last };
            add(part, path, broken.offset, broken.what.clone());
        } else if let Some(last) = applied {
            let what = applied::ahead(end, last);
            add(Part::Journal { first, last }, &paths.journal, 0, what);
        }
        if let Some(manifest) = Manifest::read(disk, &paths.manifest)?
            && let Some(what) = manifest.contradicts(store, end)
        {
            let last = manifest.sequence;
            let part = match manifest.store == store {
                true => Part::Journal { first, last },
                false => Part::Checkpoint,
            };
            add(part, &paths.manifest, 0, what);
        }
        Ok(Self {
            base,
            scan,
            overlay,
            index,
            damage,
            unfinished_indexes,
        })
    }

    /// The first and last unreadable commit, if any.
    pub(crate) fn lost(&self) -> Option<(Seq, Seq)> {
        let lasts = self.damage.iter().filter_map(|damage| match damage.part {
            Part::Journal { last, .. } => Some(last),
            Part::Checkpoint | Part::Index => None,
        });
        Some((self.scan.last.next(), lasts.max()?))
    }

    /// Refuses a store that may have lost acknowledged changes. A damaged index is no reason: it can be rebuilt.
    pub(crate) fn check(&self, paths: &Paths) -> Result<(), OpenError> {
        let mut damage = self.damage.iter();
        match damage.find(|damage| damage.part != Part::Index) {
            None => Ok(()),
            Some(Damage {
                path, offset, what, ..
            }) => Err(OpenError::damaged(&paths.root.join(path), *offset, what)),
        }
    }
}
