//! The holds on a store as its writer sees them, and what their files say. Why they work is in `hold.rs`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::batch::Seq;
use crate::control::StoreId;
use crate::disk::{Details, Disk, DiskError};
use crate::failpoint;
use crate::layout::Layout;
use crate::limits::{CONTROL_FILE_BYTES, HOLD_JOURNAL_BYTES};
use crate::replace;
use crate::restored;
use crate::space::Watermark;
use crate::staged::StagedName;

const PREFIX: &str = "HOLD.";
const OBJECT: &str = "held-";

/// What the file of a hold says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HoldFile {
    pub(crate) store: StoreId,
    /// The files were complete up to here when the hold began; none while that is being found out.
    pub(crate) seq: Option<Seq>,
    /// The last record in the journal when the hold began.
    pub(crate) last: Option<Seq>,
    /// Of this file. A copy of it has another one, or one by chance the same on another file system.
    pub(crate) inode: u64,
    /// When this file was made, in nanoseconds since 1970. No copy has the same; not every file system knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) born: Option<u64>,
    /// Seconds since 1970.
    pub(crate) expires: u64,
}

/// A hold found in a journal's folder.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    /// None when it is not understood.
    file: Option<HoldFile>,
    is_copy: bool,
}

impl Found {
    fn is_among(&self, ids: &BTreeSet<String>) -> bool {
        id_of_path(&self.path).is_some_and(|id| ids.contains(id))
    }
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

    /// Gives the object at `path` a second name for the copies that are made. Where files have one name only there is no
    /// hold that would ask for it.
    pub(crate) fn keep_object(&self, path: &Path, name: &StagedName) -> Result<(), DiskError> {
        match self.disk.link(path, &self.second_name(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) if error.is_unsupported() => {
                if self.any()? {
                    tracing::warn!(%error, "a backup that is being made may miss an object");
                }
                Ok(())
            }
            result => result.inspect(|()| failpoint::reach("object-kept")),
        }
    }

    /// Takes an object's second name from it, if it has one.
    pub(crate) fn let_go_of_object(&self, name: &StagedName) -> Result<(), DiskError> {
        match self.disk.remove_file(&self.second_name(name)) {
            Err(error) if error.is_missing() => Ok(()),
            result => result,
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
        let over = restored::holds_over(&self.disk, &self.layout)?;
        let found = self.found(store)?.into_iter();
        let copied = found.filter(|found| found.is_copy && !found.is_among(&over));
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
        let mut found = self.found(store)?;
        if found.is_empty() {
            self.remove_objects()?;
            return Ok(checkpoint);
        }
        // Of a copy, the hold that is left by a crash must tell no more than there is: not one that was taken later than the
        // copy was made, and not one that ended before.
        found.sort_by_key(|found| {
            let file = found.file.as_ref();
            let last = file.and_then(|file| file.last);
            let is_kept = last.is_some_and(|last| last <= checkpoint);
            (is_kept, file.and_then(|file| file.seq))
        });
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
            // Before the segments go: a hold that is found promises them. So does one that was taken meanwhile, which may
            // count on those that have just ended.
            self.disk.sync_folder(&self.layout.journal)?;
            return self.let_go(store, checkpoint, kept_bytes, watermark);
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

/// Whether both moments are known and are not the same.
fn is_other(one: Option<u64>, other: Option<u64>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

/// The name of the file of a hold.
pub(crate) fn file_name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// The id of the hold that a file in the journal's folder is of.
pub(crate) fn id_of(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
        .filter(|_| !replace::is_temporary(name))
}

/// The same, of its path.
pub(crate) fn id_of_path(path: &Path) -> Option<&str> {
    id_of(path.file_name()?.to_str()?)
}

fn is_hold(name: &str) -> bool {
    id_of(name).is_some()
}
