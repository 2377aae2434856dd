//! Files that cannot be read or trusted, kept below `quarantine/` at the same path for a person to examine. If the
//! path is taken, the new file gets a number at its end. Nothing in this module removes a file.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskError, DiskFile, Form, Kind};
use crate::failpoint;
use crate::limits::COPY_BYTES;
use crate::paths::Paths;
use crate::staged::Object;
use crate::tree::absent;

/// Links the file at `from` into the quarantine, so that the content survives when the original is removed or
/// replaced. Copies it if the file system has no links. If the file is missing, stores `content`. Durable when this
/// returns. A file that is already kept is not kept twice.
pub(crate) fn keep(
    disk: &Disk,
    paths: &Paths,
    from: &Path,
    content: &[u8],
) -> Result<PathBuf, DiskError> {
    let original = match absent(disk.open_to_read(from))? {
        Some(file) if file.inspect()?.form == Form::File => Some(file),
        Some(_) | None => None,
    };
    let first = prepared(disk, paths, from)?;
    let wanted = match &original {
        Some(original) => Object::read(original)?,
        None => Object::of(content),
    };
    let mut to = first.clone();
    let mut number = 1;
    loop {
        match disk.kind(&to)? {
            Kind::Nothing | Kind::BelowFile => {
                write(disk, from, original.as_ref(), content, &to)?;
                break;
            }
            Kind::File => {
                let kept = disk.open_to_read(&to)?;
                if Object::read(&kept)? == wanted {
                    // An earlier try may have stopped before its sync.
                    kept.sync_data()?;
                    break;
                }
            }
            Kind::Folder => {}
        }
        number += 1;
        to = numbered(&first, number);
    }
    failpoint::reach("file-kept");
    sync_folders(disk, paths, &to)?;
    Ok(to)
}

/// Moves the file or folder at `from` into the quarantine; `None` if there is none. Durable when this returns.
pub(crate) fn take(disk: &Disk, paths: &Paths, from: &Path) -> Result<Option<PathBuf>, DiskError> {
    let is_free = |path: &Path| {
        let kind = disk.kind(path)?;
        Ok(matches!(kind, Kind::Nothing | Kind::BelowFile))
    };
    if is_free(from)? {
        return Ok(None);
    }
    let first = prepared(disk, paths, from)?;
    let mut to = first.clone();
    let mut number = 1;
    while !is_free(&to)? {
        number += 1;
        to = numbered(&first, number);
    }
    disk.rename(from, &to)?;
    failpoint::reach("file-set-aside");
    sync_folders(disk, paths, &to)?;
    disk.sync_folder(from.parent().unwrap_or(from))?;
    Ok(Some(to))
}

/// True if the quarantine has a copy of the file `below`, or of a file inside that folder.
pub(crate) fn holds(disk: &Disk, paths: &Paths, below: &str) -> Result<bool, DiskError> {
    let path = paths.quarantine.join(below);
    match disk.kind(&path)? {
        Kind::File => Ok(true),
        Kind::Folder => Ok(!disk.list(&path)?.is_empty()),
        Kind::Nothing | Kind::BelowFile => Ok(false),
    }
}

/// The path in the quarantine for the file at `from`. Creates its folder durably; otherwise a power cut could lose
/// the file with the folder.
fn prepared(disk: &Disk, paths: &Paths, from: &Path) -> Result<PathBuf, DiskError> {
    let place = paths.quarantine.join(paths.below(from));
    if let Some(folder) = place.parent() {
        disk.create_folders(folder)?;
        sync_folders(disk, paths, folder)?;
        disk.sync_folder(&paths.root)?;
    }
    Ok(place)
}

fn numbered(first: &Path, number: u64) -> PathBuf {
    let mut name = first.as_os_str().to_owned();
    name.push(format!("-{number}"));
    name.into()
}

fn write(
    disk: &Disk,
    from: &Path,
    original: Option<&DiskFile>,
    content: &[u8],
    to: &Path,
) -> Result<(), DiskError> {
    let is_linked = original.is_some_and(|file| is_at(disk, from, file));
    if let Some(original) = original.filter(|_| is_linked) {
        original.sync_data()?;
        match disk.link(from, to) {
            Err(error) if error.is_unsupported() => {}
            result => return result,
        }
    }
    let file = disk.create_file(to)?;
    match original {
        Some(original) => {
            let mut at = 0;
            original.each_piece(COPY_BYTES, |piece| {
                file.write_at(piece, at)?;
                at += piece.len() as u64;
                Ok(())
            })?;
        }
        None => file.write_at(content, 0)?,
    }
    file.sync_data()
}

/// True if `path` itself is this file. A link to a symbolic link would not keep the content.
fn is_at(disk: &Disk, path: &Path, file: &DiskFile) -> bool {
    let details = (disk.identity(path), file.inspect());
    matches!(details, (Ok(at), Ok(of)) if at == of.identity)
}

/// Makes the name `path` durable, including the folders below `quarantine/`.
fn sync_folders(disk: &Disk, paths: &Paths, path: &Path) -> Result<(), DiskError> {
    let folders = path.ancestors().skip(1);
    folders
        .take_while(|folder| folder.starts_with(&paths.quarantine))
        .try_for_each(|folder| disk.sync_folder(folder))
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::*;
    use crate::disk::Action;

    #[test]
    fn each_content_is_kept_once_with_links_and_without() {
        for has_links in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let (root, paths) = (folder.path(), Paths::new(folder.path()));
            let disk = Disk::with_hook(move |action, _| match action {
                Action::Link if !has_links => Err(io::ErrorKind::Unsupported.into()),
                _ => Ok(()),
            });
            let path = root.join("tokens/a.json");
            fs::create_dir_all(root.join("tokens")).unwrap();
            assert!(!holds(&disk, &paths, "tokens").unwrap());
            let keep = |expected: &str| {
                let place = keep(&disk, &paths, &path, b"three").unwrap();
                assert_eq!(fs::read_to_string(&place).unwrap(), expected);
                paths.below(&place)
            };
            for _ in 0..2 {
                for (content, kept) in [("one", "a.json"), ("two", "a.json-2")] {
                    drop(fs::remove_file(&path));
                    fs::write(&path, content).unwrap();
                    assert_eq!(keep(content), format!("quarantine/tokens/{kept}"));
                }
                fs::remove_file(&path).unwrap();
                assert_eq!(keep("three"), "quarantine/tokens/a.json-3");
            }
            assert!(holds(&disk, &paths, "tokens").unwrap());
        }
    }
    #[test]
    fn the_content_behind_a_symbolic_link_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (root, disk) = (folder.path(), Disk::new());
        fs::create_dir(root.join("tokens")).unwrap();
        fs::write(root.join("elsewhere"), "content").unwrap();
        let path = root.join("tokens/a.json");
        std::os::unix::fs::symlink("../elsewhere", &path).unwrap();
        for _ in 0..2 {
            let kept = keep(&disk, &Paths::new(root), &path, b"").unwrap();
            assert_eq!(kept, root.join("quarantine/tokens/a.json"));
            assert_eq!(fs::read_to_string(kept).unwrap(), "content");
        }
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error_and_not_an_endless_loop() {
        let folder = tempfile::tempdir().unwrap();
        let (root, disk) = (folder.path(), Disk::new());
        fs::create_dir_all(root.join("quarantine")).unwrap();
        fs::write(root.join("quarantine/tokens"), "a file").unwrap();
        let kept = keep(&disk, &Paths::new(root), &root.join("tokens/a.json"), b"x");
        kept.unwrap_err();
    }
}
