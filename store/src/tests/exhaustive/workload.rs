//! Short lives of a store: a few steps of every kind, what the files must hold after each batch, and the record of
//! everything that the store did to its disk meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

use bytes::Bytes;

use crate::batch::is_live;
use crate::disk::{Action, Disk};
use crate::file::Options;
use crate::hold::Hold;
use crate::holds;
use crate::objects::Objects;
use crate::tests::simulated::model::Model;
use crate::tests::simulated::{Event, Simulated};
use crate::tests::world::{
    Op, Records, World, adopt, append, delete, key, live, put, staged, tiny,
};
use crate::{Engine, Key};

pub(super) const ROOT: &str = "/state";

/// Content so long that the journal needs another segment for it.
const FILLER_BYTES: usize = 2000;

/// Every kind of change that a store knows, and what can come between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A file in a new folder.
    New,
    Replace,
    Delete,
    Append,
    /// A live record changes.
    Live,
    /// A live record settles, and a ledger grows in the same batch.
    Settle,
    /// An object gets its key in the batch that names it.
    Adopt,
    /// A name turns from file into folder, or back.
    Turn,
    /// One batch of every kind of operation.
    Several,
    /// Begins another segment.
    Fill,
    Checkpoint,
    /// Somebody begins to copy the folder, or has done so.
    Hold,
    /// Somebody else does.
    OtherHold,
    Reopen,
}

/// Those of which all short lives are made.
pub(super) const STEPS: [Step; 13] = [
    Step::New,
    Step::Replace,
    Step::Delete,
    Step::Append,
    Step::Live,
    Step::Settle,
    Step::Adopt,
    Step::Turn,
    Step::Several,
    Step::Fill,
    Step::Checkpoint,
    Step::Hold,
    Step::Reopen,
];

/// When the tree follows the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// After each batch.
    AtOnce,
    /// After all batches. Until then it waits in the middle of the first that comes to the stop.
    Late(Stop),
}

/// What the tree waits before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Any change of a key.
    Change,
    /// The second name of an object,
    Link,
    /// the look for holds after the object has its key,
    Look,
    /// the end of its second name when there is none.
    Unlink,
}

impl Stop {
    pub(super) const ALL: [Self; 4] = [Self::Change, Self::Link, Self::Look, Self::Unlink];
}

/// The contents of all files.
pub(super) type Files = BTreeMap<String, String>;

/// A store that was closed, from which lives begin.
pub(super) struct Beginning {
    pub(super) disk: Model,
    /// Batches it has seen.
    pub(super) batches: u64,
    pub(super) files: Files,
}

/// One life.
pub(super) struct Life {
    /// The disk at its beginning.
    pub(super) disk: Model,
    pub(super) record: Vec<Event>,
    /// The position in the record where its last step began.
    pub(super) last_step: usize,
    /// Batches before it.
    pub(super) batches: u64,
    /// The files after each of its batches, and first those before.
    pub(super) files: Vec<Files>,
    pub(super) spare_segments: usize,
}

pub(super) fn options(spare_segments: usize) -> Options {
    Options {
        first_segment_bytes: 5 * 1024,
        segment_bytes: 8 * 1024,
        spare_segments,
        ..tiny()
    }
}

impl Beginning {
    /// No store at all.
    pub(super) fn nothing() -> Self {
        Self {
            disk: Model::new(),
            batches: 0,
            files: Files::new(),
        }
    }

    /// A store with a file for each kind of step.
    pub(super) async fn small_store(spare_segments: usize) -> Self {
        let disk = Simulated::new(Model::new());
        let mut files = Files::new();
        let batch = vec![
            put("twin", "first"),
            put("turn", "first"),
            live("job.json", 0),
            append("log.jsonl", 0, "first\n"),
        ];
        change(&mut files, &batch);
        let mut world = open(Disk::on(Arc::new(disk.clone())), spare_segments).await;
        world.commit(batch).await.unwrap();
        world.engine.close().unwrap();
        Self {
            disk: disk.model(),
            batches: 1,
            files,
        }
    }

