//! The folders of a repository that show changes of references, and the meaning of events in them.
//!
//! This module knows the layout of Git's folders. `crate::watch` watches them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use git2::Repository;
use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind};
use notify::{Event, EventKind, RecursiveMode};

use super::local::common_folder;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scene {
    Repository {
        path: PathBuf,
        git_dir: PathBuf,
        /// The folder that contains the references. It differs from `git_dir` for a linked work tree.
        common_dir: PathBuf,
        refs: PathBuf,
    },
    Waiting {
        path: PathBuf,
        /// The folders in which its creation would first be visible.
        folders: Vec<PathBuf>,
    },
}

/// The meaning of an event for the references, in increasing importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Nothing,
    /// A reference may have moved.
    Changed,
    /// The folders changed, or events were lost. The watch must be set up again.
    Rearm,
}

/// The entries that show that a folder is a repository.
const MAKINGS: [&str; 5] = [".git", "HEAD", "config", "objects", "refs"];

impl Scene {
    pub(crate) fn at(path: &Path) -> Scene {
        if let Ok(repository) = Repository::open(path) {
            return Scene::Repository {
                path: path.to_owned(),
                git_dir: repository.path().to_owned(),
                common_dir: repository.commondir().to_owned(),
                refs: repository.commondir().join("refs"),
            };
        }
        // libgit2 does not open a repository with reftable.
        let common_dir = common_folder(path);
        let refs = common_dir.join("reftable");
        if refs.join("tables.list").is_file() {
            return Scene::Repository {
                path: path.to_owned(),
                git_dir: common_dir.clone(),
                common_dir,
                refs,
            };
        }
        let nearest = path.ancestors().find(|folder| folder.is_dir());
        let half_made = path.join(".git");
        let folders = nearest
            .map(Path::to_owned)
            .into_iter()
            .chain(half_made.is_dir().then_some(half_made))
            .collect();
        Scene::Waiting {
            path: path.to_owned(),
            folders,
        }
    }

    /// The folders above the repository. They show when another repository replaces it at its path, while its own
    /// folders still exist elsewhere. Some of them cannot be watched, so the watch must work without them.
    pub(crate) fn above(&self) -> impl Iterator<Item = &Path> {
        let path = match self {
            Scene::Waiting { .. } => None,
            Scene::Repository { path, .. } => Some(path),
        };
        path.into_iter().flat_map(|path| path.ancestors().skip(1))
    }

    /// The folders to watch. The folder of objects is left out, because objects are written before the reference to them.
    pub(crate) fn folders(&self) -> Vec<(PathBuf, RecursiveMode)> {
        match self {
            Scene::Waiting { folders, .. } => folders
                .iter()
                .map(|folder| (folder.clone(), RecursiveMode::NonRecursive))
                .collect(),
            Scene::Repository {
                git_dir,
                common_dir,
                refs,
                path: _,
            } => {
                let mut folders = vec![
                    (common_dir.clone(), RecursiveMode::NonRecursive),
                    (refs.clone(), RecursiveMode::Recursive),
                ];
                if git_dir != common_dir {
                    folders.push((git_dir.clone(), RecursiveMode::NonRecursive));
                }
                folders
            }
        }
    }

    /// The meaning of an event in these folders for the references.
    pub(crate) fn judge(&self, event: &Event) -> Verdict {
        if event.need_rescan() {
            return Verdict::Rearm;
        }
        if is_noise(event.kind) {
            return Verdict::Nothing;
        }
        event
            .paths
            .iter()
            .map(|path| match self {
                Scene::Waiting { path: target, .. } => judge_waiting(target, path),
                Scene::Repository {
                    path: target,
                    git_dir,
                    common_dir,
                    refs,
                } => {
                    let is_watched = path == git_dir || path == common_dir || path == refs;
                    if is_watched || target.starts_with(path) {
                        judge_folder(event.kind)
                    } else {
                        judge_inside(git_dir, common_dir, refs, event.kind, path)
                    }
                }
            })
            .max()
            .unwrap_or(Verdict::Nothing)
    }
}

/// Reads, times and modes do not matter. The end of a write does, because a reference may be overwritten in place.
fn is_noise(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => true,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    }
}

/// Judges the creation, removal or move of a watched folder or of a folder above the repository.
fn judge_folder(kind: EventKind) -> Verdict {
    match kind {
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
            Verdict::Rearm
        }
        EventKind::Any | EventKind::Access(_) | EventKind::Modify(_) | EventKind::Other => {
            Verdict::Nothing
        }
    }
}

