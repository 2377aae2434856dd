//! Short lives of a store: a few steps of every kind, what the files must hold after each batch, and the record of
//! everything that the store did to its disk meanwhile.

mod gate;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;

use self::gate::{Gate, Opening};
use crate::Engine;
use crate::append_file::AppendFile;
use crate::disk::Disk;
use crate::file::Options;
use crate::hold::Hold;
use crate::paths::Paths;
use crate::tests::simulated::model::Model;
use crate::tests::simulated::{Event, Simulated};
use crate::tests::world::{
    LONG, Op, World, adopt, append, close, delete, key, live, put, staged, tiny,
};
use crate::tree::Tree;
use crate::volume::{GrowingFile, Volume};

pub(super) const ROOT: &str = "/state";

/// Content so long that the journal needs another segment for it.
const FILLER_BYTES: usize = 2000;

/// By which the growing file gets longer.
const LINE_BYTES: u64 = 17;

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
    /// A backup begins or ends.
    Hold,
    /// A growing file gets longer, and a record counts its bytes.
    Log,
    /// The two are deleted, and the object with them.
    EndLog,
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
    /// After all batches. Until then it waits before the first change of a key.
    Late,
    /// When somebody asks for it, with all batches since at once.
    Together,
}

impl Schedule {
    fn options(self, spare_segments: usize) -> Options {
        Options {
            gather: match self {
                Self::AtOnce | Self::Late => Duration::ZERO,
                Self::Together => LONG,
            },
            ..options(spare_segments)
        }
    }
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

impl Life {
    /// The disk after so many events, and how many batches were begun and acknowledged by then.
    pub(super) fn disk_after(&self, events: usize) -> (Model, u64, u64) {
        let (mut disk, mut begun, mut acknowledged) = (self.disk.clone(), 0, 0);
        for event in &self.record[..events] {
            match event {
                Event::Disk(operation) => disk.apply(operation),
                Event::Begun => begun += 1,
                Event::Acknowledged => acknowledged += 1,
                Event::Held => {}
            }
        }
        (disk, begun, acknowledged)
    }
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
        let options = options(spare_segments);
        let mut world = open(Disk::on(Arc::new(disk.clone())), options).await;
        world.commit(batch).await.unwrap();
        close(world.engine).unwrap();
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
        self.live_beside(steps, schedule, spare_segments, None)
            .await
    }

    /// The same. A backup takes its hold before operation number `held_at` of the disk, or before the close.
    pub(super) async fn live_beside(
        &self,
        steps: &[Step],
        schedule: Schedule,
        spare_segments: usize,
        held_at: Option<usize>,
    ) -> Life {
        let simulated = Simulated::new(self.disk.clone());
        let gate = Arc::new(Gate::new());
        let other = Arc::new(Other::new(&simulated, held_at));
        let disk = Disk::on(Arc::new(simulated.clone())).hooked({
            let (gate, other) = (gate.clone(), other.clone());
            move |action, path| {
                other.pass();
                gate.pass(action, path);
                Ok(())
            }
        });
        let options = schedule.options(spare_segments);
        let mut living = Living {
            world: open(disk.clone(), options.clone()).await,
            files: vec![self.files.clone()],
            simulated: &simulated,
            schedule,
        };
        let (mut last_step, mut hold) = (0, None);
        // Before the world, which waits for its threads, also when a test fails here.
        let _opening = Opening(&gate);
        gate.set(schedule == Schedule::Late);
        for (number, step) in steps.iter().enumerate() {
            last_step = simulated.now();
            match step {
                Step::Checkpoint => {
                    let pending = living.world.engine.reader().pending;
                    pending.wait_for_checkpoint().unwrap();
                }
                Step::Hold => {
                    hold = match hold.take() {
                        None => Some(Hold::take(&disk, &Paths::new(Path::new(ROOT))).unwrap()),
                        Some(_) => None,
                    }
                }
                Step::Reopen => {
                    close(living.world.engine).unwrap();
                    living.world = open(disk.clone(), options.clone()).await;
                }
                Step::Log => living.log(&disk).await,
                Step::EndLog => living.end_log().await,
                _ => {
                    let volume = living.world.engine.volume();
                    for batch in step.batches(number, living.now(), &volume) {
                        living.commit(batch).await;
                        if schedule == Schedule::Late
                            && *step == Step::Adopt
                            && living.files.len() == 2
                        {
                            gate.wait_until_somebody_waits();
                        }
                    }
                }
            }
        }
        other.hold();
        gate.set(false);
        close(living.world.engine).unwrap();
        Life {
            disk: self.disk.clone(),
            record: simulated.record(),
            last_step,
            batches: self.batches,
            files: living.files,
            spare_segments,
        }
    }
}

/// A store at work.
struct Living<'a> {
    world: World,
    files: Vec<Files>,
    simulated: &'a Simulated,
    schedule: Schedule,
}

