//! Files that nobody can read or trust, kept below `quarantine/` under their own paths, with a number behind it when that
//! is taken: a person may still make something of them. Nothing here removes one.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Action, Disk, DiskError, DiskFile, Kind};
use crate::failpoint;
use crate::key::Key;
use crate::limits::{COPY_BYTES, QUARANTINE_COPIES};
use crate::paths::Paths;
use crate::tree::Tree;

/// Copies the file at `key`, or else `content`, before something takes its place. Durable when this returns. A copy that
/// is there already is not made twice.
pub(crate) fn keep(
    tree: &Tree,
    paths: &Paths,
    key: &Key,
    content: &[u8],
) -> Result<PathBuf, DiskError> {
    let original = tree.open(key)?;
    let first = paths.quarantine.join(key.as_str());
    for path in places(&first) {
        let disk = &tree.disk;
        match disk.kind(&path)? {
            Kind::Nothing => {
                let file = tree.in_folder(&path, || disk.create_file(&path))?;
                match &original {
                    Some(original) => copy(original, &file)?,
                    None => file.write_at(content, 0)?,
                }
                file.sync_data()?;
                failpoint::reach("damage-copied");
                sync_folders(disk, paths, &path)?;
                failpoint::reach("damage-kept");
                return Ok(path);
            }
            Kind::File if is_copy(disk, &path, original.as_ref(), content)? => {
                // An earlier try may have ended before its sync.
                disk.open_to_read(&path)?.sync_data()?;
                sync_folders(disk, paths, &path)?;
                return Ok(path);
            }
            Kind::File | Kind::Folder | Kind::BelowFile => {}
        }
    }
    Err(no_place(&first))
}

/// Moves what stands at `from` here, whatever it is; none when nothing does. Durable when this returns.
pub(crate) fn take(disk: &Disk, paths: &Paths, from: &Path) -> Result<Option<PathBuf>, DiskError> {
    let is_free = |path: &Path| {
        let kind = disk.kind(path)?;
        Ok(matches!(kind, Kind::Nothing | Kind::BelowFile))
    };
    if is_free(from)? {
        return Ok(None);
    }
    let first = prepared(disk, paths, from)?;
    for to in places(&first) {
        if is_free(&to)? {
            disk.rename(from, &to)?;
            failpoint::reach("file-set-aside");
            sync_folders(disk, paths, &to)?;
            disk.sync_folder(from.parent().unwrap_or(from))?;
            return Ok(Some(to));
        }
    }
    Err(no_place(&first))
}

/// Gives the file at `from` a second name here, so that it stays whoever removes the first, or makes a copy where files have
/// one name only. Durable when this returns. What is here of an earlier try is enough. None when there is no such file.
pub(crate) fn name(disk: &Disk, paths: &Paths, from: &Path) -> Result<Option<PathBuf>, DiskError> {
    let original = match disk.open_to_read(from) {
        Err(error) if error.is_missing() => return Ok(None),
        result => result?,
    };
    let first = prepared(disk, paths, from)?;
    for to in places(&first) {
        match disk.kind(&to)? {
            Kind::Nothing => match disk.link(from, &to) {
                Err(error) if error.is_missing() => return Ok(None),
                Err(error) if error.is_unsupported() => {
                    let file = disk.create_file(&to)?;
                    copy(&original, &file)?;
                    file.sync_data()?;
                }
                result => result?,
            },
            Kind::File if is_copy(disk, &to, Some(&original), &[])? => {
                disk.open_to_read(&to)?.sync_data()?;
            }
            Kind::File | Kind::Folder | Kind::BelowFile => continue,
        }
        failpoint::reach("file-named-aside");
        sync_folders(disk, paths, &to)?;
        return Ok(Some(to));
    }
    Err(no_place(&first))
}

/// Where the file at `from` belongs here. The folder is there, durably: else a file could be lost with it.
fn prepared(disk: &Disk, paths: &Paths, from: &Path) -> Result<PathBuf, DiskError> {
    let place = paths.quarantine.join(paths.below(from));
    if let Some(folder) = place.parent() {
        disk.create_folders(folder)?;
        sync_folders(disk, paths, folder)?;
        disk.sync_folder(&paths.root)?;
    }
    Ok(place)
}

fn no_place(first: &Path) -> DiskError {
    DiskError::new(
        Action::CreateFile,
        first,
        io::ErrorKind::AlreadyExists.into(),
    )
}

