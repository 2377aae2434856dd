//! The result of a power cut: all durable changes, and any selection of the other changes, with one
//! rule: changes of one name reach the disk in order. A write may be partly on the disk. The blocks
//! of a removed file may already belong to another file although the removal is not on the disk.

use std::collections::BTreeSet;

use super::model::{Change, Model, NameChange, Place, Tree, Write};

/// The unit in which a write tears. Smaller than the unit of any device, so that small records tear too.
const SECTOR: usize = 64;

/// The part of a pending change that reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Landed {
    Nothing,
    All,
    /// The file has its new length, but the new part is zeros.
    Length,
    Front,
    Back,
    /// The removed file exists again, with bytes that another file wrote over it: ext4 with
    /// `data=writeback` reuses freed blocks at once.
    Overwritten,
}

/// One outcome of a power cut: the landed part of each pending change.
pub(crate) type Outcome = Vec<Landed>;

/// How many of the possible outcomes are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thoroughness {
    /// Up to this many pending changes, every selection is checked.
    pub(crate) every_selection_of: usize,
    /// Each change alone, and all changes except one.
    pub(crate) singles: bool,
    /// Number of random selections.
    pub(crate) samples: usize,
}

/// A small random generator with a fixed seed: every run gives the same numbers.
pub(crate) struct Dice(u64);

impl Default for Dice {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Dice {
    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

impl Model {
    /// Outcomes of a power cut now.
    pub(crate) fn outcomes(&self, thoroughness: Thoroughness, dice: &mut Dice) -> Vec<Outcome> {
        let count = self.pending.len();
        let (all, nothing) = (vec![Landed::All; count], vec![Landed::Nothing; count]);
        let with = |base: &Outcome, at: usize, landed| {
            let mut outcome = base.clone();
            outcome[at] = landed;
            outcome
        };
        let mut outcomes = Vec::new();
        if count <= thoroughness.every_selection_of {
            for selection in 0..1_u32 << count {
                let landed = |at| match selection >> at & 1 {
                    0 => Landed::Nothing,
                    _ => Landed::All,
                };
                outcomes.push((0..count).map(landed).collect());
            }
        } else {
            outcomes.extend([all.clone(), nothing.clone()]);
        }
        if thoroughness.singles {
            for at in 0..count {
                outcomes.push(with(&all, at, Landed::Nothing));
                outcomes.push(self.with_earlier_changes(at));
                for part in self.parts(at) {
                    outcomes.push(with(&all, at, part));
                    outcomes.push(with(&nothing, at, part));
                }
            }
        }
        for _ in 0..thoroughness.samples {
            // Some samples have few changes, others have most.
            let share = 1 + dice.roll(4);
            let sample = (0..count).map(|at| {
                let parts = self.parts(at);
                match dice.roll(5) {
                    0 if !parts.is_empty() => parts[dice.roll(parts.len())],
                    side if side < share => Landed::All,
                    _ => Landed::Nothing,
                }
            });
            outcomes.push(sample.collect());
        }
        outcomes
            .into_iter()
            .map(|outcome| self.in_order(outcome))
            .collect()
    }

    /// The file system that a power cut leaves.
    pub(crate) fn after(&self, outcome: &Outcome) -> Tree {
        let mut tree = self.durable.clone();
        for (pending, landed) in self.pending.iter().zip(outcome) {
            match &pending.change {
                Change::Name(change) if *landed == Landed::All => tree.change_name(change),
                Change::Name(NameChange::Remove { at }) if *landed == Landed::Overwritten => {
                    if let Some(inode) = tree.at(at).filter(|inode| !self.visible.names(*inode)) {
                        tree.overwrite(inode);
                    }
                }
                Change::Name(_) => {}
                Change::Data(change) => {
                    for part in landed.of(&change.what) {
                        tree.write(change.inode, &part);
                    }
                }
            }
        }
        tree
    }

    /// Identifies an outcome, also between different moments: the landed part of every change so far.
    pub(crate) fn fingerprint(&self, outcome: &Outcome) -> Vec<Landed> {
        let mut landed = vec![Landed::All; self.changes];
        for (pending, outcome) in self.pending.iter().zip(outcome) {
            landed[pending.number] = *outcome;
        }
        while landed.pop_if(|last| *last == Landed::Nothing).is_some() {}
        landed
    }

    /// Drops changes of a name if an earlier change of the same name did not land.
    fn in_order(&self, mut outcome: Outcome) -> Outcome {
        let mut broken: BTreeSet<&Place> = BTreeSet::new();
        for (pending, landed) in self.pending.iter().zip(&mut outcome) {
            if let Change::Name(change) = &pending.change {
                if change.places().any(|place| broken.contains(place)) {
                    *landed = Landed::Nothing;
                }
                if *landed != Landed::All {
                    broken.extend(change.places());
                }
            }
        }
        outcome
    }

