//! Copying the folder of a store, file by file: out of it under a hold, and back. A copy that is whole has `FORMAT`,
//! which comes last, durably; without it nothing takes the folder for a store.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskError, Kind};
use crate::engine::OpenError;
use crate::failpoint;
use crate::hold::Hold;
use crate::layout::Layout;
use crate::limits::COPY_BYTES;
use crate::replace;
use crate::restored::mark_restored;
use crate::{Seq, control};

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub files: u64,
    pub bytes: u64,
    /// The last commit that the copy has for certain.
    pub sequence: Seq,
}

/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(OpenError),
    #[error("there is no state in {root}")]
    NoState { root: PathBuf },
    #[error("{path} is not empty; choose an empty or missing folder")]
    NotEmpty { path: PathBuf },
    #[error(
        "{path} lies in {root}: a copy of a folder into itself never ends; choose a folder beside it"
    )]
    Inside { path: PathBuf, root: PathBuf },
    #[error("{path} is no backup, or one that was not finished: it has no FORMAT")]
    NotABackup { path: PathBuf },
    #[error(
        "the hold was ended while the state was copied: it took over an hour, its journal grew too large, or the disk \
         is nearly full; the copy is not whole"
    )]
    HoldEnded,
    #[error("stopped; the copy is not whole")]
    Stopped,
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<OpenError> for CopyError {
    /// An opening may make a store where there is none; a copy cannot.
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotAState { root } => Self::NoState { root },
            error => Self::Open(error),
        }
    }
}

/// What a copy leaves out, and when it stops.
#[derive(Clone, Copy)]
pub struct Copying<'a> {
    /// Whether a folder, by its path below the root, is left out.
    pub leave_out: &'a dyn Fn(&Path) -> bool,
    /// Asked between two pieces.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Copies the store at `root` to the empty folder `to`, beside its writer if there is one.
pub fn back_up(root: &Path, to: &Path, copying: Copying<'_>) -> Result<Copied, CopyError> {
    let disk = Disk::new();
    if control::read_format(&disk, &Layout::new(root).format)?.is_none() {
        return Err(CopyError::NoState {
            root: root.to_owned(),
        });
    }
    refuse_inside(root, to)?;
    make_empty(&disk, to)?;
    let hold = Hold::take(root)?;
    let sequence = hold.last();
    let copied = copy_held(&disk, root, to, copying, &hold);
    let released = hold.release();
    let mut copied = copied?;
    released?;
    finish(&disk, root, to, &mut copied)?;
    Ok(Copied { sequence, ..copied })
}

fn copy_held(
    disk: &Disk,
    root: &Path,
    to: &Path,
    copying: Copying<'_>,
    hold: &Hold,
) -> Result<Copied, CopyError> {
    let mut copier = Copier::new(disk, copying);
    let (from, to) = (Layout::new(root), Layout::new(to));
    let is_later = |path: &Path| path == from.journal || path == from.format || path == from.lock;
    copier.folder(&from.root, &to.root, &|path| {
        is_later(path) || is_left_out(root, path, copying)
    })?;
    failpoint::reach("files-copied");
    // The journal last: it says how files that changed meanwhile belong together. The hold of somebody else may end
    // meanwhile, and then says what is not so.
    let is_of_no_use = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("spare-") || hold.is_another(name))
    };
    copier.folder(&from.journal, &to.journal, &is_of_no_use)?;
    failpoint::reach("journal-copied");
    if hold.lasts()? {
        Ok(copier.copied)
    } else {
        Err(CopyError::HoldEnded)
    }
}

