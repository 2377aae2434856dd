//! Makes backups while a writer works. The writer runs some operations between those of the backup, and may be killed
//! and restarted. Each backup is restored, and must contain everything acknowledged before it began and no partial
//! batch. The operations of the writer are recorded once, with a hold at some point, and replayed here.
//!
//!     EVERSCAN_BACKUPS=1000 cargo test --release --package store exhaustive
//!
//! makes this many backups per workload. Runs differ, because thread scheduling is not deterministic.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::checker::{cut_again, each_cut, follow, on, simulated, start};
use super::workload::{Beginning, Life, ROOT, STEPS, Schedule, Step, log_of};
use crate::Key;
use crate::backup::{Copying, back_up_on, restore_on};
use crate::paths::Paths;
use crate::tests::simulated::model::{Model, NameChange, Node, Operation, Tree};
use crate::tests::simulated::power_cut::{Dice, Thoroughness};
use crate::tests::simulated::{Event, Simulated};

const BACKUP: &str = "/backup";

/// For one backup in this many, a power cut is simulated at every operation of the first start.
const CUT_ONE_IN: usize = 40;
/// Inodes of the backup start here, so they never collide with those of the original.
const FIRST_INODE_OF_BACKUP: u64 = 1_000_000;
/// More operations than most recorded workloads have.
const OPERATIONS: usize = 400;

const OUTCOMES: Thoroughness = Thoroughness {
    every_selection_of: 4,
    singles: true,
    samples: 2,
};

/// Backups per workload.
fn backups() -> usize {
    std::env::var("EVERSCAN_BACKUPS").map_or(4, |count| count.parse().unwrap())
}

fn copying() -> Copying<'static> {
    Copying {
        leave_out: &|_| false,
        counts_on: &|key| log_of(key.as_str()).map(|log| Key::new(log).unwrap()),
        is_stopped: &|| false,
    }
}

struct Work {
    events: Vec<Event>,
    /// Events replayed so far.
    done: usize,
    begun: u64,
    acknowledged: u64,
    dice: Dice,
    /// The writer runs after one in `one_in` backup operations.
    one_in: usize,
    /// It then runs fewer than `pace` operations.
    pace: usize,
}

impl Work {
    /// Applies a random part of the work to the disk, at least up to the hold, before the backup begins.
    fn begin(life: &Life, disk: &mut Model, mut dice: Dice) -> Self {
        let is_hold = |event: &Event| matches!(event, Event::Held);
        let first = life.record.iter().position(is_hold).unwrap() + 1;
        let left = life.record.len() + 1 - first;
        // Prefer early positions, so that enough work remains.
        let until = first + dice.roll(left).min(dice.roll(left));
        let mut work = Self {
            events: life.record.clone(),
            done: 0,
            begun: 0,
            acknowledged: 0,
            one_in: [1, 8][dice.roll(2)],
            pace: [2, 4, 11, 31][dice.roll(4)],
            dice,
        };
        while work.done < until {
            work.step(|operation| disk.apply(operation));
        }
        work
    }

    fn step(&mut self, apply: impl FnOnce(&Operation)) {
        match self.events.get(self.done) {
            Some(Event::Disk(operation)) => apply(operation),
            Some(Event::Begun) => self.begun += 1,
            Some(Event::Acknowledged) => self.acknowledged += 1,
            Some(Event::Held) => {}
            None => return,
        }
        self.done += 1;
    }

    fn go_on(&mut self, disk: &Simulated) {
        if self.dice.roll(self.one_in) == 0 {
            for _ in 0..self.dice.roll(self.pace) {
                self.step(|operation| disk.apply(operation));
            }
        }
    }
}

