//! Cuts the power at every operation of a workload, with many outcomes, and checks the next start.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use super::workload::{Files, Life, ROOT, options, take_logs};
use crate::Seq;
use crate::disk::Disk;
use crate::key::RESERVED;
use crate::paths::Paths;
use crate::recovery::{Recovered, recover};
use crate::tests::simulated::model::{Inode, Model, Node, Operation, Tree};
use crate::tests::simulated::power_cut::{Dice, Thoroughness};
use crate::tests::simulated::{Event, Simulated};
use crate::tests::world::{Records, World, live_of, owned, put};

/// How thoroughly a workload is checked.
#[derive(Clone, Copy)]
pub(super) struct Exploration {
    pub(super) thoroughness: Thoroughness,
    /// One start in this many is followed by a commit and a second start.
    pub(super) follow_one_in: usize,
    /// One start in this many is cut at every operation.
    pub(super) cut_again_one_in: usize,
    /// Operations that a faulty disk or store skips.
    pub(super) omits: Omission,
}

/// True if the operation is skipped. The model is the disk before it.
pub(super) type Omission = fn(&Operation, &Model) -> bool;

/// Outcomes of a second cut, during the start after the first.
const SECOND_CUT: Thoroughness = Thoroughness {
    every_selection_of: 0,
    singles: false,
    samples: 1,
};

/// Checks every outcome of every cut after the event `from`. An error describes the first wrong outcome.
pub(super) async fn explore(
    life: &Life,
    from: usize,
    exploration: Exploration,
) -> Result<(), String> {
    let mut dice = Dice::default();
    let mut disk = life.disk.clone();
    let (mut begun, mut acknowledged) = (0, 0);
    let mut seen = BTreeSet::new();
    for at in 0..=life.record.len() {
        if at >= from {
            for outcome in disk.outcomes(exploration.thoroughness, &mut dice) {
                if !seen.insert((disk.fingerprint(&outcome), acknowledged)) {
                    continue;
                }
                let left = disk.after(&outcome);
                let check = async {
                    let held = start(life, &left, acknowledged..=begun)?;
                    if dice.roll(exploration.follow_one_in) == 0 {
                        follow(life, &left, held).await?;
                    }
                    if dice.roll(exploration.cut_again_one_in) == 0 {
                        cut_again(life, &left, held)?;
                    }
                    Ok(())
                };
                check.await.map_err(|error: String| {
                    let before = &life.record[at.saturating_sub(10)..at];
                    let pending = &disk.pending;
                    format!("{error}\nafter {before:?}\nand of {pending:?}\n{outcome:?}")
                })?;
            }
        }
        match life.record.get(at) {
            Some(Event::Disk(operation)) if (exploration.omits)(operation, &disk) => {}
            Some(Event::Disk(operation)) => disk.apply(operation),
            Some(Event::Begun) => begun += 1,
            Some(Event::Acknowledged) => acknowledged += 1,
            Some(Event::Held) | None => {}
        }
    }
    Ok(())
}

/// Starts a store after a cut. Everything acknowledged must exist; the batch in flight must exist completely or not
/// at all. Returns the number of batches found.
pub(super) fn start(
    life: &Life,
    left: &Tree,
    expected: RangeInclusive<u64>,
) -> Result<u64, String> {
    let disk = simulated(left);
    let recovered = recovered(life, &disk)?;
    let held = recovered.journal.last().0.checked_sub(life.batches);
    let held = held
        .filter(|held| expected.contains(held))
        .ok_or_else(|| format!("found {held:?} batches, expected {expected:?}"))?;
    compare(
        &disk,
        owned(recovered.live.iter()),
        &life.files[held as usize],
    )?;
    Ok(held)
}

