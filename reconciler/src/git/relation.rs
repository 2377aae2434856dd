//! How a new tip relates to the previous one: the same, a descendant, or a rewritten history.
//!
//! The walk reads the parents of each commit through the repository, so that it ends where a shallow history ends.

use std::collections::{BinaryHeap, HashMap};

use git2::{Oid, Repository};

use super::{CommitId, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relation {
    Same,
    /// The new tip contains the old tip.
    Descendant {
        /// The commits between the tips: in the history of the new tip but not of the old tip, without the new tip.
        /// Newest first.
        skipped: Vec<CommitId>,
        /// True if there are more commits than listed.
        more: bool,
    },
    /// The new tip does not contain the old tip, or the old tip is missing.
    Rewritten,
}

/// The tips from which a commit is reachable: new, old, or both.
type Colour = u8;
const NEW: Colour = 1;
const OLD: Colour = 2;

/// Marks the ancestors of both tips, newest first, until only ancestors of the old tip are left.
///
/// A commit on a path from `new` to `old` is never an ancestor of `old`. So such a path is walked to its end, even if
/// the clocks of the committers differ.
pub(super) fn between(
    mirror: &Repository,
    old: CommitId,
    new: CommitId,
) -> Result<Relation, git2::Error> {
    if old == new {
        return Ok(Relation::Same);
    }
    if !mirror.odb()?.exists(old.oid()) {
        return Ok(Relation::Rewritten);
    }
    let mut walk = Walk {
        mirror,
        colours: HashMap::new(),
        queue: BinaryHeap::new(),
        undecided: 0,
        visited: Vec::new(),
    };
    walk.paint(new.oid(), NEW)?;
    walk.paint(old.oid(), OLD)?;
    while walk.undecided > 0 {
        walk.advance()?;
    }
    if walk.colours.get(&old.oid()) != Some(&(NEW | OLD)) {
        return Ok(Relation::Rewritten);
    }
    let mut skipped: Vec<CommitId> = walk
        .visited
        .iter()
        .filter(|commit| walk.colours.get(commit) == Some(&NEW) && **commit != new.oid())
        .take(limits::SKIPPED_COMMITS + 1)
        .map(|commit| (*commit).into())
        .collect();
    let more = skipped.len() > limits::SKIPPED_COMMITS;
    skipped.truncate(limits::SKIPPED_COMMITS);
    Ok(Relation::Descendant { skipped, more })
}

struct Walk<'mirror> {
    mirror: &'mirror Repository,
    colours: HashMap<Oid, Colour>,
    /// Commits whose parents are not marked yet, with their time and mark.
    queue: BinaryHeap<(i64, Oid, Colour)>,
    /// The number of commits in the queue that were not known to belong to the old tip.
    undecided: usize,
    /// Each commit that was taken from the queue as an ancestor of the new tip only, newest first.
    visited: Vec<Oid>,
}

impl Walk<'_> {
    fn paint(&mut self, commit: Oid, colour: Colour) -> Result<(), git2::Error> {
        let known = self.colours.get(&commit).copied().unwrap_or_default();
        let merged = known | colour;
        if merged != known {
            let time = self.mirror.find_commit(commit)?.time().seconds();
            self.colours.insert(commit, merged);
            self.queue.push((time, commit, merged));
            self.undecided += usize::from(merged == NEW);
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(), git2::Error> {
        let Some((_, commit, queued_as)) = self.queue.pop() else {
            return Ok(());
        };
        if queued_as == NEW {
            self.undecided -= 1;
            self.visited.push(commit);
        }
        let colour = self.colours.get(&commit).copied().unwrap_or(queued_as);
        for parent in self.mirror.find_commit(commit)?.parent_ids() {
            self.paint(parent, colour)?;
        }
        Ok(())
    }
}
