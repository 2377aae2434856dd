//! Copies what a commit needs from a local repository into the mirror, as one pack.
//!
//! If the mirror has an object, it has everything that the object refers to, because objects arrive in complete packs. So the
//! walk ends at each known object, and the cost of a push depends only on its changes. Huge blobs are left out and listed.

#![expect(
    clippy::disallowed_methods,
    reason = "Git's own files in the mirror are no records of the state"
)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use git2::{ErrorCode, ObjectType, Odb, OdbLookupFlags, Oid, Repository};

use super::error::MirrorFault;
use super::limits::FetchLimits;
use super::{left_out, limits};

#[derive(Debug)]
pub(super) enum CopyError {
    Source(git2::Error),
    Mirror(MirrorFault),
    TooLarge,
    TimedOut,
}

/// Copies `tip` and all its history that the mirror does not have.
pub(super) fn copy(
    source: &Repository,
    mirror: &Repository,
    tip: Oid,
    fetch_limits: &FetchLimits,
) -> Result<(), CopyError> {
    let started = Instant::now();
    let mirror_objects = mirror.odb().map_err(on_mirror)?;
    let mut missing = Missing {
        source,
        source_objects: source.odb().map_err(CopyError::Source)?,
        mirror: &mirror_objects,
        known: left_out::read(mirror.path())
            .map_err(|error| CopyError::Mirror(error.into()))?
            .into_keys()
            .collect(),
        objects: Vec::new(),
        left_out: BTreeMap::new(),
    };
    missing.collect(tip, &mut || started.elapsed() < fetch_limits.transfer)?;
    let Missing {
        objects, left_out, ..
    } = missing;

    left_out::add(mirror.path(), left_out).map_err(|error| CopyError::Mirror(error.into()))?;
    follow_shallow_boundary(source, mirror.path())
        .map_err(|error| CopyError::Mirror(error.into()))?;
    write_pack(source, &mirror_objects, &objects, fetch_limits, started)
}

struct Missing<'a> {
    source: &'a Repository,
    source_objects: Odb<'a>,
    mirror: &'a Odb<'a>,
    /// Objects that this walk has visited, or that an earlier walk has left out.
    known: HashSet<Oid>,
    objects: Vec<Oid>,
    left_out: BTreeMap<Oid, usize>,
}

impl Missing<'_> {
    fn collect(&mut self, tip: Oid, in_time: &mut dyn FnMut() -> bool) -> Result<(), CopyError> {
        let mut commits = vec![tip];
        let mut trees = Vec::new();
        let mut visited = 0_usize;
        while let Some(commit) = commits.pop() {
            if !self.is_news(commit) {
                continue;
            }
            self.check_structure(commit)?;
            let found = self.source.find_commit(commit).map_err(CopyError::Source)?;
            self.objects.push(commit);
            commits.extend(found.parent_ids());
            trees.push(found.tree_id());
            while let Some(tree) = trees.pop() {
                visited += 1;
                if visited.is_multiple_of(limits::OBJECTS_PER_DEADLINE_CHECK) && !in_time() {
                    return Err(CopyError::TimedOut);
                }
                self.enter(tree, &mut trees)?;
            }
        }
        Ok(())
    }

    /// Adds a tree and its blobs. Its folders are visited later.
    fn enter(&mut self, tree: Oid, folders: &mut Vec<Oid>) -> Result<(), CopyError> {
        if !self.is_news(tree) {
            return Ok(());
        }
        self.check_structure(tree)?;
        self.objects.push(tree);
        let found = self.source.find_tree(tree).map_err(CopyError::Source)?;
        for entry in &found {
            match entry.kind() {
                Some(ObjectType::Tree) => folders.push(entry.id()),
                Some(ObjectType::Blob) => self.take_blob(entry.id())?,
                // The commit of a submodule is in another repository.
                Some(ObjectType::Commit | ObjectType::Tag | ObjectType::Any) | None => {}
            }
        }
        Ok(())
    }

    fn take_blob(&mut self, blob: Oid) -> Result<(), CopyError> {
        if self.is_news(blob) {
            let (size, _) = self
                .source_objects
                .read_header(blob)
                .map_err(CopyError::Source)?;
            if size > limits::COPIED_BLOB_BYTES {
                self.left_out.insert(blob, size);
            } else {
                self.objects.push(blob);
            }
        }
        Ok(())
    }

    fn is_news(&mut self, object: Oid) -> bool {
        // Nobody else writes to the mirror, so the folder of packs need not be listed again.
        self.known.insert(object) && !self.mirror.exists_ext(object, OdbLookupFlags::NO_REFRESH)
    }

    /// Commits and trees are loaded whole, so huge ones are refused first.
    fn check_structure(&self, object: Oid) -> Result<(), CopyError> {
        let (size, _) = self
            .source_objects
            .read_header(object)
            .map_err(CopyError::Source)?;
        if size > limits::STRUCTURE_BYTES {
            return Err(CopyError::Source(git2::Error::from_str(&format!(
                "object {object} is larger than any commit or folder"
            ))));
        }
        Ok(())
    }
}

fn write_pack(
    source: &Repository,
    mirror: &Odb<'_>,
    objects: &[Oid],
    fetch_limits: &FetchLimits,
    started: Instant,
) -> Result<(), CopyError> {
    if objects.is_empty() {
        return Ok(());
    }
    let mut builder = source.packbuilder().map_err(CopyError::Source)?;
    if objects.len() <= limits::SINGLE_THREADED_OBJECTS {
        builder.set_threads(1);
    } else {
        builder.set_threads(0);
    }
    for object in objects {
        builder
            .insert_object(*object, None)
            .map_err(CopyError::Source)?;
    }
    builder
        .set_progress_callback(|_, _, _| started.elapsed() < fetch_limits.transfer)
        .map_err(CopyError::Source)?;

    let mut writer = mirror.packwriter().map_err(on_mirror)?;
    let mut written = 0_u64;
    let mut stopped_by = None;
    let outcome = builder.foreach(|piece| {
        written += piece.len() as u64;
        stopped_by = if written > fetch_limits.bytes {
            Some(CopyError::TooLarge)
        } else if started.elapsed() >= fetch_limits.transfer {
            Some(CopyError::TimedOut)
        } else {
            writer
                .write_all(piece)
                .err()
                .map(|error| CopyError::Mirror(error.into()))
        };
        stopped_by.is_none()
    });
    match (stopped_by, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(error)) if error.code() == ErrorCode::User => Err(CopyError::TimedOut),
        (None, Err(error)) => Err(CopyError::Source(error)),
        (None, Ok(())) => writer.commit().map(|_| ()).map_err(on_mirror),
    }
}

/// A shallow repository lists the commits whose parents it lacks. The mirror lacks these parents too. It does not get
/// them when the source fetches them later, so its list only grows.
fn follow_shallow_boundary(source: &Repository, mirror: &Path) -> io::Result<()> {
    const FILE: &str = "shallow";
    if !source.is_shallow() {
        return Ok(());
    }
    let theirs = fs::read_to_string(source.commondir().join(FILE))?;
    let ours = match fs::read_to_string(mirror.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let known: BTreeSet<&str> = ours.lines().collect();
    let all: BTreeSet<&str> = known.iter().copied().chain(theirs.lines()).collect();
    if all == known {
        return Ok(());
    }
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    let beside = mirror.join(format!("{FILE}.new"));
    fs::write(&beside, text)?;
    fs::rename(beside, mirror.join(FILE))
}

fn on_mirror(error: git2::Error) -> CopyError {
    CopyError::Mirror(error.into())
}