    /// One change, and the earlier changes of the same names.
    fn with_earlier_changes(&self, at: usize) -> Outcome {
        let chosen = self.with_what_they_need(|number, _| number == at);
        let landed = |chosen| if chosen { Landed::All } else { Landed::Nothing };
        chosen.into_iter().map(landed).collect()
    }

    /// The ways in which a pending change can land partly.
    fn parts(&self, at: usize) -> Vec<Landed> {
        match &self.pending[at].change {
            Change::Data(change) => match &change.what {
                Write::Bytes { at, bytes } if tear(*at, bytes.len()).is_some() => {
                    vec![Landed::Length, Landed::Front, Landed::Back]
                }
                Write::Bytes { .. } => vec![Landed::Length],
                Write::Length(_) => Vec::new(),
            },
            Change::Name(NameChange::Remove { .. }) => vec![Landed::Overwritten],
            Change::Name(_) => Vec::new(),
        }
    }
}

impl Landed {
    /// The writes that reach the disk of the whole write.
    fn of(self, whole: &Write) -> Vec<Write> {
        let Write::Bytes { at, bytes } = whole else {
            return match self {
                Self::All => vec![whole.clone()],
                _ => Vec::new(),
            };
        };
        let part = |from: usize, to: usize| Write::Bytes {
            at: at + from,
            bytes: bytes[from..to].into(),
        };
        let cut = tear(*at, bytes.len()).unwrap_or(0);
        match self {
            Self::Nothing | Self::Overwritten => Vec::new(),
            Self::All => vec![whole.clone()],
            Self::Length => vec![part(bytes.len(), bytes.len())],
            Self::Front => vec![part(0, cut)],
            Self::Back => vec![part(cut, bytes.len())],
        }
    }
}

/// The place where a write tears, counted from its beginning: the first boundary after its middle,
/// or else the last before it.
fn tear(at: usize, length: usize) -> Option<usize> {
    let middle = at + length / 2;
    [middle.next_multiple_of(SECTOR), middle / SECTOR * SECTOR]
        .into_iter()
        .find(|boundary| at < *boundary && *boundary < at + length)
        .map(|boundary| boundary - at)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::{FileSystem, Opening};
    use crate::tests::simulated::Simulated;

    /// The contents of `/file` that a cut after `operations` can leave, with `None` for no such file.
    fn left(operations: impl Fn(&Simulated)) -> BTreeSet<Option<String>> {
        let disk = Simulated::new(Model::new());
        operations(&disk);
        let every = Thoroughness {
            every_selection_of: 8,
            singles: true,
            samples: 0,
        };
        let model = disk.model();
        let outcomes = model.outcomes(every, &mut Dice::default());
        let content = |outcome| {
            let tree = model.after(outcome);
            let found = tree.find(Path::new("/file")).ok()?;
            Some(String::from_utf8_lossy(tree.content(found).unwrap()).into_owned())
        };
        outcomes.iter().map(content).collect()
    }

    fn write(disk: &Simulated, name: &str, content: &str, sync: bool) {
        let file = disk.open(Path::new(name), Opening::WriteOrCreate).unwrap();
        file.write_at(content.as_bytes(), 0).unwrap();
        if sync {
            file.sync_data().unwrap();
        }
    }

    fn rename(disk: &Simulated) {
        disk.rename(Path::new("/file+new"), Path::new("/file"))
            .unwrap();
    }

    fn set<const N: usize>(contents: [Option<&str>; N]) -> BTreeSet<Option<String>> {
        contents.map(|content| content.map(str::to_owned)).into()
    }

    #[test]
    fn simulated_cuts_have_the_outcomes_measured_on_real_disks() {
        let replaced = |sync_file, sync_folder| {
            left(|disk| {
                write(disk, "/file", "old", true);
                disk.sync_folder(Path::new("/")).unwrap();
                write(disk, "/file+new", "new", sync_file);
                rename(disk);
                if sync_folder {
                    disk.sync_folder(Path::new("/")).unwrap();
                }
            })
        };
        assert_eq!(replaced(true, true), set([Some("new")]));
        assert_eq!(replaced(true, false), set([Some("old"), Some("new")]));
        assert_eq!(
            replaced(false, true),
            set([Some(""), Some("\0\0\0"), Some("new")])
        );
        assert_eq!(
            left(|disk| write(disk, "/file", "new", false)),
            set([None, Some(""), Some("\0\0\0"), Some("new")])
        );
    }

    #[test]
    fn long_writes_tear_and_changes_of_a_name_keep_their_order() {
        let (front, back) = ("f".repeat(SECTOR), "b".repeat(SECTOR));
        let torn = left(|disk| write(disk, "/file", &format!("{front}{back}"), false));
        let zeros = "\0".repeat(SECTOR);
        assert!(torn.contains(&Some(front.clone())) && torn.contains(&Some(zeros + &back)));
        let twice = left(|disk| {
            for content in ["one", "two"] {
                write(disk, "/file+new", content, true);
                rename(disk);
            }
        });
        assert_eq!(twice, set([None, Some("one"), Some("two")]));
    }
}
