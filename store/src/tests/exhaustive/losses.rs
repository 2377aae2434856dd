//! Accepts losses while the power fails. Afterwards the store opens with the readable changes, or is refused until
//! the loss is accepted again. No file in the quarantine is lost.

use std::collections::BTreeSet;
use std::path::Path;

use super::checker::{each_cut, files, on, simulated};
use super::workload::{Beginning, Files, Life, ROOT, Schedule, Step, options};
use crate::Seq;
use crate::mend::{Loss, Mending};
use crate::paths::Paths;
use crate::recovery::recover;
use crate::replace::is_temporary;
use crate::tests::simulated::model::{Inode, Model, Node, Tree};
use crate::tests::simulated::power_cut::Thoroughness;
use crate::tests::simulated::{Event, Simulated};
use crate::tests::world::{live_of, owned};

const OUTCOMES: Thoroughness = Thoroughness {
    every_selection_of: 4,
    singles: true,
    samples: 2,
};

/// What happened to the journal.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A changed byte in a segment, at this many thousandths of its written part.
    Changed(usize),
    /// The newest segment is missing.
    Missing,
}

impl Damage {
    const ALL: [Self; 5] = [
        Self::Missing,
        Self::Changed(200),
        Self::Changed(500),
        Self::Changed(700),
        Self::Changed(950),
    ];

    /// `None` if there is nothing to damage.
    fn done_to(self, tree: &Tree) -> Option<Tree> {
        let mut damaged = tree.clone();
        let journal = tree.find(&Paths::new(Path::new(ROOT)).journal).unwrap();
        let names = tree.folder(journal).unwrap();
        let mut segments = names.iter().filter(|(name, _)| name.ends_with(".jnl"));
        match self {
            Self::Missing => {
                let (name, _) = segments.next_back()?;
                let Some(Node::Folder(names)) = damaged.nodes.get_mut(&journal) else {
                    unreachable!("it is a folder");
                };
                std::sync::Arc::make_mut(names).remove(name);
            }
            Self::Changed(share) => {
                let (_, segment) = segments.next()?;
                let Some(Node::File(content)) = damaged.nodes.get_mut(segment) else {
                    unreachable!("it is a file");
                };
                let content = std::sync::Arc::make_mut(content);
                let written = content.iter().rposition(|byte| *byte != 0)?;
                content[written * share / 1000] ^= 4;
            }
        }
        Some(damaged)
    }
}

/// The content of a store after a loss was accepted.
#[derive(Debug)]
struct Kept {
    files: Files,
    last: Seq,
}

/// `None` if there is no loss.
fn accept(disk: &Simulated) -> Result<Option<Loss>, String> {
    let accepted = Mending::begin_on(on(disk), Path::new(ROOT))
        .and_then(|mending| mending.accept_loss())
        .map_err(|error| format!("it is not accepted: {error}"))?;
    Ok(accepted.map(|(loss, _)| loss))
}

/// The content after a start.
fn found(disk: &Simulated) -> Result<Kept, String> {
    let paths = Paths::new(Path::new(ROOT));
    let recovered = recover(&on(disk), &paths, &options(0))
        .map_err(|error| format!("it does not open: {error}"))?;
    let mut files = files(&disk.model().visible);
    // A lost change may leave a replacement or a new folder.
    files.retain(|name, _| !is_temporary(name) && !name.ends_with('/'));
    let live = owned(recovered.live.iter());
    if live != live_of(&files) {
        return Err(format!("live are {live:?} of {files:?}"));
    }
    Ok(Kept {
        files,
        last: recovered.journal.last(),
    })
}

