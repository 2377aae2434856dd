//! How a new tip relates to the previous one: the same, a descendant, or a rewritten history.
//!
//! The walk gets the parents of each commit from the repository, so that it ends where a shallow history ends.

use std::collections::{BinaryHeap, HashMap};

use git2::{Oid, Repository};

use super::{CommitId, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relation {
    Same,
    /// The new tip contains the old one.
    Descendant {
        /// The commits in between: in the new tip, not in the old one, and not the new tip itself. Newest first.
        skipped: Vec<CommitId>,
        /// There are more than are listed.
        more: bool,
    },
    /// The new tip does not contain the old one, or the old one is no longer known.
    Rewritten,
}

/// Reachable from the new tip, from the old tip, or from both.
type Colour = u8;
const NEW: Colour = 1;
const OLD: Colour = 2;

/// Paints the ancestors of both tips, newest first, until only ancestors of the old one are left.
///
/// A commit on a path from `new` to `old` is never an ancestor of `old`, so such a path is walked
/// to its end whatever the clocks of the committers say.
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
    /// How many in the queue were not known to belong to the old tip.
    undecided: usize,
    /// Each commit taken from the queue as new only, newest first.
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
