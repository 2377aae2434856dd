//! A state in a temporary folder with one workflow and one runner, a fixed clock and repeatable randomness.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::TimeDelta;
use model::decide::{Complete, LargeInputs, StoreArtifact};
use model::limits::CYCLE_PAUSE;
use model::{
    Clock, Entropy, Inputs, JobId, RunnerId, ScanKey, Step, StepOutcome, StepStatus, Timestamp,
    TokenHash, WorkflowId,
};
use store::{Key, Staged, Watermark, Watermarks};
use tempfile::TempDir;
use workflow::{InputValue, ScanName, hex};

use crate::envelope;
use crate::record::Record;
use crate::{Closing, NewLogRecord, OpenError, Options, State, Stream};

pub(crate) use self::found::copy;
pub(crate) use self::opened::Opened;

mod found;
mod opened;

/// 2026-11-20T12:00:00Z.
const NOON: i64 = 1_795_176_000_000;

/// More free space than any disk has.
const EVERYTHING: Watermark = Watermark {
    percent: 1000,
    bytes: u64::MAX,
    files: 0,
};

pub(crate) const WORKFLOW: &str = "\
scans:
  build:
    on:
      dispatch:
        inputs:
          note: {type: string}
    steps:
      - run: make
    artifacts:
      - name: report
        paths: [out]
  check:
    on: {dispatch: {}}
    steps:
      - run: make check
";

/// The scan `announce` starts once `build` has succeeded twice.
pub(crate) const WATCHING: &str = "\
scans:
  build:
    on: {dispatch: {}}
    steps: [{run: make}]
  announce:
    on:
      expr: scans.build.filter(j, j.state == 'succeeded').size() > 1
    steps: [{run: announce}]
";

/// A clock that only tests move. Times are in milliseconds.
pub(crate) struct TestClock {
    now: AtomicI64,
    /// How far the clock was set ahead since the start of the process.
    set_by: AtomicI64,
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_timestamp_millis(self.now.load(Ordering::SeqCst)).unwrap()
    }

    fn steady(&self) -> Timestamp {
        self.now() - TimeDelta::milliseconds(self.set_by.load(Ordering::SeqCst))
    }
}

impl TestClock {
    pub(crate) fn at_noon() -> Arc<Self> {
        Self::at(NOON)
    }

    fn at(now: i64) -> Arc<Self> {
        Arc::new(Self {
            now: now.into(),
            set_by: 0.into(),
        })
    }

    /// Sets the wall clock.
    pub(crate) fn jump(&self, by: TimeDelta) {
        let by = by.num_milliseconds();
        self.now.fetch_add(by, Ordering::SeqCst);
        self.set_by.fetch_add(by, Ordering::SeqCst);
    }
}

/// Repeatable randomness. Each opening uses a new seed, so that a reopened state does not generate the same ids again.
pub(crate) struct Seeded(pub(crate) u64);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = self.0.to_be_bytes()[0];
        }
    }
}

