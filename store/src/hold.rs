//! Holds: while one lasts, the folder of a store can be copied with any tool, file by file, beside its writer.
//!
//! A hold is a file in `journal/` that says from which record on the journal is kept. Whoever copies takes it by itself,
//! from another process: it makes the file and only then reads how far the files are complete. The writer never waits
//! for that, because it looks for holds *after* each thing that a copy could miss, and sees to it that the journal's
//! folder has what is not there by itself:
//! - Segments are given up after the checkpoint that makes it possible is written. A hold that came before the look
//!   keeps them, and one that comes later reads that checkpoint.
//! - An object gets its key before anything else of its batch is done, and before that a second name in the folder of the
//!   journal. It loses that again when there is no hold afterwards: one that comes later finds the key.
//! - What is written to growing files beside the journal is put into the journal too when there is a hold after the
//!   write; without one it was in the file before.
//!
//! So a copy of everything that was begun after the hold, and of `journal/` that was begun after that, is whole once the
//! journal is done again from the hold on.

use std::path::{Path, PathBuf};

use crate::batch::Seq;
use crate::control::{self, StoreId};
use crate::copied::{self, CopiedJournal};
use crate::disk::{Action, Disk, DiskError, Kind};
use crate::engine::OpenError;
use crate::failpoint;
use crate::holds::{self, HoldFile, Holds, Span};
use crate::layout::Layout;
use crate::limits::{HOLD_SECONDS, LOOKS};
use crate::live;
use crate::replace;
use crate::scan;
use crate::staged::StagedName;
use crate::tree::Tree;

/// A hold that somebody has. It stays until it is released, also when this value is gone.
pub struct Hold {
    disk: Disk,
    layout: Layout,
    id: String,
    last: Seq,
}

impl Hold {
    /// Takes a hold on the store at `root`, whether a process has it open or not.
    pub fn take(root: &Path) -> Result<Self, OpenError> {
        Self::take_on(Disk::new(), root)
    }

    pub(crate) fn take_on(disk: Disk, root: &Path) -> Result<Self, OpenError> {
        let layout = Layout::new(root);
        let Some(store) = control::read_format(&disk, &layout.format)? else {
            return Err(OpenError::NotAState {
                root: root.to_owned(),
            });
        };
        let id: [u8; 8] = disk.random()?;
        let mut hold = Self {
            id: format!("{:016x}", u64::from_be_bytes(id)),
            disk,
            layout,
            last: Seq(0),
        };
        match hold.begin(store) {
            Ok(()) => Ok(hold),
            Err(error) => {
                // The first error is the one to tell, and a hold that stays ends by itself.
                let _ = hold.release();
                Err(error)
            }
        }
    }

    fn begin(&mut self, store: StoreId) -> Result<(), OpenError> {
        let now = self.disk.seconds_since_1970().unwrap_or_default();
        let mut file = HoldFile {
            store,
            seq: None,
            last: None,
            inode: 0,
            born: None,
            expires: now.saturating_add(HOLD_SECONDS),
        };
        self.write(&mut file)?;
        self.try_second_name()?;
        failpoint::reach("hold-begun");
        let Span { after, last } = self.held(store)?;
        self.last = last;
        file.seq = Some(after);
        file.last = Some(last);
        self.write(&mut file)?;
        failpoint::reach("hold-taken");
        Ok(())
    }

    /// Objects go from `tmp/` to their keys, and need second names in `journal/` on the way.
    fn try_second_name(&self) -> Result<(), DiskError> {
        let second = self
            .layout
            .tmp
            .join(StagedName::random(&self.disk)?.as_str());
        let linked = self.disk.link(&self.path(), &second);
        match linked.and_then(|()| self.disk.remove_file(&second)) {
            // A daemon that starts just now has swept it, or this is a copy without empty folders.
            Err(error) if error.is_missing() => Ok(()),
            Err(error) if error.is_unsupported() => {
                let why = "no file here can have two names, so nothing can be copied beside the daemon; stop the daemon and \
                           copy the folder with another program, or take a snapshot";
                let why = std::io::Error::other(why);
                Err(DiskError::new(Action::Link, &self.path(), why))
            }
            result => result,
        }
    }

