//! A look at a store from outside: what its journal, its index and its files say together, as one picture. It takes no
//! lock and writes nothing, so it may be used beside the process that has the store open; whoever finds something odd
//! asks [`Look::is_current`] before believing it.

mod content;
mod damage;
mod folders;
mod mark;

use std::path::{Path, PathBuf};

use bytes::Bytes;

use self::damage::DamageList;
pub use self::damage::{Damage, Part};
pub use self::folders::{Entry, Role};
use self::mark::Mark;
use crate::batch::{Epoch, Seq};
use crate::control::{self, StoreId};
use crate::disk::{Disk, DiskError};
use crate::key::Key;
use crate::limits::LOOKS;
use crate::live::{self, LiveSet};
use crate::lock::{self, Owner};
use crate::open_error::OpenError;
use crate::overlay::Overlay;
use crate::paths::Paths;
use crate::record::Record;
use crate::scan;
pub use crate::staged::Object;
use crate::tree::Tree;

/// A store as it was at one moment.
pub struct Look {
    tree: Tree,
    paths: Paths,
    position: Position,
    overlay: Overlay,
    live: Option<LiveSet>,
    damage: Vec<Damage>,
    /// Unreadable indexes of checkpoints that did not come to their end.
    unmarked: Vec<PathBuf>,
    journal: JournalSize,
    mark: Mark,
}

/// How far a store has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The files alone show everything up to this commit.
    pub checkpoint: Seq,
    /// The last commit that is known of.
    pub last: Seq,
    /// The latest opening.
    pub epoch: Epoch,
}

/// What the journal takes, and holds for the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSize {
    pub segments: u64,
    /// Commits that are not in the files for certain.
    pub commits: u64,
}

impl Look {
    /// Looks at the store at `root`. One of a newer format, or none at all, is an error; damage is not.
    pub fn at(root: impl AsRef<Path>) -> Result<Self, OpenError> {
        let (disk, paths) = (Disk::new(), Paths::new(root.as_ref()));
        // No folder at all is another mistake than one with other files.
        disk.identity(&paths.root)?;
        let Some(store) = control::read_format(&disk, &paths.format)? else {
            return Err(OpenError::NotAState {
                root: paths.root.clone(),
            });
        };
        let mut tries = 1;
        loop {
            match Self::read(&disk, &paths, store) {
                // A segment or an index can go while it is looked for; then a checkpoint has come in between.
                Err(error) if error.is_missing() && tries < LOOKS => tries += 1,
                result => return Ok(result?),
            }
        }
    }

    fn read(disk: &Disk, paths: &Paths, store: StoreId) -> Result<Self, DiskError> {
        let mut damage = DamageList::of(paths);
        // Read before everything else, so that a checkpoint in between shows as a change of the mark.
        let checkpoint_bytes = mark::checkpoint_bytes(disk, paths)?;
        let marked = damage.read_mark(disk, store)?;
        let checkpoint = marked.map(|marked| marked.at);
        let being_written = if damage.has_checkpoint() {
            None
        } else {
            control::Mark::being_written(marked)
        };
        let least = checkpoint.map_or(Seq(0), |checkpoint| checkpoint.seq);
        let live::Survey { newest, unreadable } = live::survey(disk, &paths.index, store, least)?;
        let mut unmarked = Vec::new();
        for (seq, path) in unreadable {
            // A crash before the end of a checkpoint may take the content of its index.
            if checkpoint.is_some_and(|checkpoint| seq > checkpoint.seq) {
                unmarked.push(path);
            } else {
                damage.add(Part::Index, &path, 0, "it is not readable".to_owned());
            }
        }
        let base = match checkpoint.or(newest.as_ref().map(|index| index.at)) {
            Some(base) => base,
            None => {
                if !damage.has_checkpoint() {
                    let what = "it is missing, and no live index tells the position of the store";
                    damage.add(Part::Checkpoint, &paths.checkpoint, 0, what.to_owned());
                }
                scan::beginning(disk, &paths.journal)?
            }
        };
        let (mut overlay, mut live, mut commits) = (Overlay::default(), newest, 0);
        let indexed = live.as_ref().map(|index| index.at.seq);
        let mut take = |record: Record| {
            overlay.add(record.seq, &record.batch);
            live.iter_mut().for_each(|index| index.follow(&record));
            commits += 1;
        };
        let journal = &paths.journal;
        let mut scan = scan::survey(disk, journal, store, base.seq, being_written, &mut take)?;
        damage.add_journal(disk, store, &scan, indexed)?;
        damage.add_manifest(disk, store, scan.last)?;
        let mark = Mark {
            checkpoint: checkpoint_bytes,
            segments: std::mem::take(&mut scan.segments),
            end: scan.end.clone(),
        };
        Ok(Self {
            tree: Tree::new(disk.clone(), paths.root.clone()),
            paths: paths.clone(),
            position: Position {
                checkpoint: base.seq,
                last: scan.last,
                epoch: base.epoch.max(scan.epoch),
            },
            journal: JournalSize {
                segments: mark.segments.len() as u64,
                commits,
            },
            overlay,
            live: live.map(|index| index.live),
            damage: damage.found,
            unmarked,
            mark,
        })
    }

    /// How far the store has come.
    pub fn position(&self) -> Position {
        self.position
    }

    pub fn journal(&self) -> JournalSize {
        self.journal
    }

    /// What is wrong with the store's own files.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    pub fn root(&self) -> &Path {
        &self.paths.root
    }

    /// Whether nothing has been committed since this look, so that what was read through it fits together.
    pub fn is_current(&self) -> Result<bool, DiskError> {
        match Mark::read(&self.tree.disk, &self.paths, self.mark.end.offset) {
            Ok(now) => Ok(now == self.mark),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The user that the state folder belongs to.
    pub fn owner(&self) -> Result<Option<u32>, DiskError> {
        let root = self.tree.disk.details(&self.paths.root)?;
        Ok(root.map(|details| details.owner))
    }

    /// The process that has the store open, as far as this system tells.
    pub fn user(&self) -> Option<Owner> {
        lock::holder(&self.tree.disk, &self.paths.lock)
    }

    /// The live records as the next start would stream them; none when it would have to look for them.
    pub fn live(&self) -> Option<impl Iterator<Item = (&Key, &Bytes)>> {
        self.live.as_ref().map(LiveSet::iter)
    }

    /// The live record of that key, as the next start would stream it.
    pub fn live_record(&self, key: &Key) -> Option<&Bytes> {
        self.live.as_ref()?.get(key)
    }
}
