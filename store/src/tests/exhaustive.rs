//! Simulates power cuts exhaustively: for every short workload, before each disk operation, with each subset of the
//! unsynced changes on the disk. The next start must find every acknowledged batch and no partial batch.
//!
//! A workload of several steps is cut only during its last step: the steps before it are workloads of their own.
//!
//!     EVERSCAN_CUT_SELECTIONS=10 cargo test --release --package store exhaustive
//!
//! tries every subset of up to ten unsynced changes, also in workloads of two and three steps. It runs for a long
//! time; results are in `docs/evidence/track-record.md`.

mod backups;
mod checker;
mod losses;
mod workload;

use std::path::Path;

use checker::{Exploration, Omission, explore};
use workload::{Beginning, ROOT, STEPS, Schedule, Step};

use super::simulated::model::{Model, Operation};
use super::simulated::power_cut::Thoroughness;

/// Every subset of the unsynced changes if there are few; otherwise each change alone, all changes
/// except one, and random subsets.
const THOROUGH: Exploration = Exploration {
    thoroughness: Thoroughness {
        every_selection_of: 8,
        singles: true,
        samples: 20,
    },
    follow_one_in: 10,
    cut_again_one_in: 100,
    omits: |_, _| false,
};

const SINGLES: Exploration = Exploration {
    thoroughness: Thoroughness {
        every_selection_of: 3,
        singles: true,
        samples: 2,
    },
    follow_one_in: 50,
    cut_again_one_in: 500,
    ..THOROUGH
};

/// All, none, and some of the unsynced changes.
const BRIEF: Exploration = Exploration {
    thoroughness: Thoroughness {
        every_selection_of: 1,
        singles: false,
        samples: 1,
    },
    follow_one_in: 200,
    cut_again_one_in: 5000,
    ..THOROUGH
};

/// The minimum number of unsynced changes up to which every subset is tried.
fn at_least() -> usize {
    std::env::var("EVERSCAN_CUT_SELECTIONS").map_or(0, |count| count.parse().unwrap())
}

/// Explores one workload, and names it in a failure.
async fn check(
    beginning: &Beginning,
    steps: &[Step],
    schedule: Schedule,
    spare_segments: usize,
    mut exploration: Exploration,
) {
    let every = &mut exploration.thoroughness.every_selection_of;
    *every = at_least().max(*every);
    let life = beginning.live(steps, schedule, spare_segments).await;
    let explored = explore(&life, life.last_step, exploration).await;
    assert!(explored.is_ok(), "{steps:?} {schedule:?}: {explored:?}");
}

#[tokio::test]
async fn a_first_start() {
    let nothing = Beginning::nothing();
    check(&nothing, &[], Schedule::AtOnce, 0, THOROUGH).await;
}

#[tokio::test]
async fn a_start_and_one_step() {
    for spare_segments in 0..2 {
        let beginning = Beginning::small_store(spare_segments).await;
        let lives = std::iter::once(&[][..]).chain(STEPS.chunks(1));
        for steps in lives {
            check(
                &beginning,
                steps,
                Schedule::AtOnce,
                spare_segments,
                THOROUGH,
            )
            .await;
        }
    }
}

#[tokio::test]
async fn two_steps() {
    let beginning = Beginning::small_store(0).await;
    for one in STEPS {
        for two in STEPS {
            check(&beginning, &[one, two], Schedule::AtOnce, 0, SINGLES).await;
        }
    }
}

#[tokio::test]
async fn three_steps() {
    let beginning = Beginning::small_store(1).await;
    for one in STEPS {
        for two in STEPS {
            for three in STEPS {
                check(&beginning, &[one, two, three], Schedule::AtOnce, 1, BRIEF).await;
            }
        }
    }
}

/// The tree is written only after all batches are acknowledged.
#[tokio::test]
async fn steps_ahead_of_the_tree() {
    let beginning = Beginning::small_store(0).await;
    let steps = STEPS.into_iter().filter(|step| !step.waits_for_the_tree());
    for one in steps.clone() {
        for two in steps.clone() {
            check(&beginning, &[one, two], Schedule::Late, 0, SINGLES).await;
        }
    }
}

/// The tree is written on demand, all waiting batches at once.
#[tokio::test]
async fn two_steps_together() {
    let beginning = Beginning::small_store(0).await;
    for one in STEPS {
        for two in STEPS {
            let steps = [one, two];
            check(&beginning, &steps, Schedule::Together, 0, SINGLES).await;
        }
    }
}

#[tokio::test]
async fn three_steps_together() {
    let beginning = Beginning::small_store(1).await;
    for one in STEPS {
        for two in STEPS {
            for three in STEPS {
                let steps = [one, two, three];
                check(&beginning, &steps, Schedule::Together, 1, BRIEF).await;
            }
        }
    }
}

/// Checks the test itself: if any sync is left out, a cut must reveal it.
#[tokio::test]
async fn an_omitted_sync_is_detected() {
    let omissions: [(&str, Omission); 6] = [
        ("records", |operation, disk| {
            syncs_journal_file(operation, disk, ".jnl")
        }),
        ("the header of a segment", |operation, disk| {
            syncs_journal_file(operation, disk, "spare-")
        }),
        ("the mark of a checkpoint", |operation, disk| {
            syncs_journal_file(operation, disk, "CHECKPOINT")
        }),
        ("names in the journal", |operation, disk| {
            syncs_folder(operation, disk, "journal")
        }),
        ("names in the root", |operation, disk| {
            syncs_folder(operation, disk, "")
        }),
        ("the tree at a checkpoint", |operation, _| {
            matches!(operation, Operation::SyncAll)
        }),
    ];
    let life = Beginning::nothing()
        .live(&[Step::New, Step::Fill], Schedule::AtOnce, 0)
        .await;
    for (what, omits) in omissions {
        let exploration = Exploration { omits, ..SINGLES };
        let explored = explore(&life, 0, exploration).await;
        assert!(
            explored.is_err(),
            "no check fails without the sync of {what}"
        );
    }
    explore(&life, 0, SINGLES).await.unwrap();
}

/// True for the sync of a file in `journal/` whose name contains `part`.
fn syncs_journal_file(operation: &Operation, disk: &Model, part: &str) -> bool {
    let Operation::SyncFile(synced) = operation else {
        return false;
    };
    let journal = disk.visible.find(&Path::new(ROOT).join("journal"));
    let entries = disk.visible.folder(journal.unwrap()).unwrap();
    entries
        .iter()
        .any(|(name, inode)| name.contains(part) && inode == synced)
}

/// True for the sync of the folder `name` of the store.
fn syncs_folder(operation: &Operation, disk: &Model, name: &str) -> bool {
    let Operation::SyncFolder(synced) = operation else {
        return false;
    };
    disk.visible
        .find(&Path::new(ROOT).join(name))
        .is_ok_and(|folder| folder == *synced)
}