fn judge_inside(
    git_dir: &Path,
    common_dir: &Path,
    refs: &Path,
    kind: EventKind,
    path: &Path,
) -> Verdict {
    let is_reference = path.starts_with(refs)
        || path == common_dir.join("packed-refs")
        || path == git_dir.join("HEAD");
    if !is_reference || path.extension() == Some(OsStr::new("lock")) {
        Verdict::Nothing
    } else if kind == EventKind::Create(CreateKind::Folder) {
        // The new folder may have entries from before the watch.
        Verdict::Rearm
    } else {
        Verdict::Changed
    }
}

/// An event matters if it may be a part of creating the repository: a folder on its path, or one of its own entries.
fn judge_waiting(target: &Path, path: &Path) -> Verdict {
    let first_inside = path
        .strip_prefix(target)
        .ok()
        .and_then(|inside| inside.components().next());
    let makes_it =
        first_inside.is_some_and(|first| MAKINGS.iter().any(|name| first.as_os_str() == *name));
    if makes_it || target.starts_with(path) {
        Verdict::Rearm
    } else {
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{Flag, RemoveKind, RenameMode};

    use super::*;

    fn repository() -> Scene {
        Scene::Repository {
            path: "/srv/w".into(),
            git_dir: "/r/.git/worktrees/w".into(),
            common_dir: "/r/.git".into(),
            refs: "/r/.git/refs".into(),
        }
    }

    fn judged(scene: &Scene, kind: EventKind, paths: &[&str]) -> Verdict {
        let event = paths
            .iter()
            .fold(Event::new(kind), |event, path| event.add_path(path.into()));
        scene.judge(&event)
    }

    #[test]
    fn noise_is_ignored() {
        let created = EventKind::Create(CreateKind::File);
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        for (kind, path) in [
            (created, "/r/.git/refs/heads/main.lock"),
            (created, "/r/.git/packed-refs.lock"),
            (created, "/r/.git/index"),
            (renamed, "/r/.git/index"),
            (renamed, "/r/.git/FETCH_HEAD"),
            (renamed, "/r/.git/HEAD"),
            (renamed, "/srv/other"),
            (created, "/srv/w/file"),
            (EventKind::Create(CreateKind::Folder), "/r/.git/objects"),
            (
                EventKind::Access(AccessKind::Open(AccessMode::Any)),
                "/r/.git/refs/heads",
            ),
            (
                EventKind::Access(AccessKind::Close(AccessMode::Read)),
                "/r/.git/packed-refs",
            ),
        ] {
            assert_eq!(
                judged(&repository(), kind, &[path]),
                Verdict::Nothing,
                "{path}"
            );
        }
    }

    #[test]
    fn moves_of_references_and_folders_are_reported() {
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let both = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        for (kind, paths, verdict) in [
            (renamed, vec!["/r/.git/refs/heads/main"], Verdict::Changed),
            (
                both,
                vec!["/r/.git/refs/heads/x.lock", "/r/.git/refs/heads/x"],
                Verdict::Changed,
            ),
            (renamed, vec!["/r/.git/packed-refs"], Verdict::Changed),
            (renamed, vec!["/r/.git/worktrees/w/HEAD"], Verdict::Changed),
            (
                EventKind::Remove(RemoveKind::File),
                vec!["/r/.git/refs/tags/v1"],
                Verdict::Changed,
            ),
            (
                EventKind::Create(CreateKind::Folder),
                vec!["/r/.git/refs/heads/a"],
                Verdict::Rearm,
            ),
            (
                EventKind::Remove(RemoveKind::Folder),
                vec!["/r/.git"],
                Verdict::Rearm,
            ),
            (
                EventKind::Modify(ModifyKind::Name(RenameMode::From)),
                vec!["/r/.git"],
                Verdict::Rearm,
            ),
            (renamed, vec!["/srv/w"], Verdict::Rearm),
            (
                EventKind::Remove(RemoveKind::Folder),
                vec!["/srv"],
                Verdict::Rearm,
            ),
        ] {
            assert_eq!(judged(&repository(), kind, &paths), verdict, "{paths:?}");
        }
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(repository().judge(&overflow), Verdict::Rearm);
    }

    #[test]
    fn while_waiting_only_steps_towards_the_repository_matter() {
        let waiting = Scene::Waiting {
            path: "/srv/flows".into(),
            folders: vec!["/srv".into()],
        };
        let created = EventKind::Create(CreateKind::Any);
        for (path, verdict) in [
            ("/srv/flows", Verdict::Rearm),
            ("/srv/flows/.git", Verdict::Rearm),
            ("/srv/flows/.git/HEAD", Verdict::Rearm),
            ("/srv/flows/HEAD", Verdict::Rearm),
            ("/srv/flows/readme", Verdict::Nothing),
            ("/srv/flows.tmp", Verdict::Nothing),
            ("/srv/other", Verdict::Nothing),
        ] {
            assert_eq!(judged(&waiting, created, &[path]), verdict, "{path}");
        }
    }
}