impl Living<'_> {
    fn now(&self) -> &Files {
        &self.files[self.files.len() - 1]
    }

    async fn commit(&mut self, batch: Vec<Op>) {
        let mut after = self.now().clone();
        change(&mut after, &batch);
        self.files.push(after);
        self.simulated.note(Event::Begun);
        self.world.commit(batch).await.unwrap();
        self.simulated.note(Event::Acknowledged);
        if self.schedule == Schedule::AtOnce {
            let pending = self.world.engine.reader().pending;
            pending.wait_for_tree().unwrap();
        }
    }

    /// The record is there before the file, and again once the file is longer. What an earlier writer has added and not
    /// counted is cut off. No name is given twice: a redo would delete the second file with the first.
    async fn log(&mut self, disk: &Disk) {
        let known = self
            .now()
            .keys()
            .find(|name| name.ends_with(COUNTS))
            .cloned();
        let counts = match known {
            Some(counts) => counts,
            None => {
                let counts = format!("work/{}{COUNTS}", self.world.last.0);
                self.commit(vec![put(&counts, "0")]).await;
                counts
            }
        };
        let counted: u64 = self.now()[&counts].parse().unwrap();
        let name = log_of(&counts).unwrap();
        let mut log = AppendFile::open(Tree::new(disk.clone(), ROOT.into()), &key(&name)).unwrap();
        log.cut(counted).unwrap();
        log.append(&log_bytes(counted..counted + LINE_BYTES))
            .unwrap();
        self.commit(vec![put(&counts, &log.size().to_string())])
            .await;
    }

    async fn end_log(&mut self) {
        let counts = self
            .now()
            .keys()
            .find(|name| name.ends_with(COUNTS))
            .cloned();
        let mut gone = vec![delete("job.zip")];
        if let Some(counts) = counts {
            let log = log_of(&counts).unwrap();
            gone.extend([delete(&log), delete(&counts)]);
        }
        self.commit(gone).await;
    }
}

/// The ends of the names of a growing file, and of the record that counts its bytes.
const LOG: &str = "/log";
const COUNTS: &str = "/counts";

/// The growing file that a record counts the bytes of.
pub(super) fn log_of(name: &str) -> Option<String> {
    Some(format!("{}{LOG}", name.strip_suffix(COUNTS)?))
}

/// Takes the growing files from what there is, unless they are wrong: each is known to a record, and has at least the
/// bytes that are counted.
pub(super) fn take_logs(found: &mut Files) -> Result<(), String> {
    let counts = found
        .iter()
        .filter_map(|(name, count)| Some((log_of(name)?, count.clone())));
    for (name, counted) in counts.collect::<Vec<_>>() {
        let log = found.remove(&name).unwrap_or_default();
        let length = log.len() as u64;
        if length < counted.parse().unwrap() || log.as_bytes() != log_bytes(0..length) {
            return Err(format!(
                "{name} is {log:?}, and {counted} bytes are counted"
            ));
        }
    }
    Ok(())
}

/// What the growing file holds there, in whichever life it was written.
fn log_bytes(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(|at| b'a' + (at % 23) as u8).collect()
}

/// Another process, which makes a backup.
struct Other {
    disk: Disk,
    simulated: Simulated,
    left: AtomicUsize,
    held_at: Option<usize>,
    hold: Mutex<Option<Hold>>,
}

impl Other {
    fn new(simulated: &Simulated, held_at: Option<usize>) -> Self {
        Self {
            disk: Disk::on(Arc::new(simulated.clone())),
            simulated: simulated.clone(),
            left: AtomicUsize::new(held_at.unwrap_or_default()),
            held_at,
            hold: Mutex::default(),
        }
    }

    fn pass(&self) {
        let earlier = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(SeqCst, SeqCst, earlier).is_err() {
            self.hold();
        }
    }

    fn hold(&self) {
        let mut hold = self.hold.lock().unwrap();
        if self.held_at.is_some() && hold.is_none() {
            let paths = Paths::new(Path::new(ROOT));
            *hold = Some(Hold::take(&self.disk, &paths).unwrap());
            self.simulated.note(Event::Held);
        }
    }
}

async fn open(disk: Disk, options: Options) -> World {
    let opened = World::open_on(disk, Path::new(ROOT), options).await;
    opened.unwrap()
}

impl Step {
    /// The batches of this step, which is number `number` of its life, on a store that holds `files`.
    fn batches(self, number: usize, files: &Files, volume: &Arc<dyn Volume>) -> Vec<Vec<Op>> {
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
                adopt("job.zip", staged(volume, &object(10 + number as u64))),
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
            Self::Checkpoint | Self::Hold | Self::Log | Self::EndLog | Self::Reopen => Vec::new(),
        }
    }

    /// Whether the step needs the tree to be where the journal is.
    pub(super) fn waits_for_the_tree(self) -> bool {
        matches!(
            self,
            Self::Turn | Self::Checkpoint | Self::EndLog | Self::Reopen
        )
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