/// Makes a backup during a workload, restores it and starts a store on it.
async fn check_one(life: &Life, dice: &mut Dice) -> Result<(), String> {
    let mut disk = life.disk.clone();
    let work = Work::begin(life, &mut disk, std::mem::take(dice));
    let how = (work.done, work.one_in, work.pace);
    let promised = work.acknowledged;
    disk.visible
        .nodes
        .insert(FIRST_INODE_OF_BACKUP, Node::File(Arc::default()));
    let disk = Simulated::new(Model::holding(disk.visible));
    let work = Arc::new(Mutex::new(work));
    let hooked = on(&disk).hooked({
        let (disk, work) = (disk.clone(), work.clone());
        move |_, _| {
            work.lock().unwrap().go_on(&disk);
            Ok(())
        }
    });
    let copied = back_up_on(&hooked, Path::new(ROOT), Path::new(BACKUP), copying());
    let begun = {
        let mut work = work.lock().unwrap();
        *dice = std::mem::take(&mut work.dice);
        work.begun
    };
    let check = async {
        let copied = copied.map_err(|error| format!("no backup: {error}"))?;
        let restored = restored(&disk.model().visible)?;
        let held = start(life, &restored, promised..=begun)?;
        if copied.sequence.0 != life.batches + held {
            return Err(format!("{copied:?} has {held} batches"));
        }
        if dice.roll(CUT_ONE_IN) == 0 {
            cut_again(life, &restored, held)?;
            follow(life, &restored, held).await?;
        }
        Ok(())
    };
    check.await.map_err(|error| format!("{how:?}: {error}"))
}

/// The tree after the state was removed and the backup was restored in its place.
fn restored(tree: &Tree) -> Result<Tree, String> {
    let mut tree = tree.clone();
    let state = tree.place(Path::new(ROOT)).unwrap();
    tree.change_name(&NameChange::Remove { at: state });
    let disk = simulated(&tree);
    restore_on(&on(&disk), Path::new(BACKUP), Path::new(ROOT), copying())
        .map_err(|error| format!("it is not restored: {error}"))?;
    Ok(disk.model().visible)
}

async fn check(life: &Life, dice: &mut Dice) -> Result<(), String> {
    for number in 0..backups() {
        let checked = check_one(life, dice).await;
        checked.map_err(|error| format!("backup {number} {error}"))?;
    }
    Ok(())
}

/// The writer is killed after the hold has begun, and a new one continues with `steps`. Returns both as one workload.
async fn killed(life: &Life, steps: &[Step], dice: &mut Dice) -> Life {
    let is_hold = |event: &Event| matches!(event, Event::Held);
    let first = life.record.iter().position(is_hold).unwrap() + 1;
    let until = first + dice.roll(life.record.len() + 1 - first);
    let (disk, begun, acknowledged) = life.disk_after(until);
    let held = start(life, &disk.visible, acknowledged..=begun).unwrap();
    let mut files = life.files[..=held as usize].to_vec();
    let beginning = Beginning {
        disk: Model::holding(disk.visible),
        batches: life.batches + held,
        files: files[held as usize].clone(),
    };
    // The hold remains.
    let then = beginning
        .live_beside(steps, Schedule::AtOnce, life.spare_segments, Some(0))
        .await;
    let mut record = life.record[..until].to_vec();
    // Batches found in the journal count as acknowledged from now on.
    record.extend((begun..held).map(|_| Event::Begun));
    record.extend((acknowledged..held).map(|_| Event::Acknowledged));
    record.extend(then.record);
    files.extend_from_slice(&then.files[1..]);
    Life {
        disk: life.disk.clone(),
        batches: life.batches,
        record,
        files,
        ..then
    }
}

/// Workloads with each pair of steps.
fn lives() -> impl Iterator<Item = [Vec<Step>; 3]> {
    use Step::{Adopt, Checkpoint, EndLog, Fill, Log, New, Reopen};
    let steps = || {
        STEPS
            .into_iter()
            .filter(|step| *step != Step::Hold)
            .chain([Log, EndLog])
    };
    let pairs = steps().flat_map(move |one| steps().map(move |two| (one, two)));
    pairs.map(|(one, two)| {
        [
            vec![Adopt, Log, one, Checkpoint, two, Log],
            vec![Log, one, New, two, Adopt, EndLog, Fill, Checkpoint],
            vec![one, Adopt, two, Reopen, Log, one, Adopt, EndLog, Checkpoint],
        ]
    })
}