/// Commits another batch. It must remain, although nothing after its sync reaches the disk.
pub(super) async fn follow(life: &Life, left: &Tree, held: u64) -> Result<(), String> {
    let disk = simulated(left);
    let options = options(life.spare_segments);
    let opened = World::open_on(on(&disk), Path::new(ROOT), options).await;
    let mut world = opened.map_err(|error| format!("it does not open: {error}"))?;
    let committed = world.commit([put("after", "the cut")]).await;
    committed.map_err(|error| format!("no commit after the cut: {error}"))?;
    let left = disk.model().durable;
    drop(world);
    let disk = simulated(&left);
    let recovered = recovered(life, &disk)?;
    if recovered.journal.last() != Seq(life.batches + held + 1) {
        return Err(format!(
            "the batch after is lost: {}",
            recovered.journal.last()
        ));
    }
    let mut files = life.files[held as usize].clone();
    files.insert("after".to_owned(), "the cut".to_owned());
    compare(&disk, owned(recovered.live.iter()), &files)
}

/// Cuts a start at every operation. The next start must find the same content.
pub(super) fn cut_again(life: &Life, left: &Tree, held: u64) -> Result<(), String> {
    let disk = simulated(left);
    drop(recovered(life, &disk)?);
    let before = Model::holding(left.clone());
    each_cut(&before, &disk.record(), SECOND_CUT, |_, again| {
        start(life, again, held..=held).map(drop)
    })
    .map_err(|error| format!("a start that was cut: {error}"))
}

/// Calls `check` once for each distinct outcome of a cut, with the number of events before the cut.
pub(super) fn each_cut(
    before: &Model,
    record: &[Event],
    thoroughness: Thoroughness,
    mut check: impl FnMut(usize, &Tree) -> Result<(), String>,
) -> Result<(), String> {
    let (mut disk, mut dice, mut seen) = (before.clone(), Dice::default(), BTreeSet::new());
    for at in 0..=record.len() {
        for outcome in disk.outcomes(thoroughness, &mut dice) {
            if seen.insert(disk.fingerprint(&outcome)) {
                check(at, &disk.after(&outcome)).map_err(|error| {
                    let last = &record[at.saturating_sub(10)..at];
                    let pending = &disk.pending;
                    format!("{error}\nafter {last:?}\nand of {pending:?}\n{outcome:?}")
                })?;
            }
        }
        if let Some(Event::Disk(operation)) = record.get(at) {
            disk.apply(operation);
        }
    }
    Ok(())
}

pub(super) fn simulated(left: &Tree) -> Simulated {
    Simulated::new(Model::holding(left.clone()))
}

pub(super) fn on(disk: &Simulated) -> Disk {
    Disk::on(Arc::new(disk.clone()))
}

fn recovered(life: &Life, disk: &Simulated) -> Result<Recovered, String> {
    let options = options(life.spare_segments);
    recover(&on(disk), &Paths::new(Path::new(ROOT)), &options)
        .map_err(|error| format!("it does not open: {error}"))
}

fn compare(disk: &Simulated, live: Records, expected: &Files) -> Result<(), String> {
    let mut found = files(&disk.model().visible);
    take_logs(&mut found)?;
    if found != *expected {
        return Err(format!("the files are {found:?} and not {expected:?}"));
    }
    let expected = live_of(expected);
    if live != expected {
        return Err(format!("live are {live:?} and not {expected:?}"));
    }
    let left = on(disk).list(&Paths::new(Path::new(ROOT)).tmp);
    match left.unwrap().first() {
        Some((name, _)) => Err(format!("{name} is left in tmp/")),
        None => Ok(()),
    }
}

/// The files of keys, and empty folders.
pub(super) fn files(tree: &Tree) -> Files {
    fn collect(tree: &Tree, folder: Inode, prefix: &str, found: &mut Files) {
        let entries = tree.folder(folder).unwrap();
        if entries.is_empty() {
            found.insert(prefix.to_owned(), "an empty folder".to_owned());
        }
        for (name, inode) in entries {
            if prefix.is_empty() && RESERVED.contains(&&**name) {
                continue;
            }
            match &tree.nodes[inode] {
                Node::Folder(_) => collect(tree, *inode, &format!("{prefix}{name}/"), found),
                Node::File(content) => {
                    let content = String::from_utf8_lossy(content).into_owned();
                    found.insert(format!("{prefix}{name}"), content);
                }
            }
        }
    }
    let mut found = Files::new();
    let root = tree.find(Path::new(ROOT)).unwrap();
    collect(tree, root, "", &mut found);
    found
}