    /// Lives through `steps` and a clean close.
    pub(super) async fn live(
        &self,
        steps: &[Step],
        schedule: Schedule,
        spare_segments: usize,
    ) -> Life {
        let simulated = Simulated::new(self.disk.clone());
        let gate = Arc::new(Gate::new());
        let disk = Disk::on(Arc::new(simulated.clone())).hooked({
            let gate = gate.clone();
            move |action, path| {
                gate.pass(action, path);
                Ok(())
            }
        });
        let mut files = vec![self.files.clone()];
        let mut last_step = 0;
        let mut world = open(disk.clone(), spare_segments).await;
        let (mut hold, mut other) = (None, None);
        // Before the world, which waits for its threads, also when a test fails here.
        let _opening = Opening(&gate);
        gate.set(match schedule {
            Schedule::AtOnce => None,
            Schedule::Late(stop) => Some(stop),
        });
        for (number, step) in steps.iter().enumerate() {
            last_step = simulated.now();
            let pending = world.engine.reader().pending;
            match step {
                Step::Checkpoint => pending.wait_for_checkpoint().unwrap(),
                Step::Hold => {
                    if let Some(hold) = toggle(&mut hold, &disk) {
                        let name = holds::file_name(hold.id());
                        let last = hold.last();
                        simulated.note(Event::Held { last, name });
                    }
                }
                Step::OtherHold => {
                    toggle(&mut other, &disk);
                }
                Step::Reopen => {
                    world.engine.close().unwrap();
                    world = open(disk.clone(), spare_segments).await;
                }
                _ => {
                    let objects = world.engine.objects();
                    for batch in step.batches(number, &files[files.len() - 1], &objects) {
                        let mut after = files[files.len() - 1].clone();
                        change(&mut after, &batch);
                        files.push(after);
                        simulated.note(Event::Begun);
                        world.commit(batch).await.unwrap();
                        simulated.note(Event::Acknowledged);
                        match schedule {
                            Schedule::AtOnce => pending.wait_for_tree().unwrap(),
                            Schedule::Late(_) if *step == Step::Adopt && files.len() == 2 => {
                                gate.wait_until_somebody_waits();
                            }
                            Schedule::Late(_) => {}
                        }
                    }
                }
            }
        }
        gate.set(None);
        world.engine.close().unwrap();
        Life {
            disk: self.disk.clone(),
            record: simulated.record(),
            last_step,
            batches: self.batches,
            files,
            spare_segments,
        }
    }
}

/// Takes a hold, which is answered, or releases the one there is.
fn toggle<'a>(hold: &'a mut Option<Hold>, disk: &Disk) -> Option<&'a Hold> {
    match hold.take() {
        None => Some(hold.insert(Hold::take_on(disk.clone(), Path::new(ROOT)).unwrap())),
        Some(taken) => {
            assert!(taken.release().unwrap(), "it lasted");
            None
        }
    }
}

async fn open(disk: Disk, spare_segments: usize) -> World {
    World::open_on(disk, Path::new(ROOT), options(spare_segments))
        .await
        .unwrap()
}

