//! Checks the invariants after every step, with records that the simulation keeps itself.

mod interactions;
mod jobs;
mod laps;
mod messages;
mod processed;
mod slots;
mod spans;
mod successes;
mod users;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;
use model::{
    ChannelId, Holder, Job, JobId, JobState, LedgerRecord, Outcome, Reason, ScanHead, ScanKey,
    Timestamp, TokenHash, Trigger, WorkflowId, WorkflowStatus, World,
};
use store::Reader;
use store::memory::MemoryStore;
use workflow::Scan;

use self::interactions::{Kept, Listener, newest};
use self::messages::Arrived;
use self::slots::Schedule;
use self::successes::Consumer;
use self::users::Users;
use super::scenario::files;
use crate::State;
use crate::layout::Layout;

/// The time of a check.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) steady: i64,
    pub(super) wall: Timestamp,
    /// The world's time; `None` for a check of the state after a crash.
    pub(super) time: Option<Timestamp>,
}

/// The oracle's knowledge about a job.
struct Known {
    record: Arc<Job>,
    /// The number of the first check that saw the job.
    since: u64,
    ended: Option<u64>,
    ended_at: i64,
}

/// The oracle's knowledge about a scan.
#[derive(Default)]
struct OfScan {
    /// How far the ledger was read: the page, and the bytes in this page.
    page: u64,
    read: usize,
    /// How many evaluations the open run of equal outcomes has.
    run: u64,
    schedule: Option<Schedule>,
    /// The cursor of its schedule, which stays if the schedule is removed.
    cursor: Option<Timestamp>,
    consumer: Option<Consumer>,
    listener: Option<Listener>,
    /// Whether a resumption still has to return to slots.
    has_passed: bool,
    /// How often a suspension of the scan ended.
    resumptions: usize,
    is_suspended: bool,
    /// The successes of its jobs, in their order.
    successes: Vec<JobId>,
}

/// New entries of a ledger since the last check.
#[derive(Default)]
struct News {
    records: Vec<LedgerRecord>,
    /// How many evaluations were only counted.
    counted: u64,
}

#[derive(Default)]
pub(super) struct Oracle {
    round: u64,
    scans: BTreeMap<ScanKey, OfScan>,
    jobs: BTreeMap<JobId, Known>,
    /// Jobs made by triggers, according to the jobs.
    triggered: BTreeSet<JobId>,
    /// Jobs made by triggers, according to the ledgers.
    made: BTreeSet<JobId>,
    /// Jobs whose execution has started, with their tokens.
    started: BTreeMap<JobId, TokenHash>,
    /// Dispatched jobs, according to the answers.
    dispatched: BTreeSet<JobId>,
    users: Users,
    /// When the clock was last set.
    clock_set: i64,
    /// The remaining time of each expiry at the time of its last check.
    left: HashMap<Holder, (i64, TimeDelta)>,
    pub(super) successes: usize,
    /// What has arrived at the channels.
    arrived: BTreeMap<ChannelId, Arrived>,
    pub(super) messages: usize,
    kept: Kept,
    /// How many jobs interactions have started.
    pub(super) heard: usize,
}

impl Oracle {
    pub(super) const fn clock_was_set(&mut self, steady: i64) {
        self.clock_set = steady;
    }

    pub(super) fn started(&mut self, job: JobId, token: TokenHash) {
        let before = self.started.insert(job, token);
        assert!(before.is_none(), "{job} is executed twice");
    }

    pub(super) fn success_was_reported(&mut self, job: JobId) {
        let known = self.jobs.get(&job);
        let has_succeeded = known
            .is_none_or(|known| !known.record.state.is_terminal() || is_success(&known.record));
        assert!(
            has_succeeded,
            "{job} has not succeeded, although its runner got this answer"
        );
    }

    pub(super) fn was_dispatched(&mut self, job: JobId) {
        self.dispatched.insert(job);
    }

    /// The newest jobs, for requests of people.
    pub(super) fn newest_jobs(&self, limit: usize) -> Vec<Arc<Job>> {
        let newest = self.jobs.values().rev().take(limit);
        newest.map(|known| known.record.clone()).collect()
    }

    pub(super) fn workflow_of(&self, job: JobId) -> Option<WorkflowId> {
        Some(self.jobs.get(&job)?.record.workflow.id)
    }

    /// Checks the whole state.
    pub(super) async fn check(&mut self, state: &State, store: &MemoryStore, now: Now) {
        self.round += 1;
        self.read_interactions(state).await;
        let (heads, live) = state.read(|world| {
            let heads: Vec<Arc<ScanHead>> = world.heads().cloned().collect();
            let live: Vec<Arc<Job>> = world.jobs().cloned().collect();
            (heads, live)
        });
        state.read(|world| {
            self.check_scans(world, now);
            self.check_spans(world, now);
        });
        let mut news: BTreeMap<ScanKey, News> = BTreeMap::new();
        for head in &heads {
            let of_scan = self.scans.entry(head.key()).or_default();
            let found = of_scan.read_ledger(head, store).await;
            news.insert(head.key(), found);
        }
        self.check_jobs(state, &live, &news, now).await;
        for head in &heads {
            let key = head.key();
            let Some(found) = news.get(&key) else {
                continue;
            };
            self.note_made(&key, found);
            self.check_slots(&key, head, found, now.wall);
            self.check_evaluations(&key, found);
            self.check_interactions(&key, head, found);
            self.check_processed(head);
        }
        assert_eq!(
            self.triggered, self.made,
            "jobs and ledgers disagree about the jobs that triggers made"
        );
    }