    /// What a copy must have that is begun now, and from where on its journal must be done again.
    fn held(&self, store: StoreId) -> Result<Span, OpenError> {
        let mut tries = 1;
        loop {
            match self.held_if_settled(store) {
                Ok(Some(held)) => return Ok(held),
                Err(OpenError::Disk(error)) if error.is_missing() && tries < LOOKS => tries += 1,
                Ok(None) if tries < LOOKS => tries += 1,
                Ok(None) => {
                    return Err(OpenError::Damaged {
                        path: self.layout.journal.clone(),
                        offset: 0,
                        what: "other holds on this copy come and go".to_owned(),
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same; none when the folder is a copy and is opened just now, which ends the hold under which it was made.
    fn held_if_settled(&self, store: StoreId) -> Result<Option<Span>, OpenError> {
        let span = || copied::span(&self.disk, &self.layout, store);
        let copied = span()?;
        // It is complete only up to where that hold says.
        let held = match copied {
            None => self.held_of_store(store),
            Some(span) => self.held_of_copy(store, span),
        };
        if span()? == copied {
            held.map(Some)
        } else {
            Ok(None)
        }
    }

    fn held_of_store(&self, store: StoreId) -> Result<Span, OpenError> {
        let (disk, layout) = (&self.disk, &self.layout);
        let Some(checkpoint) = control::read_checkpoint(disk, &layout.checkpoint, store)? else {
            return Err(OpenError::Damaged {
                path: layout.checkpoint.clone(),
                offset: 0,
                what: "it is missing; the next start of the daemon makes it again".to_owned(),
            });
        };
        let after = checkpoint.seq;
        let scan = scan::readable(disk, &layout.journal, store, after, &mut drop)?;
        let last = scan.last;
        Ok(Span { after, last })
    }

    /// A copy of a copy that falls short would fall short as well, and not know it.
    fn held_of_copy(&self, store: StoreId, span: Span) -> Result<Span, OpenError> {
        let (disk, layout) = (&self.disk, &self.layout);
        let tree = Tree::of_copy(disk.clone(), layout.root.clone());
        let journal = CopiedJournal::read(&tree, layout, store, span)?;
        let index = live::survey(disk, &layout.index, store, span.after)?.newest;
        if let Some(shortfall) = journal.shortfall(index.map(|index| index.at.seq), None) {
            return Err(shortfall.refusal(layout));
        }
        Ok(Span {
            after: span.after,
            last: journal.scan.last,
        })
    }

    /// Replaces the file, durably.
    fn write(&self, hold: &mut HoldFile) -> Result<(), DiskError> {
        let path = self.path();
        let mut tries = 1;
        loop {
            let written = replace::replace_with(&self.disk, &path, |file| {
                hold.inode = file.identity()?.inode;
                hold.born = file.born()?;
                let line = serde_json::json!(hold);
                file.write_at(format!("{line}\n").as_bytes(), 0)?;
                file.sync_data()
            });
            match written {
                // A daemon that starts just now has swept it before it had its name.
                Err(error) if error.is_missing() && tries < LOOKS => tries += 1,
                result => {
                    result?;
                    return self.disk.sync_folder(&self.layout.journal);
                }
            }
        }
    }

    /// The hold of that id on the store at `root`.
    pub fn of(root: &Path, id: &str) -> Self {
        // Not to be led elsewhere by a word somebody typed.
        let id = id.chars().filter(char::is_ascii_alphanumeric).collect();
        Self {
            disk: Disk::new(),
            layout: Layout::new(root),
            id,
            last: Seq(0),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The last commit that was acknowledged when the hold began, which every copy has.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Whether a file in the journal's folder is of the hold of somebody else.
    pub(crate) fn is_another(&self, name: &str) -> bool {
        holds::id_of(name).is_some_and(|id| id != self.id)
    }

    /// Whether it lasted until now: the store ends a hold that is too old, or whose journal grows too large.
    pub fn lasts(&self) -> Result<bool, DiskError> {
        Ok(self.disk.kind(&self.path())? == Kind::File)
    }

    /// Ends the hold; false when the store had ended it before.
    pub fn release(self) -> Result<bool, DiskError> {
        match self.disk.remove_file(&self.path()) {
            Ok(()) => {
                failpoint::reach("hold-removed");
                self.disk.sync_folder(&self.layout.journal)?;
                Ok(true)
            }
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn path(&self) -> PathBuf {
        self.layout.journal.join(holds::file_name(&self.id))
    }
}

/// Whether somebody has a hold on the store at `root`.
pub fn is_held(root: &Path) -> Result<bool, DiskError> {
    Holds::new(&Disk::new(), root).any()
}
