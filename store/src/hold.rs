//! Holds: while one lasts, the folder of a store can be copied with any tool, file by file, beside its writer.
//!
//! A hold is a file in `journal/` that says from which record on the journal is kept. Whoever copies takes it by itself,
//! from another process: it makes the file and only then reads how far the files are complete. The writer never waits
//! for that, because it looks for holds *after* each thing that a copy could miss, and then puts into the journal's
//! folder what is not there by itself:
//! - Segments are given up after the checkpoint that makes it possible is written. A hold that came before the look
//!   keeps them, and one that comes later reads that checkpoint.
//! - An object gets its key before anything else of its batch is done. With a hold it has a second name in the folder of
//!   the journal by then; without one it had its key before the hold began.
//! - What is written to growing files beside the journal is put into the journal too when there is a hold after the
//!   write; without one it was in the file before.
//!
//! So a copy of everything that was begun after the hold, and of `journal/` that was begun after that, is whole once the
//! journal is done again from the hold on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::batch::Seq;
use crate::control::{self, StoreId};
use crate::copied::{self, CopiedJournal};
use crate::disk::{Details, Disk, DiskError, Kind};
use crate::engine::OpenError;
use crate::failpoint;
use crate::layout::Layout;
use crate::limits::{CONTROL_FILE_BYTES, HOLD_JOURNAL_BYTES, HOLD_SECONDS};
use crate::replace;
use crate::scan;
use crate::space::Watermark;
use crate::staged::StagedName;
use crate::tree::Tree;

const PREFIX: &str = "HOLD.";
const OBJECT: &str = "held-";

/// A hold that somebody has. It stays until it is released, also when this value is gone.
pub struct Hold {
    disk: Disk,
    layout: Layout,
    id: String,
    last: Seq,
}

/// What the file of a hold says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct HoldFile {
    store: StoreId,
    /// The files were complete up to here when the hold began; none while that is being found out.
    seq: Option<Seq>,
    /// The last record in the journal when the hold began.
    last: Option<Seq>,
    /// Of this file. A copy of it has another one, or one by chance the same on another file system.
    inode: u64,
    /// When this file was made, in nanoseconds since 1970. No copy has the same; not every file system knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<u64>,
    /// Seconds since 1970.
    expires: u64,
}

/// A hold found in a journal's folder.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    /// None when it is not understood.
    file: Option<HoldFile>,
    is_copy: bool,
}

/// Where the journal of a copied folder must be done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// From after this record on.
    pub(crate) after: Seq,
    /// At least up to here.
    pub(crate) last: Seq,
}

/// The holds on a store, as its writer sees them.
#[derive(Clone)]
pub(crate) struct Holds {
    disk: Disk,
    layout: Layout,
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
        failpoint::reach("hold-begun");
        // A copy that nobody has opened is complete only up to where the hold says under which it was made. Asked before
        // the mark: its opening writes that one before it ends the hold.
        let copied = copied::span(&self.disk, &self.layout, store)?;
        let checkpoint = control::read_checkpoint(&self.disk, &self.layout.checkpoint, store)?;
        let Some(checkpoint) = checkpoint else {
            return Err(OpenError::Damaged {
                path: self.layout.checkpoint.clone(),
                offset: 0,
                what: "it is missing; the next start of the daemon makes it again".to_owned(),
            });
        };
        let complete = match copied {
            None => checkpoint.seq,
            Some(span) => span.after.min(checkpoint.seq),
        };
        let journal = &self.layout.journal;
        let scan = match copied {
            None => scan::readable(&self.disk, journal, store, complete, &mut drop)?,
            Some(span) => {
                let tree = Tree::of_copy(self.disk.clone(), self.layout.root.clone());
                CopiedJournal::read(&tree, &self.layout, store, span)?.scan
            }
        };
        self.last = scan.last;
        file.seq = Some(complete);
        file.last = Some(scan.last);
        self.write(&mut file)?;
        failpoint::reach("hold-taken");
        Ok(())
    }

    /// Replaces the file, durably.
    fn write(&self, hold: &mut HoldFile) -> Result<(), DiskError> {
        let path = self.path();
        replace::replace_with(&self.disk, &path, |file| {
            hold.inode = file.identity()?.inode;
            hold.born = file.born()?;
            let line = serde_json::json!(hold);
            file.write_at(format!("{line}\n").as_bytes(), 0)?;
            file.sync_data()
        })?;
        self.disk.sync_folder(&self.layout.journal)
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
        is_hold(name) && name.strip_prefix(PREFIX) != Some(&self.id)
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
        self.layout.journal.join(format!("{PREFIX}{}", self.id))
    }
}

