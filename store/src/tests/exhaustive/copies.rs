//! Copies that are made beside the writer, in whatever order and however slowly, with other holds and a kill in
//! between: each has everything that its hold promised, and no batch in part.
//!
//!     EVERSCAN_COPIES=1000 cargo test --release --package store exhaustive
//!
//! makes so many of each life. Which ones they are differs from run to run, since the writer's threads run as they like.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checker::{cut_again, follow, start};
use super::workload::{Beginning, Files, Life, ROOT, STEPS, Schedule, Step, Stop};
use crate::disk::{FileSystem, Opening};
use crate::layout::Layout;
use crate::tests::simulated::model::{Model, Node, Tree};
use crate::tests::simulated::power_cut::Dice;
use crate::tests::simulated::{Event, Simulated};

/// Copies of each life.
pub(super) fn copies() -> usize {
    std::env::var("EVERSCAN_COPIES").map_or(8, |count| count.parse().unwrap())
}

/// Of so many copies the first start is cut at every moment.
const CUT_ONE_IN: usize = 40;
/// No file of a copy has a number that one of the original has.
const FIRST_INODE_OF_COPY: u64 = 1_000_000;

/// What a program sees that copies the folder, from the moment on at which its hold is taken.
pub(super) struct Sight {
    /// The folder after each operation of its writer, and how many batches had begun.
    moments: Vec<(Tree, u64)>,
    /// Batches that every copy has.
    promised: u64,
    /// The file of the hold.
    hold: String,
}

impl Sight {
    pub(super) fn of(life: &Life) -> Self {
        let (mut disk, mut begun) = (life.disk.clone(), 0);
        let mut sight = None;
        for event in &life.record {
            match event {
                Event::Disk(operation) => disk.apply(operation),
                Event::Begun => begun += 1,
                Event::Acknowledged => {}
                Event::Held { last, name } => {
                    sight = Some(Self {
                        moments: Vec::new(),
                        promised: last.0 - life.batches,
                        hold: name.clone(),
                    });
                }
            }
            if let Some(sight) = &mut sight {
                sight.moments.push((disk.visible.clone(), begun));
            }
        }
        sight.expect("the life has a hold")
    }

    /// The writer is killed at one of these moments, and a new one goes on with `steps`. Answers the whole life.
    async fn killed(mut self, life: &Life, steps: &[Step], dice: &mut Dice) -> (Life, Self) {
        self.moments.truncate(1 + dice.roll(self.moments.len()));
        let (left, begun) = self.moments[self.moments.len() - 1].clone();
        let held = start(life, &left, self.promised..=begun).unwrap();
        let mut files: Vec<Files> = life.files[..=held as usize].to_vec();
        let beginning = Beginning {
            disk: Model::holding(left),
            batches: life.batches + held,
            files: files[held as usize].clone(),
        };
        let then = beginning
            .live(steps, Schedule::AtOnce, life.spare_segments)
            .await;
        let (mut disk, mut begun) = (then.disk.clone(), held);
        for event in &then.record {
            match event {
                Event::Disk(operation) => disk.apply(operation),
                Event::Begun => begun += 1,
                Event::Acknowledged | Event::Held { .. } => {}
            }
            self.moments.push((disk.visible.clone(), begun));
        }
        files.extend_from_slice(&then.files[1..]);
        let whole = Life {
            batches: life.batches,
            files,
            ..then
        };
        (whole, self)
    }
}

/// A program that copies.
pub(super) struct Copying<'a> {
    sight: &'a Sight,
    /// The moment it has come to.
    now: usize,
    /// In one of so many of its own operations the writer is at work,
    one_in: usize,
    /// and does less than so many of its.
    pace: usize,
    /// Whether it leaves the files of other holds out.
    is_ours: bool,
    dice: &'a mut Dice,
    to: Simulated,
}

impl<'a> Copying<'a> {
    pub(super) fn new(sight: &'a Sight, dice: &'a mut Dice) -> Self {
        let mut empty = Model::new().visible;
        let last = Node::File(Arc::default());
        empty.nodes.insert(FIRST_INODE_OF_COPY, last);
        let longest = sight.moments.len();
        Self {
            now: dice.roll(longest),
            one_in: [1, 8][dice.roll(2)],
            pace: [1, 2, 4, 11, 31][dice.roll(5)],
            is_ours: dice.roll(2) == 0,
            sight,
            dice,
            to: Simulated::new(Model::holding(empty)),
        }
    }

