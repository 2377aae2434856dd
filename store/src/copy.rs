//! Copies folders file by file, from and to a state. The source may change meanwhile.

use std::path::{Path, PathBuf};

use crate::backup::{CopyError, Copying};
use crate::disk::{Disk, DiskError, Form, Kind};
use crate::limits::COPY_BYTES;
use crate::replace;
use crate::tree::absent;

pub(crate) struct Copier<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) copying: Copying<'a>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Copier<'_> {
    /// Copies the content of a folder, in order of names. Files that disappear meanwhile are left out.
    pub(crate) fn folder(
        &self,
        from: &Path,
        to: &Path,
        is_left_out: &dyn Fn(&Path) -> bool,
    ) -> Result<Size, CopyError> {
        let mut size = Size::default();
        // No recursion: users may have nested folders deeper than the stack allows.
        let mut waiting = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = waiting.pop() {
            self.disk.create_folder(&to)?;
            for (path, name, kind) in files(self.disk, &from)? {
                if is_left_out(&path) {
                    continue;
                }
                match kind {
                    Kind::Folder => waiting.push((path, to.join(name))),
                    Kind::File => {
                        if let Some(bytes) = self.file(&path, &to.join(name))? {
                            size.files += 1;
                            size.bytes += bytes;
                        }
                    }
                    Kind::Nothing | Kind::BelowFile => {}
                }
            }
        }
        Ok(size)
    }

    /// Copies the current content of a file over another one and returns its length; `None` when the file is gone.
    pub(crate) fn file(&self, from: &Path, to: &Path) -> Result<Option<u64>, CopyError> {
        let Some(source) = absent(self.disk.open_to_read(from))? else {
            return Ok(None);
        };
        // A folder may have replaced the file.
        let details = source.inspect()?;
        if details.form != Form::File {
            return Ok(None);
        }
        absent(self.disk.remove_file(to))?;
        let target = self.disk.create_file(to)?;
        let mut at = 0;
        while at < details.bytes {
            if (self.copying.is_stopped)() {
                return Err(CopyError::Stopped);
            }
            // At most `COPY_BYTES`, so it fits.
            let limit = (details.bytes - at).min(COPY_BYTES as u64) as usize;
            let piece = source.read_at(at, limit)?;
            if piece.is_empty() {
                break;
            }
            target.write_at(&piece, at)?;
            at += piece.len() as u64;
        }
        target.set_modified(details.modified);
        Ok(Some(at))
    }
}

pub(crate) fn measure(disk: &Disk, folder: &Path) -> Result<Size, DiskError> {
    let mut size = Size::default();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for (path, _, kind) in files(disk, &folder)? {
            if kind == Kind::Folder {
                waiting.push(path);
            } else {
                size.files += 1;
                size.bytes += disk.open_to_read(&path)?.len()?;
            }
        }
    }
    Ok(size)
}

/// The content of a folder without unfinished replacements, in descending order of names: callers push it on a stack.
fn files(disk: &Disk, folder: &Path) -> Result<Vec<(PathBuf, String, Kind)>, DiskError> {
    let listed = absent(disk.list(folder))?.unwrap_or_default().into_iter();
    let mut whole: Vec<_> = listed
        .filter(|(name, _)| !replace::is_temporary(name))
        .map(|(name, kind)| (folder.join(&name), name, kind))
        .collect();
    whole.sort_unstable_by(|(_, one, _), (_, other, _)| other.cmp(one));
    Ok(whole)
}