impl Holds {
    pub(crate) fn new(disk: &Disk, root: &Path) -> Self {
        Self {
            disk: disk.clone(),
            layout: Layout::new(root),
        }
    }

    /// Whether there is a hold now. To be asked after what a copy could miss.
    pub(crate) fn any(&self) -> Result<bool, DiskError> {
        Ok(self.names(is_hold)?.next().is_some())
    }

    /// The files of all holds.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, DiskError> {
        let names = self.names(is_hold)?;
        Ok(names.map(|name| self.layout.journal.join(name)).collect())
    }

    /// Gives the object at `path` a second name for the copies that are made.
    pub(crate) fn keep_object(&self, path: &Path, name: &StagedName) -> Result<(), DiskError> {
        match self.disk.link(path, &self.second_name(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            result => result.inspect(|()| failpoint::reach("object-kept")),
        }
    }

    /// Where an object has its second name.
    pub(crate) fn second_name(&self, name: &StagedName) -> PathBuf {
        let name = name.as_str();
        self.layout.journal.join(format!("{OBJECT}{name}"))
    }

    /// Where the journal must be done again when this folder is a copy: as each of the holds says that were copied with
    /// it. None when it is no copy.
    pub(crate) fn spans_of_copy(&self, store: StoreId) -> Result<Vec<Span>, DiskError> {
        let copied = self.found(store)?.into_iter().filter(|found| found.is_copy);
        let spans = copied.filter_map(|found| {
            let HoldFile { seq, last, .. } = found.file?;
            Some(Span {
                after: seq?,
                last: last?,
            })
        });
        Ok(spans.collect())
    }

    /// The names of the objects that have a second name here.
    pub(crate) fn objects(&self) -> Result<BTreeSet<String>, DiskError> {
        let names = self.names(|name| name.strip_prefix(OBJECT).is_some())?;
        Ok(names
            .filter_map(|name| Some(name.strip_prefix(OBJECT)?.to_owned()))
            .collect())
    }

    /// How many names a file has here.
    pub(crate) fn names_of(&self, file: &Details) -> Result<u64, DiskError> {
        let mut names = 0;
        for name in self.objects()? {
            let held = self.layout.journal.join(format!("{OBJECT}{name}"));
            let held = self.disk.details(&held)?;
            names += u64::from(held.is_some_and(|held| held.identity == file.identity));
        }
        Ok(names)
    }

    /// Puts the objects of a copy where a redo looks for them.
    pub(crate) fn return_objects(&self) -> Result<(), DiskError> {
        for name in self.objects()? {
            let held = self.layout.journal.join(format!("{OBJECT}{name}"));
            self.disk.rename(&held, &self.layout.tmp.join(name))?;
            failpoint::reach("object-returned");
        }
        Ok(())
    }

    /// The last record whose segment may go when the files are complete up to `checkpoint`. Ends the holds that are
    /// over: those of another folder, of which this one is a copy; those that are too old; and all of them when they
    /// keep too much or the disk is nearly full, since a backup can be made again.
    pub(crate) fn let_go(
        &self,
        store: StoreId,
        checkpoint: Seq,
        kept_bytes: u64,
        watermark: Watermark,
    ) -> Result<Seq, DiskError> {
        let found = self.found(store)?;
        if found.is_empty() {
            self.remove_objects()?;
            return Ok(checkpoint);
        }
        let space = self.disk.space(&self.layout.root)?;
        let is_too_much = kept_bytes > HOLD_JOURNAL_BYTES || watermark.is_passed_by(space);
        let now = self.disk.seconds_since_1970().unwrap_or_default();
        let mut least = checkpoint;
        let mut ended = false;
        for Found {
            path,
            file,
            is_copy,
        } in found
        {
            let over = match &file {
                None => Some("it is not understood"),
                Some(_) if is_copy => Some("this folder is a copy made under it"),
                Some(file) if file.expires <= now => Some("it is too old"),
                Some(_) if is_too_much => Some("it keeps too much of the journal"),
                Some(file) => {
                    least = least.min(file.seq.unwrap_or(Seq(0)));
                    None
                }
            };
            if let Some(why) = over {
                tracing::warn!(path = %path.display(), why, "a hold is ended");
                match self.disk.remove_file(&path) {
                    // Released in this moment.
                    Err(error) if error.is_missing() => {}
                    result => result?,
                }
                failpoint::reach("hold-ended");
                ended = true;
            }
        }
        if ended {
            // Before the segments go: a hold that is found promises them.
            self.disk.sync_folder(&self.layout.journal)?;
        }
        Ok(least)
    }

    fn remove_objects(&self) -> Result<(), DiskError> {
        for name in self.objects()? {
            let held = self.layout.journal.join(format!("{OBJECT}{name}"));
            self.disk.remove_file(&held)?;
            failpoint::reach("kept-object-removed");
        }
        Ok(())
    }

    fn found(&self, store: StoreId) -> Result<Vec<Found>, DiskError> {
        let mut found = Vec::new();
        for path in self.paths()? {
            // Content and identity of one file, since another may take its place at any moment.
            let opened = match self.disk.open_to_read(&path) {
                // Released in this moment.
                Err(error) if error.is_missing() => continue,
                result => result?,
            };
            let bytes = opened.read_at(0, CONTROL_FILE_BYTES as usize)?;
            let (inode, born) = (opened.identity()?.inode, opened.born()?);
            let file: Option<HoldFile> = serde_json::from_slice(&bytes).ok();
            let file = file.filter(|file| file.store == store);
            let is_copy = file
                .as_ref()
                .is_some_and(|file| file.inode != inode || is_other(file.born, born));
            found.push(Found {
                path,
                file,
                is_copy,
            });
        }
        Ok(found)
    }

    fn names(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<impl Iterator<Item = String>, DiskError> {
        let listed = match self.disk.list(&self.layout.journal) {
            Err(error) if error.is_missing() => Vec::new(),
            result => result?,
        };
        let names = listed.into_iter().map(|(name, _)| name);
        Ok(names.filter(move |name| is_wanted(name)))
    }
}

/// Whether somebody has a hold on the store at `root`.
pub fn is_held(root: &Path) -> Result<bool, DiskError> {
    Holds::new(&Disk::new(), root).any()
}

/// The store at `root` is a copy, made by whatever means: the next opening is told so.
pub fn mark_restored(root: &Path) -> Result<(), DiskError> {
    replace::replace_durably(&Disk::new(), &Layout::new(root).restored, b"")
}

/// What follows from being a copy has been done, durably.
pub fn forget_restored(root: &Path) -> Result<(), DiskError> {
    let (disk, layout) = (Disk::new(), Layout::new(root));
    match disk.remove_file(&layout.restored) {
        Err(error) if error.is_missing() => Ok(()),
        result => {
            result?;
            failpoint::reach("mark-removed");
            disk.sync_folder(&layout.journal)
        }
    }
}

/// Whether both moments are known and are not the same.
fn is_other(one: Option<u64>, other: Option<u64>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

fn is_hold(name: &str) -> bool {
    name.starts_with(PREFIX) && !replace::is_temporary(name)
}