    fn tree(&mut self) -> &'a Tree {
        let last = self.sight.moments.len() - 1;
        if self.dice.roll(self.one_in) == 0 {
            self.now = last.min(self.now + self.dice.roll(self.pace));
        }
        &self.sight.moments[self.now].0
    }

    /// Answers the copy, and how many batches had begun at its end.
    pub(super) fn copy(mut self) -> (Tree, u64) {
        let journal = Layout::new(Path::new(ROOT)).journal;
        self.to.create_folder(Path::new(ROOT)).unwrap();
        for path in self.listed(Path::new(ROOT)) {
            if path != journal {
                self.take(&path);
            }
        }
        self.take(&journal);
        (self.to.model().visible, self.sight.moments[self.now].1)
    }

    /// What a folder holds, in any order.
    fn listed(&mut self, folder: &Path) -> Vec<PathBuf> {
        let tree = self.tree();
        let found = tree.find(folder).and_then(|inode| tree.folder(inode));
        let names = found.into_iter().flat_map(|entries| entries.keys());
        let mut paths: Vec<_> = names.map(|name| folder.join(&**name)).collect();
        for end in (1..paths.len()).rev() {
            paths.swap(end, self.dice.roll(end + 1));
        }
        paths
    }

    fn take(&mut self, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_hold = name.is_some_and(|name| name.starts_with("HOLD."));
        if self.is_ours && is_hold && name != Some(&self.sight.hold) {
            return;
        }
        let tree = self.tree();
        // What goes away meanwhile is left out.
        match tree.find(path).map(|inode| &tree.nodes[&inode]) {
            Err(_) => {}
            Ok(Node::File(content)) => {
                let file = self.to.open(path, Opening::CreateNew).unwrap();
                // It is open for as long as it is read, whatever becomes of its name.
                let inode = tree.find(path).unwrap();
                let from = self.dice.roll(content.len() + 1);
                file.write_at(&content[..from], 0).unwrap();
                let later = self.tree().content(inode).unwrap();
                if let Some(rest) = later.get(from..) {
                    file.write_at(rest, from as u64).unwrap();
                }
            }
            Ok(Node::Folder(_)) => {
                self.to.create_folder(path).unwrap();
                for inside in self.listed(path) {
                    self.take(&inside);
                }
            }
        }
    }
}

/// Copies made during a life, and starts on them.
async fn check(life: &Life, sight: &Sight, dice: &mut Dice) -> Result<(), String> {
    let (end, _) = &sight.moments[sight.moments.len() - 1];
    let hold = Layout::new(Path::new(ROOT)).journal.join(&sight.hold);
    assert!(end.find(&hold).is_ok(), "the hold lasts");
    for number in 0..copies() {
        let copying = Copying::new(sight, dice);
        let how = (copying.now, copying.one_in, copying.pace, copying.is_ours);
        let (copied, begun) = copying.copy();
        let told = |error| format!("copy {number} {how:?}: {error}");
        let held = start(life, &copied, sight.promised..=begun).map_err(told)?;
        if dice.roll(CUT_ONE_IN) == 0 {
            cut_again(life, &copied, held).map_err(told)?;
            follow(life, &copied, held).await.map_err(told)?;
        }
    }
    Ok(())
}

/// Lives with a hold, beside others that come and go before it and under it.
fn lives(one: Step, two: Step) -> [Vec<Step>; 4] {
    use Step::{Adopt, Checkpoint, Fill, Hold, New, OtherHold};
    [
        vec![Adopt, Hold, one, two],
        vec![OtherHold, New, Hold, one, OtherHold, two],
        vec![one, Hold, Checkpoint, OtherHold, two, OtherHold],
        vec![
            OtherHold, one, Checkpoint, Hold, Fill, OtherHold, two, Checkpoint,
        ],
    ]
}

/// Steps that do not end the hold.
fn steps() -> impl Iterator<Item = Step> + Clone {
    STEPS.into_iter().filter(|step| *step != Step::Hold)
}

/// Those lives with each pair of steps.
fn all_lives() -> impl Iterator<Item = (Vec<Step>, Step, Step)> {
    let pairs = steps().flat_map(|one| steps().map(move |two| (one, two)));
    pairs.flat_map(|(one, two)| lives(one, two).map(|steps| (steps, one, two)))
}

#[tokio::test]
async fn copies_have_what_their_hold_promised() {
    let beginning = Beginning::small_store(0).await;
    let mut dice = Dice::default();
    for (steps, ..) in all_lives() {
        let life = beginning.live(&steps, Schedule::AtOnce, 0).await;
        let checked = check(&life, &Sight::of(&life), &mut dice).await;
        assert!(checked.is_ok(), "{steps:?}: {checked:?}");
    }
}

#[tokio::test]
async fn copies_made_ahead_of_the_tree_have_what_their_hold_promised() {
    let beginning = Beginning::small_store(1).await;
    let steps = steps().filter(|step| !step.waits_for_the_tree());
    let mut dice = Dice::default();
    for one in steps.clone() {
        for two in steps.clone() {
            for steps in [
                &[Step::Adopt, one, Step::Hold, two][..],
                &[
                    Step::Adopt,
                    Step::OtherHold,
                    one,
                    Step::Hold,
                    Step::OtherHold,
                    two,
                ],
            ] {
                for stop in Stop::ALL {
                    let life = beginning.live(steps, Schedule::Late(stop), 1).await;
                    let checked = check(&life, &Sight::of(&life), &mut dice).await;
                    assert!(checked.is_ok(), "{steps:?} {stop:?}: {checked:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn copies_made_while_the_writer_is_killed_have_what_their_hold_promised() {
    let beginning = Beginning::small_store(0).await;
    let mut dice = Dice::default();
    for (steps, one, two) in all_lives() {
        let life = beginning.live(&steps, Schedule::AtOnce, 0).await;
        let then = [two, Step::OtherHold, one, Step::OtherHold, Step::Checkpoint];
        let sight = Sight::of(&life);
        let (whole, sight) = sight.killed(&life, &then, &mut dice).await;
        let checked = check(&whole, &sight, &mut dice).await;
        assert!(checked.is_ok(), "{steps:?}, a kill, {then:?}: {checked:?}");
    }
}
