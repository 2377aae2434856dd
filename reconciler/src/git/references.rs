//! References to the commits whose files jobs need. They protect these commits from removal, and list them when a
//! mirror is rebuilt.

use std::collections::BTreeSet;

use git2::Repository;

use super::CommitId;

const PREFIX: &str = "refs/everscan/commits/";

pub(super) fn name(commit: CommitId) -> String {
    format!("{PREFIX}{commit}")
}

pub(super) fn all(mirror: &Repository) -> Result<BTreeSet<CommitId>, git2::Error> {
    let mut kept = BTreeSet::new();
    for reference in mirror.references_glob(&format!("{PREFIX}*"))? {
        let reference = reference?;
        let name = reference.name().ok();
        let commit = name.and_then(|name| name.strip_prefix(PREFIX)?.parse::<CommitId>().ok());
        kept.extend(commit);
    }
    Ok(kept)
}

/// Gives each of these commits a reference, if the mirror has the commit, and removes all other references.
pub(super) fn keep(mirror: &Repository, commits: &BTreeSet<CommitId>) -> Result<(), git2::Error> {
    let kept = all(mirror)?;
    for commit in commits.difference(&kept) {
        if mirror.find_commit(commit.oid()).is_ok() {
            mirror.reference(&name(*commit), commit.oid(), true, "")?;
        }
    }
    for commit in kept.difference(commits) {
        mirror.find_reference(&name(*commit))?.delete()?;
    }
    Ok(())
}