/// The contents of all named files, except of those that every start writes.
fn contents(tree: &Tree) -> BTreeSet<Vec<u8>> {
    fn collect(tree: &Tree, folder: Inode, found: &mut BTreeSet<Vec<u8>>) {
        for (name, inode) in tree.folder(folder).unwrap() {
            match &tree.nodes[inode] {
                Node::Folder(_) => collect(tree, *inode, found),
                Node::File(_) if matches!(&**name, "LOCK" | "CHECKPOINT") => {}
                Node::File(content) => drop(found.insert(content.to_vec())),
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(tree, tree.find(Path::new(ROOT)).unwrap(), &mut found);
    found
}

/// Segments and objects: accepting a loss moves them to the quarantine.
fn set_aside(tree: &Tree) -> BTreeSet<Vec<u8>> {
    let paths = Paths::new(Path::new(ROOT));
    let mut found = BTreeSet::new();
    let parts = [(&paths.journal, ".jnl"), (&paths.tmp, "object-")];
    for (folder, part) in parts {
        let folder = tree.folder(tree.find(folder).unwrap()).unwrap();
        for (_, inode) in folder.iter().filter(|(name, _)| name.contains(part)) {
            found.insert(tree.content(*inode).unwrap().clone());
        }
    }
    found
}

/// Accepts the loss of a damaged store and cuts the power at every operation. Returns the loss and the kept content.
fn check(damaged: &Tree) -> Result<Option<(Loss, Kept)>, String> {
    let disk = simulated(damaged);
    let Some(loss) = accept(&disk)? else {
        return Ok(None);
    };
    let record = disk.record();
    let kept = found(&simulated(&disk.model().durable))?;
    if kept.last <= loss.last {
        return Err(format!("{} is used again after {loss:?}", kept.last));
    }
    let aside = set_aside(damaged);

    let before = Model::holding(damaged.clone());
    each_cut(&before, &record, OUTCOMES, |at, left| {
        let left = simulated(left);
        let mut after = found(&left);
        if after.is_err() && at < record.len() {
            accept(&left)?;
            after = found(&left);
        }
        let after = after?;
        // Accepted again, the loss may end later.
        if after.files != kept.files || after.last < kept.last {
            return Err(format!("found {after:?}, expected {kept:?}"));
        }
        let there = contents(&left.model().visible);
        match aside.difference(&there).count() {
            0 => Ok(()),
            count => Err(format!("{count} files are lost")),
        }
    })?;
    Ok(Some((loss, kept)))
}

const LIVES: [&[Step]; 3] = [
    &[Step::New, Step::Adopt, Step::Replace, Step::Settle],
    &[
        Step::Fill,
        Step::Live,
        Step::Fill,
        Step::Adopt,
        Step::Append,
    ],
    &[
        Step::Several,
        Step::Fill,
        Step::Checkpoint,
        Step::Adopt,
        Step::Delete,
    ],
];

/// The disk at each operation of a workload, when the writer may be killed.
fn kills(life: &Life) -> impl Iterator<Item = Tree> {
    let is_kill = |at: &usize| matches!(life.record[*at], Event::Acknowledged);
    let moments = (0..life.record.len()).filter(is_kill);
    moments.map(|at| life.disk_after(at).0.visible)
}

#[tokio::test]
async fn a_loss_can_be_accepted_wherever_the_power_fails() {
    let beginning = Beginning::small_store(0).await;
    let mut losses = 0;
    for steps in LIVES {
        for schedule in [Schedule::AtOnce, Schedule::Late, Schedule::Together] {
            let is_late = schedule != Schedule::AtOnce;
            if is_late && steps.iter().any(|step| step.waits_for_the_tree()) {
                continue;
            }
            let life = beginning.live(steps, schedule, 0).await;
            for (number, tree) in kills(&life).enumerate() {
                for damage in Damage::ALL {
                    let checked = damage.done_to(&tree).map_or(Ok(None), |tree| check(&tree));
                    assert!(
                        checked.is_ok(),
                        "{steps:?} {schedule:?}, killed at {number}, {damage:?}: {checked:?}"
                    );
                    let Ok(Some((loss, kept))) = checked else {
                        continue;
                    };
                    losses += 1;
                    if is_late {
                        // The tree has no changes beyond the readable part of the journal.
                        let readable = loss.first.0 - 1 - life.batches;
                        assert_eq!(kept.files, life.files[readable as usize]);
                    }
                }
            }
        }
    }
    assert!(losses > 20, "{losses}");
}