/// Whether a copy of some file inside `folder` is kept.
pub(crate) fn holds(disk: &Disk, paths: &Paths, folder: &str) -> Result<bool, DiskError> {
    match disk.list(&paths.quarantine.join(folder)) {
        Ok(entries) => Ok(!entries.is_empty()),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

/// A path, and the same with a number behind it from the second on.
fn places(first: &Path) -> impl Iterator<Item = PathBuf> {
    let numbered = (2..=QUARANTINE_COPIES).map(|number| {
        let mut name = first.as_os_str().to_owned();
        name.push(format!("-{number}"));
        name.into()
    });
    std::iter::once(first.to_owned()).chain(numbered)
}

fn copy(from: &DiskFile, to: &DiskFile) -> Result<(), DiskError> {
    let mut at = 0;
    loop {
        let piece = from.read_at(at, COPY_BYTES)?;
        if piece.is_empty() {
            return Ok(());
        }
        to.write_at(&piece, at)?;
        at += piece.len() as u64;
    }
}

fn is_copy(
    disk: &Disk,
    path: &Path,
    original: Option<&DiskFile>,
    content: &[u8],
) -> Result<bool, DiskError> {
    let kept = disk.open_to_read(path)?;
    let Some(original) = original else {
        return Ok(kept.len()? == content.len() as u64 && kept.read_to_end(0)? == content);
    };
    let length = original.len()?;
    if kept.len()? != length {
        return Ok(false);
    }
    let mut at = 0;
    while at < length {
        let piece = original.read_at(at, COPY_BYTES)?;
        if piece.is_empty() || kept.read_at(at, COPY_BYTES)? != piece {
            return Ok(false);
        }
        at += piece.len() as u64;
    }
    Ok(true)
}

/// Makes the name `path` durable, with the folders up to `quarantine/`, which is older.
fn sync_folders(disk: &Disk, paths: &Paths, path: &Path) -> Result<(), DiskError> {
    let folders = path.ancestors().skip(1);
    folders
        .take_while(|folder| folder.starts_with(&paths.quarantine))
        .try_for_each(|folder| disk.sync_folder(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_content_is_kept_once_and_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("quarantine")).unwrap();
        fs::create_dir_all(root.join("tokens")).unwrap();
        let (tree, paths) = (Tree::new(Disk::new(), root.to_owned()), Paths::new(root));
        let key = Key::new("tokens/a.json").unwrap();
        assert!(!holds(&tree.disk, &paths, "tokens").unwrap());
        let keep = |content: &str| {
            let path = keep(&tree, &paths, &key, content.as_bytes()).unwrap();
            let kept = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root).unwrap().to_owned(), kept)
        };
        let kept = |path: &str, content: &str| (PathBuf::from(path), content.to_owned());
        for _ in 0..2 {
            fs::write(root.join("tokens/a.json"), "one").unwrap();
            assert_eq!(keep(""), kept("quarantine/tokens/a.json", "one"));
            fs::write(root.join("tokens/a.json"), "two").unwrap();
            assert_eq!(keep(""), kept("quarantine/tokens/a.json-2", "two"));
        }
        fs::remove_file(root.join("tokens/a.json")).unwrap();
        for _ in 0..2 {
            assert_eq!(keep("three"), kept("quarantine/tokens/a.json-3", "three"));
        }
        assert!(holds(&tree.disk, &paths, "tokens").unwrap());
    }

    #[test]
    fn a_file_is_named_here_once_or_copied_where_files_have_one_name_only() {
        for has_links in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let (root, paths) = (folder.path(), Paths::new(folder.path()));
            let disk = Disk::with_hook(move |action, _| match action {
                Action::Link if !has_links => Err(io::ErrorKind::Unsupported.into()),
                _ => Ok(()),
            });
            fs::create_dir_all(root.join("journal")).unwrap();
            let path = root.join("journal/1.jnl");
            assert_eq!(name(&disk, &paths, &path).unwrap(), None);
            for (content, kept) in [("one", "1.jnl"), ("two", "1.jnl-2")] {
                drop(fs::remove_file(&path));
                fs::write(&path, content).unwrap();
                let place = root.join("quarantine/journal").join(kept);
                for _ in 0..2 {
                    let named = name(&disk, &paths, &path).unwrap();
                    assert_eq!(named.as_ref(), Some(&place), "{has_links}");
                    assert_eq!(fs::read_to_string(&place).unwrap(), content);
                }
            }
        }
    }
}