impl Step {
    /// The batches of this step, which is number `number` of its life, on a store that holds `files`.
    fn batches(self, number: usize, files: &Files, objects: &Objects) -> Vec<Vec<Op>> {
        let text = format!("step {number} of a life\n");
        let line = |name: &str| append(name, files.get(name).map_or(0, String::len) as u64, &text);
        let one = |operation| vec![vec![operation]];
        match self {
            Self::New => one(put(&format!("new/{number}/file"), &text)),
            Self::Replace => one(put("twin", &text)),
            Self::Delete => one(delete("twin")),
            Self::Append => one(line("log.jsonl")),
            Self::Live => one(live("job.json", number as u64 + 1)),
            Self::Settle => vec![vec![
                put("job.json", r#"{"live":false}"#),
                line("history.jsonl"),
            ]],
            Self::Adopt => vec![vec![
                adopt("job.zip", staged(objects, &object(10 + number as u64))),
                live("job.json", number as u64 + 1),
            ]],
            Self::Turn => {
                let (old, new) = if files.contains_key("turn") {
                    ("turn", "turn/deep/file")
                } else {
                    ("turn/deep/file", "turn")
                };
                vec![vec![delete(old)], vec![put(new, &text)]]
            }
            Self::Several => vec![vec![
                put("twin", &text),
                live("pair/other.json", number as u64),
                delete("job.json"),
                delete("new/0/file"),
                line("log.jsonl"),
                line("pair/log.jsonl"),
            ]],
            Self::Fill => one(put("filler", &text.repeat(FILLER_BYTES / text.len()))),
            Self::Checkpoint | Self::Hold | Self::OtherHold | Self::Reopen => Vec::new(),
        }
    }

    /// Whether the step needs the tree to be where the journal is.
    pub(super) fn waits_for_the_tree(self) -> bool {
        matches!(self, Self::Turn | Self::Checkpoint | Self::Reopen)
    }
}

/// What an object of this size holds.
fn object(size: u64) -> String {
    "o".repeat(size as usize)
}

/// A small model of a batch.
fn change(files: &mut Files, batch: &[Op]) {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    for operation in batch {
        match operation {
            Op::Put(key, bytes) => drop(files.insert(key.as_str().to_owned(), text(bytes))),
            Op::Delete(key) => drop(files.remove(key.as_str())),
            Op::Append(key, at, bytes) => {
                let file = files.entry(key.as_str().to_owned()).or_default();
                file.truncate(*at as usize);
                file.push_str(&text(bytes));
            }
            Op::Adopt(key, staged) => {
                drop(files.insert(key.as_str().to_owned(), object(staged.size())));
            }
        }
    }
}

/// The live records among `files`.
pub(super) fn live_records(files: &Files) -> Records {
    let files = files
        .iter()
        .map(|(name, content)| (key(name), Bytes::from(content.clone())));
    files
        .filter(|(key, content): &(Key, Bytes)| is_live(key, content))
        .collect()
}

/// Holds the thread of the applier back, while there is a stop.
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
    /// Takes the holds, and is never held back.
    steps: ThreadId,
}

impl Gate {
    fn new() -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            steps: std::thread::current().id(),
        }
    }

    fn set(&self, stop: Option<Stop>) {
        self.state.lock().unwrap().stop = stop;
        self.changed.notify_all();
    }

    fn wait_until_somebody_waits(&self) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_while(state, |state| !state.is_reached);
        drop(waited.unwrap());
    }

    fn pass(&self, action: Action, path: &Path) {
        if std::thread::current().id() == self.steps {
            return;
        }
        let is_below = |folder| path.starts_with(Path::new(ROOT).join(folder));
        let begins = |stop: Stop| match (stop, action) {
            // Objects come to `tmp/` without the applier.
            (Stop::Change, Action::CreateFile | Action::RemoveFile | Action::Rename) => {
                !["journal", "index", "tmp"].into_iter().any(is_below)
            }
            (Stop::Link, Action::Link) => true,
            (Stop::Look, Action::ListFolder) => is_below("journal"),
            (Stop::Unlink, Action::RemoveFile) => {
                is_below("journal") && path.to_string_lossy().contains("held-")
            }
            _ => false,
        };
        let mut state = self.state.lock().unwrap();
        while state.stop.is_some_and(begins) {
            state.is_reached = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap();
        }
    }
}

#[derive(Default)]
struct GateState {
    stop: Option<Stop>,
    /// Whether the applier has come to the stop.
    is_reached: bool,
}

/// Opens the gate when it is dropped.
struct Opening<'a>(&'a Gate);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