/// Refuses to copy a folder to a place in itself, by whatever names both are given.
fn refuse_inside(from: &Path, to: &Path) -> Result<(), CopyError> {
    let real = |path: &Path| path.canonicalize().ok();
    let root = real(from);
    let absolute = std::path::absolute(to).unwrap_or_else(|_| to.to_owned());
    // What does not exist yet will be where the first folder above it is that does.
    let place = absolute.ancestors().find_map(real);
    match (root, place) {
        (Some(root), Some(place)) if place.starts_with(&root) => Err(CopyError::Inside {
            path: to.to_owned(),
            root: from.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Puts the copy of a store back into the empty folder `root`. Whoever opens it next is told.
pub fn restore(from: &Path, root: &Path, copying: Copying<'_>) -> Result<Copied, CopyError> {
    let disk = Disk::new();
    let source = Layout::new(from);
    if control::read_format(&disk, &source.format)?.is_none() {
        return Err(CopyError::NotABackup {
            path: from.to_owned(),
        });
    }
    refuse_inside(from, root)?;
    make_empty(&disk, root)?;
    let mut copier = Copier::new(&disk, copying);
    copier.folder(from, root, &|path| {
        path == source.format || path == source.lock || is_left_out(from, path, copying)
    })?;
    let mut copied = copier.copied;
    disk.create_folder(&Layout::new(root).journal)?;
    mark_restored(root)?;
    failpoint::reach("copy-marked");
    finish(&disk, from, root, &mut copied)?;
    Ok(copied)
}

fn is_left_out(root: &Path, path: &Path, copying: Copying<'_>) -> bool {
    path.strip_prefix(root)
        .is_ok_and(|below| (copying.leave_out)(below))
}

/// Makes the copy durable and then a store.
fn finish(disk: &Disk, from: &Path, to: &Path, copied: &mut Copied) -> Result<(), CopyError> {
    let (from, to) = (Layout::new(from), Layout::new(to));
    disk.open_to_read(&to.root)?.sync_file_system()?;
    failpoint::reach("copy-synced");
    let format = disk.read(&from.format, COPY_BYTES as u64)?;
    replace::replace_durably(disk, &to.format, &format)?;
    failpoint::reach("copy-finished");
    copied.files += 1;
    copied.bytes += format.len() as u64;
    Ok(())
}

/// The folder must hold nothing, or not exist yet.
fn make_empty(disk: &Disk, path: &Path) -> Result<(), CopyError> {
    disk.create_folders(path)?;
    // A file system of its own has a folder for lost files.
    if disk
        .list(path)?
        .iter()
        .all(|(name, _)| name == "lost+found")
    {
        Ok(())
    } else {
        Err(CopyError::NotEmpty {
            path: path.to_owned(),
        })
    }
}

struct Copier<'a> {
    disk: &'a Disk,
    copying: Copying<'a>,
    copied: Copied,
}

impl<'a> Copier<'a> {
    fn new(disk: &'a Disk, copying: Copying<'a>) -> Self {
        Self {
            disk,
            copying,
            copied: Copied::default(),
        }
    }

    /// Copies what a folder holds. What goes away meanwhile is left out: the journal knows what became of it.
    fn folder(
        &mut self,
        from: &Path,
        to: &Path,
        is_left_out: &dyn Fn(&Path) -> bool,
    ) -> Result<(), CopyError> {
        // Folders may be nested deeper than a stack: somebody may have put anything there.
        let mut waiting = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = waiting.pop() {
            self.disk.create_folder(&to)?;
            let listed = match self.disk.list(&from) {
                Err(error) if error.is_missing() => continue,
                result => result?,
            };
            for (name, kind) in listed {
                let (from, to) = (from.join(&name), to.join(&name));
                if is_left_out(&from) || replace::is_temporary(&name) {
                    continue;
                }
                match kind {
                    Kind::Folder => waiting.push((from, to)),
                    Kind::File => self.file(&from, &to)?,
                    Kind::Nothing | Kind::BelowFile => {}
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        let source = match self.disk.open_to_read(from) {
            Err(error) if error.is_missing() => return Ok(()),
            result => result?,
        };
        let target = self.disk.create_file(to)?;
        let mut at = 0;
        loop {
            if (self.copying.is_stopped)() {
                return Err(CopyError::Stopped);
            }
            let piece = source.read_at(at, COPY_BYTES)?;
            if piece.is_empty() {
                break;
            }
            target.write_at(&piece, at)?;
            at += piece.len() as u64;
        }
        self.copied.files += 1;
        self.copied.bytes += at;
        Ok(())
    }
}