/// A state folder that may be opened again and again.
pub(crate) struct Folder {
    root: PathBuf,
    _kept: TempDir,
    pub(crate) clock: Arc<TestClock>,
    openings: u64,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self::kept_in(tempfile::tempdir().unwrap())
    }

    /// Like `new`, but in memory if possible, for tests that write much.
    fn in_memory() -> Self {
        let memory = tempfile::tempdir_in("/dev/shm");
        Self::kept_in(memory.or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn kept_in(kept: TempDir) -> Self {
        let clock = TestClock::at_noon();
        Self {
            root: kept.path().join("state"),
            _kept: kept,
            clock,
            openings: 0,
        }
    }

    /// Copies `fixture` into a new folder. Restores modes, empty folders and the trailing zeros of segments, which Git
    /// does not store.
    pub(crate) fn holding(fixture: &Path) -> Self {
        let mut folder = Self::new();
        folder.openings = 1_000;
        copy(fixture, &folder.root);
        for empty in ["index", "journal", "quarantine", "tmp"] {
            std::fs::create_dir_all(folder.root.join(empty)).unwrap();
        }
        for entry in std::fs::read_dir(folder.root.join("journal")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_len(store::file::Options::default().first_segment_bytes)
                    .unwrap();
            }
        }
        let found = folder.walk().into_iter();
        let found = found.map(|(path, found)| (path, found.private()));
        for (path, mode) in found.chain([(String::new(), 0o700)]) {
            let path = folder.root.join(path);
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        folder
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.as_str())
    }

    /// Removes the index, so that the next start reads all record files.
    pub(crate) fn remove_index(&self) {
        drop(std::fs::remove_dir_all(self.root.join("index")));
    }

    /// Changes a record and writes it with a valid checksum.
    pub(crate) fn change<R: Record>(&self, key: &Key, change: impl FnOnce(&mut R)) {
        // The live index still has the old record.
        self.remove_index();
        let bytes = std::fs::read(self.path(key)).unwrap();
        let stamp = envelope::read(&bytes).unwrap().stamp;
        let mut record: R = envelope::open(&bytes).unwrap();
        change(&mut record);
        std::fs::write(self.path(key), envelope::seal(&record, stamp).unwrap()).unwrap();
    }

    pub(crate) async fn try_open(&mut self) -> Result<(State, Closing), OpenError> {
        self.openings += 1;
        // Each opening stands for a new process.
        self.clock.set_by.store(0, Ordering::SeqCst);
        let entropy = Box::new(Seeded(self.openings));
        State::open(Options {
            root: self.root.clone(),
            allow_network: false,
            clock: self.clock.clone(),
            entropy,
            cycle_pause: CYCLE_PAUSE,
        })
        .await
    }

    pub(crate) async fn open(&mut self) -> Opened {
        Opened::new(self.try_open().await.unwrap())
    }

    /// Opens as if the disk were full.
    pub(crate) async fn open_on_full_disk(&mut self) -> Opened {
        let (low, full) = (Watermark::NONE, EVERYTHING);
        self.open_below(Watermarks { low, full }).await
    }

    /// Opens as if the disk were getting full.
    pub(crate) async fn open_on_low_disk(&mut self) -> Opened {
        let (low, full) = (EVERYTHING, Watermark::NONE);
        self.open_below(Watermarks { low, full }).await
    }

    async fn open_below(&mut self, watermarks: Watermarks) -> Opened {
        let options = Options {
            root: self.root.clone(),
            allow_network: false,
            clock: self.clock.clone(),
            entropy: Box::new(Seeded(0)),
            cycle_pause: CYCLE_PAUSE,
        };
        let of_store = store::file::Options {
            watermarks,
            ..store::file::Options::default()
        };
        Opened::new(State::open_with(options, of_store).await.unwrap())
    }

    /// A new folder with the workflow and a runner.
    pub(crate) async fn prepared() -> (Self, Opened, Fleet) {
        Self::new().prepare().await
    }

    /// Like `prepared`, in memory.
    pub(crate) async fn prepared_in_memory() -> (Self, Opened, Fleet) {
        Self::in_memory().prepare().await
    }

    async fn prepare(mut self) -> (Self, Opened, Fleet) {
        let opened = self.open().await;
        let fleet = opened.prepare().await;
        (self, opened, fleet)
    }

    pub(crate) fn advance(&self, millis: i64) {
        self.clock.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// The folder as a crash would leave it now: a copy made while the state is in use.
    pub(crate) fn crashed(&self) -> Self {
        let twin = self.empty_twin();
        copy(&self.root, &twin.root);
        twin
    }

    /// A new folder that does not exist yet. Its clock shows the same time.
    pub(crate) fn empty_twin(&self) -> Self {
        let place = self._kept.path().parent().unwrap();
        let kept = tempfile::tempdir_in(place).unwrap();
        let now = self.clock.now.load(Ordering::SeqCst);
        Self {
            root: kept.path().join("state"),
            _kept: kept,
            clock: TestClock::at(now),
            openings: self.openings,
        }
    }
}

/// The workflow and the runner of the fixture.
#[derive(Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) workflow: WorkflowId,
    pub(crate) runner: RunnerId,
}

impl Fleet {
    /// The key of a scan of the workflow.
    pub(crate) fn scan(self, name: &str) -> ScanKey {
        ScanKey {
            workflow: self.workflow,
            scan: scan_name(name),
        }
    }
}

pub(crate) fn scan_name(name: &str) -> ScanName {
    serde_json::from_value(serde_json::Value::from(name)).unwrap()
}

/// The worker token of a job, derived from its id.
pub(crate) fn token(job: JobId) -> TokenHash {
    TokenHash::of(&job.to_string())
}

/// Inputs that are too large for a job's record.
pub(crate) fn large_inputs() -> Inputs {
    let note = InputValue::Text("x".repeat(100_000));
    Inputs::Inline(BTreeMap::from([("note".to_owned(), note)]))
}

/// The command that records a received artifact.
pub(crate) fn artifact(job: JobId, name: &str, received: &Staged) -> StoreArtifact {
    StoreArtifact {
        job,
        token: token(job),
        name: name.to_owned(),
        size: received.size(),
        sha256: hex(&received.sha256()),
        content_digest: "d1".to_owned(),
    }
}

/// A completion in which the only step succeeded.
pub(crate) fn completion(job: JobId, log_records: u64) -> Complete {
    let step = Step {
        name: None,
        index: 0,
        status: StepStatus::Succeeded,
        outcome: Some(StepOutcome::Succeeded),
        exit_code: Some(0),
        error: None,
        started_at: None,
        finished_at: None,
    };
    Complete {
        job,
        token: token(job),
        steps: vec![step],
        outputs: BTreeMap::new(),
        left_out: BTreeMap::new(),
        log_records,
        log_bytes: 0,
        failure: None,
        large_inputs: LargeInputs::NotCopied,
    }
}

pub(crate) fn line(text: impl Into<String>) -> NewLogRecord {
    let at = Timestamp::from_timestamp_millis(NOON).unwrap();
    NewLogRecord {
        at,
        step: Some(0),
        stream: Stream::Stdout,
        text: text.into(),
    }
}
