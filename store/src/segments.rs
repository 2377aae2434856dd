//! The files of the journal besides the one being written: full segments that wait for a checkpoint, and spares. A spare
//! is allocated, filled with zeros and synced ahead of need, so that the journal can grow while the disk is full. Writer
//! and applier share this; neither waits for the other's disk operations.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::batch::Seq;
use crate::control::StoreId;
use crate::disk::{Details, Disk, DiskError, DiskFile};
use crate::failpoint;
use crate::hold;
use crate::paths::Paths;
use crate::replace;
use crate::space::Watermark;

const SPARE: &str = "spare-";

pub(crate) struct Segments {
    pub(crate) disk: Disk,
    pub(crate) store: StoreId,
    pub(crate) paths: Paths,
    sizes: Sizes,
    files: Mutex<Files>,
}

/// The sizes of segments, and when a hold is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Size of a spare.
    pub(crate) spare: u64,
    /// Spares to keep.
    pub(crate) keep: usize,
    /// How full the disk is when a hold is ended.
    pub(crate) watermark: Watermark,
}

impl Sizes {
    /// Whether a file can become a segment. A second name may be in the quarantine, whose content must stay as it is.
    fn is_spare(&self, file: &Details) -> bool {
        file.bytes >= self.spare && file.links == 1
    }
}

#[derive(Default)]
struct Files {
    spares: Vec<PathBuf>,
    sealed: Vec<Sealed>,
    /// Names given to spares so far.
    named: u64,
}

/// A segment that takes no more records.
struct Sealed {
    path: PathBuf,
    last: Seq,
}

impl Segments {
    /// Finds the spares in the journal's folder, and removes those that are too small or too many.
    pub(crate) fn open(
        disk: &Disk,
        paths: &Paths,
        store: StoreId,
        sizes: Sizes,
    ) -> Result<Self, DiskError> {
        let folder = &paths.journal;
        let mut files = Files::default();
        for (name, _) in disk.list(folder)? {
            let Some(number) = name
                .strip_prefix(SPARE)
                .and_then(|number| number.parse().ok())
            else {
                continue;
            };
            let path = folder.join(&name);
            files.named = files.named.max(number);
            let details = disk.open_to_read(&path)?.inspect()?;
            if files.spares.len() < sizes.keep && sizes.is_spare(&details) {
                files.spares.push(path);
            } else {
                disk.remove_file(&path)?;
            }
        }
        Ok(Self {
            disk: disk.clone(),
            store,
            paths: paths.clone(),
            sizes,
            files: Mutex::new(files),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.paths.journal
    }

    /// A file of at least `needed` bytes to become a segment: a spare, or else a new one of `fresh` bytes or more.
    pub(crate) fn take(&self, needed: u64, fresh: u64) -> Result<DiskFile, DiskError> {
        let spare = if needed <= self.sizes.spare {
            self.files().spares.pop()
        } else {
            None
        };
        match spare {
            Some(path) => self.disk.open_to_write(&path).inspect_err(|error| {
                if error.is_full() {
                    self.files().spares.push(path.clone());
                }
            }),
            None => {
                let path = self.next_spare_path();
                self.fill(&path, fresh.max(needed))
            }
        }
    }

    /// The bytes that a segment of ordinary size has.
    pub(crate) fn size(&self) -> u64 {
        self.sizes.spare
    }

    /// A segment is full, or was left by an earlier opening; its last record is `last`.
    pub(crate) fn seal(&self, path: PathBuf, last: Seq) {
        self.files().sealed.push(Sealed { path, last });
    }

    /// A new segment has this name now. One that had it before held no records, and is gone.
    pub(crate) fn renamed_over(&self, path: &Path) {
        self.files().sealed.retain(|sealed| sealed.path != path);
    }

    /// Recycles or removes the segments whose records are up to `checkpoint`, unless a hold keeps them. `CHECKPOINT` says
    /// durably that the tree holds these records.
    pub(crate) fn retire(&self, checkpoint: Seq) -> Result<(), DiskError> {
        let kept = self.files().sealed.len() as u64 * self.sizes.spare;
        if hold::keeps_journal(&self.disk, &self.paths, kept, self.sizes.watermark)? {
            return Ok(());
        }
        let retired: Vec<Sealed> = self
            .files()
            .sealed
            .extract_if(.., |sealed| sealed.last <= checkpoint)
            .collect();
        if retired.is_empty() {
            return Ok(());
        }
        let mut spares = Vec::new();
        for Sealed { path, .. } in retired {
            let spare = self.next_spare_path();
            self.disk.rename(&path, &spare)?;
            failpoint::reach("segment-recycled");
            spares.push(spare);
        }
        // Before anything else is written in its place its old name must be gone for good. A segment that comes back with
        // a power cut would be damage, with the header of another one or with what a file system that gives freed
        // blocks away at once (ext4 with `data=writeback`) has put there.
        self.disk.sync_folder(self.folder())?;
        for path in spares {
            let is_kept = self.files().spares.len() < self.sizes.keep
                && self
                    .sizes
                    .is_spare(&self.disk.open_to_read(&path)?.inspect()?);
            if is_kept {
                self.files().spares.push(path);
            } else {
                self.disk.remove_file(&path)?;
            }
        }
        failpoint::reach("segments-retired");
        Ok(())
    }

    /// Makes the missing spares. A full disk is left for the next time; `stop` is asked between two files.
    pub(crate) fn refill(&self, stop: impl Fn() -> bool) -> Result<(), DiskError> {
        while self.files().spares.len() < self.sizes.keep && !stop() {
            let path = self.next_spare_path();
            match self.fill(&path, self.sizes.spare) {
                Ok(_) => self.files().spares.push(path),
                Err(error) if error.is_full() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fill(&self, path: &Path, size: u64) -> Result<DiskFile, DiskError> {
        let unfinished = replace::temporary(path);
        let mut file = self.disk.create_file(&unfinished)?;
        let filled = file
            .allocate(size)
            .and_then(|()| file.sync_data())
            .inspect(|()| failpoint::reach("spare-filled"))
            .and_then(|()| file.rename(path))
            .inspect(|()| failpoint::reach("spare-made"));
        match filled {
            Ok(()) => Ok(file),
            Err(error) => {
                // Gives a full disk its room back. Failing here too adds nothing to the first error.
                let _ = self.disk.remove_file(&unfinished);
                Err(error)
            }
        }
    }

    fn next_spare_path(&self) -> PathBuf {
        let mut files = self.files();
        files.named += 1;
        self.folder().join(format!("{SPARE}{}", files.named))
    }

    /// Lists change by single pushes and pops, so a panic elsewhere leaves them usable.
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
