//! The files of the journal except the current segment: full segments that wait for a checkpoint, and spares. A spare
//! is allocated, filled with zeros and synced in advance, so that the journal can grow while the disk is full. Writer
//! and applier share this module; neither waits for disk operations of the other.

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
    pub(crate) spare: u64,
    pub(crate) keep: usize,
    /// Free space below which a hold is ended.
    pub(crate) watermark: Watermark,
}

impl Sizes {
    /// True if the file can become a segment. A file with a second name in the quarantine must keep its content.
    fn is_spare(&self, file: &Details) -> bool {
        file.bytes >= self.spare && file.links == 1
    }
}

#[derive(Default)]
struct Files {
    spares: Vec<PathBuf>,
    sealed: Vec<Sealed>,
    /// Counter for names of spares.
    named: u64,
}

/// A segment that gets no more records.
struct Sealed {
    path: PathBuf,
    last: Seq,
}

impl Segments {
    /// Finds spares in the folder of the journal. Removes those that are too small or too many.
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

    /// A file of at least `needed` bytes for a new segment: a spare, or a new file of `fresh` bytes or more.
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

    /// The size of an ordinary segment.
    pub(crate) fn size(&self) -> u64 {
        self.sizes.spare
    }

    /// Adds a full segment, or one left by an earlier opening. Its last record is `last`.
    pub(crate) fn seal(&self, path: PathBuf, last: Seq) {
        self.files().sealed.push(Sealed { path, last });
    }

    /// A new segment has replaced the file at `path`, which held no records.
    pub(crate) fn renamed_over(&self, path: &Path) {
        self.files().sealed.retain(|sealed| sealed.path != path);
    }

    /// Recycles or removes the segments with records up to `checkpoint`, unless a hold keeps them. Requires a durable
    /// `CHECKPOINT` for these records.
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
        // The old name must be gone for good before the space is used again. Otherwise a power cut could bring the
        // segment back with other content, and a start would report damage. (ext4 with `data=writeback` reuses freed
        // blocks at once.)
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

    /// Creates missing spares. On a full disk it stops until the next call; `stop` is checked between two files.
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
                // Gives the disk its space back. A failure here adds nothing to the first error.
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

    /// Lists change by single pushes and pops, so they are valid even after a panic elsewhere.
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
