//! Short workloads: a few steps of each kind, the expected files after each batch, and a record of all disk
//! operations of the store.

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

/// Large enough to make the journal begin another segment.
const FILLER_BYTES: usize = 2000;

/// Bytes that each step appends to the growing file.
const LINE_BYTES: u64 = 17;

/// Every kind of change, and the events that may come between two changes.
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
    /// The growing file and its record are deleted, and the object as well.
    EndLog,
    Reopen,
}

/// The steps of the exhaustive workloads.
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

/// When batches are written to the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// After each batch.
    AtOnce,
    /// After all batches. Until then the applier waits before the first change of a key.
    Late,
    /// On demand, all waiting batches at once.
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

/// A closed store, where workloads begin.
pub(super) struct Beginning {
    pub(super) disk: Model,
    /// Batches committed so far.
    pub(super) batches: u64,
    pub(super) files: Files,
}

/// A recorded workload.
pub(super) struct Life {
    /// The disk at its beginning.
    pub(super) disk: Model,
    pub(super) record: Vec<Event>,
    /// The event where the last step began.
    pub(super) last_step: usize,
    /// Batches before it.
    pub(super) batches: u64,
    /// The files before the first batch and after each batch.
    pub(super) files: Vec<Files>,
    pub(super) spare_segments: usize,
}

impl Life {
    /// The disk after this many events, and how many batches were begun and acknowledged by then.
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

    /// Runs `steps` and closes the store cleanly.
    pub(super) async fn live(
        &self,
        steps: &[Step],
        schedule: Schedule,
        spare_segments: usize,
    ) -> Life {
        self.live_beside(steps, schedule, spare_segments, None)
            .await
    }

    /// Like [`Self::live`]. A backup takes its hold before disk operation number `held_at`, or before the close.
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
        // Dropped before the world, which waits for its threads, also if the test fails here.
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

/// A store during its workload.
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

    /// Writes the record, then the file, and then the record with the new length. Bytes that an earlier writer
    /// appended but did not count are cut off. Every name is used once only: a redo would delete the second file with
    /// the first.
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

/// Suffixes of the keys of a growing file and of the record with its length.
const LOG: &str = "/log";
const COUNTS: &str = "/counts";

/// The growing file of a record.
pub(super) fn log_of(name: &str) -> Option<String> {
    Some(format!("{}{LOG}", name.strip_suffix(COUNTS)?))
}

/// Removes the growing files from `found` and checks them: each needs a record, and at least the bytes of that
/// record.
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

/// The expected bytes, the same in each workload.
fn log_bytes(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(|at| b'a' + (at % 23) as u8).collect()
}

/// Simulates another process that makes a backup.
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
    /// The batches of this step, the step `number` of its workload, for a store with `files`.
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

    /// True if the step needs a tree without pending batches.
    pub(super) fn waits_for_the_tree(self) -> bool {
        matches!(
            self,
            Self::Turn | Self::Checkpoint | Self::EndLog | Self::Reopen
        )
    }
}

/// The content of an object of this size.
fn object(size: u64) -> String {
    "o".repeat(size as usize)
}

/// Applies a batch to the expected files.
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