    /// Records which scans exist, and which are suspended.
    fn check_scans(&mut self, world: &World, now: Now) {
        for file in files() {
            let active = world
                .workflow(file.id)
                .filter(|workflow| match workflow.record.status {
                    WorkflowStatus::Active => true,
                    WorkflowStatus::Retired { .. } => false,
                });
            let sha256 = active.map(|workflow| workflow.revision.record.text.sha256.clone());
            let version = file
                .versions
                .iter()
                .find(|version| Some(&version.sha256) == sha256.as_ref());
            for key in file.scans() {
                let scan = version.and_then(|version| version.definition.scan(key.scan.as_str()));
                let is_suspended = world.suspension(&key).is_some();
                let (round, newest) = (self.round, newest(&self.kept));
                self.scans
                    .entry(key)
                    .or_default()
                    .arm(scan, is_suspended, now, round, newest);
            }
        }
    }

    fn note_made(&mut self, scan: &ScanKey, news: &News) {
        for record in &news.records {
            match &record.outcome {
                Outcome::Made { job } => {
                    assert!(self.made.insert(*job), "{job} is made twice");
                    let of = self.jobs.get(job).map(|known| known.record.scan_key());
                    assert_eq!(of.as_ref(), Some(scan), "the scan of {job}");
                }
                Outcome::NotMade { .. } | Outcome::Skipped { .. } => {}
            }
        }
    }

    /// Checks the state once all jobs have finished.
    pub(super) fn check_at_rest(&self, world: &World, wall: Timestamp) {
        for (key, of_scan) in &self.scans {
            of_scan.check_slots_at_rest(key, wall);
        }
        for id in &self.dispatched {
            assert!(
                self.jobs.contains_key(id),
                "{id} was dispatched and is lost"
            );
        }
        self.check_successes_at_rest(world);
        self.check_interactions_at_rest();
        self.check_news_at_rest(world);
    }
}

impl OfScan {
    /// Follows the definition of the scan in the newest revision.
    fn arm(&mut self, scan: Option<&Scan>, is_suspended: bool, now: Now, round: u64, newest: u64) {
        if self.is_suspended && !is_suspended {
            self.resumptions += 1;
        }
        self.is_suspended = is_suspended;
        let cursor = self.cursor;
        self.schedule = Schedule::following(self.schedule.take(), scan, cursor, now.wall);
        self.consumer = Consumer::following(self.consumer.take(), scan, round);
        self.listener = Listener::following(self.listener.take(), scan, newest);
    }

    /// Reads the ledger entries since the last check.
    async fn read_ledger(&mut self, head: &ScanHead, store: &MemoryStore) -> News {
        let mut news = News::default();
        loop {
            let key = Layout::ledger(&head.key(), self.page);
            let bytes = store.get(&key).await.unwrap().unwrap_or_default();
            for line in bytes[self.read..].split_inclusive(|byte| *byte == b'\n') {
                news.take(serde_json::from_slice(line).unwrap(), &mut self.run);
            }
            self.read = bytes.len();
            if self.page == head.ledger.page {
                break;
            }
            (self.page, self.read) = (self.page + 1, 0);
        }
        let run = head.repeats.as_ref().map_or(0, |repeats| repeats.count);
        assert!(run >= self.run, "{} lost evaluations", head.scan);
        news.counted += run - self.run;
        self.run = run;
        news
    }
}

impl News {
    fn take(&mut self, record: LedgerRecord, run: &mut u64) {
        if let model::Cause::Repeats { count, .. } = &record.cause {
            assert!(
                *count >= *run,
                "a run of evaluations became shorter: {record:?}"
            );
            self.counted += count - *run;
            *run = 0;
        } else {
            assert_eq!(
                *run, 0,
                "a run of evaluations is missing in the ledger: {record:?}"
            );
            self.records.push(record);
        }
    }
}

fn is_success(job: &Job) -> bool {
    matches!(job.state, JobState::Succeeded { .. })
}

/// True if a trigger made the job, rather than a retry.
fn is_triggered(job: &Job) -> bool {
    match job.trigger {
        Trigger::Dispatch => false,
        Trigger::Cron | Trigger::Expr | Trigger::Callback => job.retry_of.is_none(),
    }
}

/// Whether a job with this reason is retried.
fn is_retried(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::StepFailed { .. }
            | Reason::RunnerLost
            | Reason::ArtifactFailed { .. }
            | Reason::TimedOut
    )
}