#[tokio::test]
async fn a_backup_has_everything_from_before_its_begin() {
    let beginning = Beginning::small_store(0).await;
    let mut dice = Dice::default();
    for steps in lives().flatten() {
        let held_at = Some(dice.roll(OPERATIONS));
        let life = beginning
            .live_beside(&steps, Schedule::AtOnce, 0, held_at)
            .await;
        let checked = check(&life, &mut dice).await;
        assert!(checked.is_ok(), "{steps:?} {held_at:?}: {checked:?}");
    }
}

#[tokio::test]
async fn a_backup_ahead_of_the_tree_has_everything_from_before_its_begin() {
    let beginning = Beginning::small_store(1).await;
    let mut dice = Dice::default();
    for mut steps in lives().flatten() {
        steps.retain(|step| !step.waits_for_the_tree());
        for schedule in [Schedule::Late, Schedule::Together] {
            let held_at = Some(dice.roll(OPERATIONS));
            let life = beginning.live_beside(&steps, schedule, 1, held_at).await;
            let checked = check(&life, &mut dice).await;
            assert!(checked.is_ok(), "{steps:?} {held_at:?}: {checked:?}");
        }
    }
}

#[tokio::test]
async fn a_backup_has_everything_from_before_its_begin_whenever_the_writer_is_killed() {
    let beginning = Beginning::small_store(0).await;
    let mut dice = Dice::default();
    for [steps, then, _] in lives() {
        let held_at = Some(dice.roll(OPERATIONS));
        let life = beginning
            .live_beside(&steps, Schedule::AtOnce, 0, held_at)
            .await;
        let life = killed(&life, &then, &mut dice).await;
        let checked = check(&life, &mut dice).await;
        assert!(checked.is_ok(), "{steps:?}, a kill, {then:?}: {checked:?}");
    }
}

/// Simulates a power cut at every operation of a backup and of its restore.
#[tokio::test]
async fn a_backup_is_complete_or_refused_after_a_power_cut() {
    let beginning = Beginning::small_store(0).await;
    let steps = [
        Step::Several,
        Step::Log,
        Step::Checkpoint,
        Step::Adopt,
        Step::Log,
    ];
    let life = beginning.live(&steps, Schedule::AtOnce, 0).await;
    let all = life.files.len() as u64 - 1;
    let acknowledged = |event: &Event| matches!(event, Event::Acknowledged);
    let end = life.record.iter().rposition(acknowledged).unwrap();
    let (disk, ..) = life.disk_after(end);
    let before = Model::holding(disk.visible);
    let disk = Simulated::new(before.clone());
    back_up_on(&on(&disk), Path::new(ROOT), Path::new(BACKUP), copying()).unwrap();
    let mut whole = 0;
    let checked = each_cut(&before, &disk.record(), OUTCOMES, |_, left| {
        let Ok(restored) = restored(left) else {
            return Ok(());
        };
        whole += 1;
        start(&life, &restored, all..=all).map(drop)
    });
    assert!(whole > 0 && checked.is_ok(), "{checked:?}");

    let mut tree = disk.model().visible;
    let state = tree.place(Path::new(ROOT)).unwrap();
    tree.change_name(&NameChange::Remove { at: state });
    let before = Model::holding(tree);
    let disk = Simulated::new(before.clone());
    restore_on(&on(&disk), Path::new(BACKUP), Path::new(ROOT), copying()).unwrap();
    let paths = Paths::new(Path::new(ROOT));
    let mut whole = 0;
    let checked = each_cut(&before, &disk.record(), OUTCOMES, |_, left| {
        if left.find(&paths.format).is_err() {
            return Ok(());
        }
        whole += 1;
        if left.find(&paths.manifest).is_err() {
            return Err("the store is not marked as restored".to_owned());
        }
        start(&life, left, all..=all).map(drop)
    });
    assert!(whole > 0 && checked.is_ok(), "{checked:?}");
}
