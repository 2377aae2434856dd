//! The head of a scan: the data that decisions need about earlier jobs, without the history.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::callback::ConsideredInteractions;
use crate::job::{EndState, Job, Run};
use crate::ledger::Repeats;
use crate::limits::PROCESSED_SCANS;
use crate::{Hops, JobId, Order, Reason, ScanKey, Timestamp, WorkflowId};

/// A summary of a scan's earlier jobs. It is written at each claim and each end of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanHead {
    pub workflow: WorkflowId,
    pub scan: ScanName,
    /// The newest job. Ids keep increasing after a restart.
    pub latest_job: JobId,
    pub latest_claim: Option<Order>,
    /// The number of finished jobs by end state, over the lifetime of the scan.
    pub totals: Totals,
    /// The newest two successes, newest first.
    pub successes: Vec<Success>,
    /// True if `processed` is not empty, so that the loss of its file is noticed.
    #[serde(default, skip_serializing_if = "is_false", rename = "news")]
    pub has_processed: bool,
    /// The results of other scans that its successful jobs have processed. Like the digests of successes, they have
    /// their own file.
    #[serde(skip)]
    pub processed: BTreeMap<ScanName, Processed>,
    /// The newest failure, if it is newer than all successes. A job with a retry has not failed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The newest success, for expectations. Absent in heads of an older daemon until the next success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<Succeeded>,
    /// The last end of a job. Absent in heads of an older daemon until the next end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The failures since the newest success, if there are any. A failed job that is retried does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
    /// The former name of the scan, if it has taken over the records of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<ScanName>,
    /// The position of the next history line.
    pub history: TailEnd,
    /// The slots of its schedule are handled up to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_cursor: Option<Timestamp>,
    /// Its expression was evaluated for successes up to this position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub considered: Option<Order>,
    /// The cursor of its schedule before the first slot that was due during a suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_slots: Option<Timestamp>,
    /// The value of `considered` before the first success during a suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_successes: Option<Order>,
    /// Up to where it has considered the interactions that start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactions: Option<ConsideredInteractions>,
    /// The position of the next ledger record.
    #[serde(default, skip_serializing_if = "TailEnd::is_empty")]
    pub ledger: TailEnd,
    /// The latest repeated outcomes that created no job. They have their own file, because a reason may be long and a
    /// head is written with every claim.
    #[serde(skip)]
    pub repeats: Option<Repeats>,
}

impl ScanHead {
    /// The head of a scan without jobs.
    pub const fn new(workflow: WorkflowId, scan: ScanName) -> Self {
        Self {
            workflow,
            scan,
            latest_job: JobId::FIRST,
            latest_claim: None,
            totals: Totals::NONE,
            successes: Vec::new(),
            has_processed: false,
            processed: BTreeMap::new(),
            failure: None,
            succeeded: None,
            ended: None,
            failing: None,
            renamed_from: None,
            history: TailEnd { page: 0, bytes: 0 },
            cron_cursor: None,
            considered: None,
            passed_slots: None,
            passed_successes: None,
            interactions: None,
            ledger: TailEnd { page: 0, bytes: 0 },
            repeats: None,
        }
    }

    pub fn key(&self) -> ScanKey {
        ScanKey::new(self.workflow, &self.scan)
    }

    /// Records that a suspension ended a job before it started. The cause of the job is checked again at the resumption.
    pub(crate) fn pass_over(&mut self, job: &Job) {
        match job.reason {
            Reason::SlotDue { slot, .. } => {
                let before = slot - TimeDelta::seconds(1);
                let passed = self
                    .passed_slots
                    .map_or(before, |passed| passed.min(before));
                self.passed_slots = Some(passed);
            }
            Reason::ExpressionTrue => self.passed_successes = Some(Order::START),
            _ => {}
        }
    }

    /// The end of the newest success. A head of an older daemon knows only its begin.
    pub fn succeeded_at(&self) -> Option<Timestamp> {
        let begun = || Some(self.successes.first()?.job.moment());
        self.succeeded.map(|success| success.at).or_else(begun)
    }

    /// The failures since the newest success that nobody has settled. A head of an older daemon knows only the newest.
    pub(crate) fn failing(&self) -> Option<Failing> {
        let newest = self.failure.map(|failure| Failing {
            job: failure.job,
            failures: 1,
        });
        self.failing
            .or(newest)
            .filter(|failing| failing.failures > 0)
    }

    /// True if there are [`Digests`] to store.
    pub fn has_digests(&self) -> bool {
        let has_artifacts = self.successes.iter().any(|success| success.artifacts > 0);
        has_artifacts || self.has_processed
    }

    /// Records the results that a successful job has processed, as frozen in its context. Of two jobs, the job with the
    /// later claim counts, independent of the order of their ends.
    pub(crate) fn process(&mut self, run: &Run) {
        for (name, history) in &run.context.scans {
            let success = history
                .newest_success_ids
                .first()
                .zip(history.newest_successes.first())
                .filter(|_| history.news.is_some());
            let parsed = success.and_then(|(job, digests)| {
                let scan = ScanName::new(name.as_str()).ok()?;
                Some((scan, job.parse().ok()?, digests.clone()))
            });
            let Some((scan, success, digests)) = parsed else {
                continue;
            };
            let known = self.processed.get(&scan);
            if known.is_none_or(|known| known.claimed < run.claimed) {
                let processed = Processed {
                    success,
                    claimed: run.claimed,
                    digests,
                };
                self.processed.insert(scan, processed);
                self.has_processed = true;
            }
        }
        // Scans that the current revision uses were processed at this claim or later.
        let mut former: Vec<(Order, ScanName)> = self
            .processed
            .iter()
            .filter(|(_, processed)| processed.claimed < run.claimed)
            .map(|(scan, processed)| (processed.claimed, scan.clone()))
            .collect();
        former.sort_unstable();
        let over = self.processed.len().saturating_sub(PROCESSED_SCANS);
        for (_, scan) in former.into_iter().take(over) {
            self.processed.remove(&scan);
        }
    }

    /// Takes over the record of the scan's former name: its newest results, what they have processed, and the state of
    /// its triggers. Counters, history and ledger stay under the former name.
    pub(crate) fn take_over(&mut self, former: &Self) {
        self.renamed_from = Some(former.scan.clone());
        self.latest_job = self.latest_job.max(former.latest_job);
        self.latest_claim = self.latest_claim.max(former.latest_claim);
        self.considered = self.considered.max(former.considered);
        self.cron_cursor = self.cron_cursor.max(former.cron_cursor);
        self.passed_slots = former.passed_slots.or(self.passed_slots);
        self.passed_successes = former.passed_successes.or(self.passed_successes);
        self.interactions = former.interactions.or(self.interactions);
        let known: Vec<JobId> = self.successes.iter().map(|success| success.job).collect();
        let new = former.successes.iter();
        let new = new.filter(|success| !known.contains(&success.job));
        self.successes.extend(new.cloned());
        self.successes
            .sort_by_key(|success| std::cmp::Reverse(success.order));
        self.successes.truncate(2);
        let failures = [self.failure, former.failure].into_iter().flatten();
        let newest = self.successes.first().map(|success| success.order);
        self.failure = failures
            .max_by_key(|failure| failure.order)
            .filter(|failure| Some(failure.order) > newest);
        self.succeeded = [self.succeeded, former.succeeded]
            .into_iter()
            .flatten()
            .max_by_key(|success| success.at);
        self.ended = self.ended.max(former.ended);
        let failing = [self.failing, former.failing].into_iter().flatten();
        let newest = self.succeeded.map(|success| success.job);
        self.failing = failing
            .max_by_key(|failing| failing.job)
            .filter(|failing| Some(failing.job) > newest);
        for (scan, processed) in &former.processed {
            let known = self.processed.get(scan);
            if known.is_none_or(|known| known.claimed < processed.claimed) {
                self.processed.insert(scan.clone(), processed.clone());
            }
        }
        self.has_processed |= former.has_processed;
    }

    /// True if the processed results are lost or not read yet.
    pub fn lacks_processed(&self) -> bool {
        self.has_processed && self.processed.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A success of another scan that a successful job has processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processed {
    /// The job of the other scan.
    pub success: JobId,
    /// The claim of the job that processed the success, in the order of decisions.
    pub claimed: Order,
    /// Artifact name to content digest.
    pub digests: BTreeMap<String, String>,
}

/// Lifetime counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub skipped: u64,
    /// Bytes of logs, inputs and artifacts when the jobs ended.
    #[serde(default)]
    pub bytes: u64,
}

impl Totals {
    pub const NONE: Self = Self {
        succeeded: 0,
        failed: 0,
        cancelled: 0,
        skipped: 0,
        bytes: 0,
    };

    pub const fn jobs(&self) -> u64 {
        self.succeeded + self.failed + self.cancelled + self.skipped
    }

    /// The number of jobs that expressions can read. They do not read skipped jobs.
    pub const fn seen(&self) -> u64 {
        self.succeeded + self.failed + self.cancelled
    }

    pub const fn add(&mut self, more: &Self) {
        self.succeeded += more.succeeded;
        self.failed += more.failed;
        self.cancelled += more.cancelled;
        self.skipped += more.skipped;
        self.bytes += more.bytes;
    }

    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        Self {
            succeeded: self.succeeded.max(other.succeeded),
            failed: self.failed.max(other.failed),
            cancelled: self.cancelled.max(other.cancelled),
            skipped: self.skipped.max(other.skipped),
            bytes: self.bytes.max(other.bytes),
        }
    }

    #[must_use]
    pub const fn without(&self, removed: &Self) -> Self {
        Self {
            succeeded: self.succeeded.saturating_sub(removed.succeeded),
            failed: self.failed.saturating_sub(removed.failed),
            cancelled: self.cancelled.saturating_sub(removed.cancelled),
            skipped: self.skipped.saturating_sub(removed.skipped),
            bytes: self.bytes.saturating_sub(removed.bytes),
        }
    }

    pub const fn of(&self, state: EndState) -> u64 {
        match state {
            EndState::Succeeded => self.succeeded,
            EndState::Failed => self.failed,
            EndState::Cancelled => self.cancelled,
            EndState::Skipped => self.skipped,
        }
    }

    /// Counts a job that ended in this state, with its bytes on disk.
    pub const fn count(&mut self, state: EndState, bytes: u64) {
        self.bytes += bytes;
        *match state {
            EndState::Succeeded => &mut self.succeeded,
            EndState::Failed => &mut self.failed,
            EndState::Cancelled => &mut self.cancelled,
            EndState::Skipped => &mut self.skipped,
        } += 1;
    }
}

/// The data of a success for `is_available` and `has_diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    pub job: JobId,
    /// The position of its completion in the order of decisions.
    pub order: Order,
    /// The number of its artifacts.
    pub artifacts: usize,
    /// The job's position in its chain of causes, for the jobs that this success starts.
    #[serde(default, skip_serializing_if = "Hops::is_none")]
    pub hops: Hops,
    /// Artifact name to content digest, even after the files are removed. They have their own file, because their
    /// number is not bounded and a head is written with every claim.
    #[serde(skip)]
    pub digests: BTreeMap<String, String>,
}

impl Success {
    /// True if digests are missing, because they are not read yet or are lost.
    pub fn lacks_digests(&self) -> bool {
        self.digests.len() != self.artifacts
    }
}

/// The data of a failure for `has_failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub job: JobId,
    /// The position of its end in the order of decisions.
    pub order: Order,
    /// The job's position in its chain of causes, for the jobs that this failure starts.
    #[serde(default, skip_serializing_if = "Hops::is_none")]
    pub hops: Hops,
}

/// The end of a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Succeeded {
    pub job: JobId,
    pub at: Timestamp,
    /// Seconds from its claim to its end.
    pub took: u64,
    /// The end of the first success after the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The end of a job, ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ended {
    pub at: Timestamp,
    pub state: EndState,
}

/// Failures that a person should look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The newest one.
    pub job: JobId,
    /// 0 if a person has settled the matter.
    pub failures: u64,
}

/// The content digests of a job's artifacts, by name.
pub fn digests_of(job: &Job) -> BTreeMap<String, String> {
    let artifacts = job.state.run().into_iter().flat_map(|run| &run.artifacts);
    artifacts
        .map(|artifact| (artifact.name.clone(), artifact.content_digest.clone()))
        .collect()
}

/// The artifact digests of a scan's newest two successes, and of the processed successes of other scans. In memory they
/// are in the head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    pub workflow: WorkflowId,
    pub scan: ScanName,
    /// Success to artifact name to content digest.
    pub successes: BTreeMap<JobId, BTreeMap<String, String>>,
    /// The processed results of other scans.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processed: BTreeMap<ScanName, Processed>,
}

impl Digests {
    pub fn of(head: &ScanHead) -> Self {
        let successes = head.successes.iter();
        Self {
            workflow: head.workflow,
            scan: head.scan.clone(),
            successes: successes
                .map(|success| (success.job, success.digests.clone()))
                .collect(),
            processed: head.processed.clone(),
        }
    }

    pub fn key(&self) -> ScanKey {
        ScanKey::new(self.workflow, &self.scan)
    }
}

/// The end of an append-only sequence of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TailEnd {
    /// The current page. The first is 0.
    pub page: u64,
    /// The length of the current page.
    pub bytes: u64,
}

impl TailEnd {
    /// True if no page has content.
    const fn is_empty(&self) -> bool {
        self.page == 0 && self.bytes == 0
    }

    /// Reserves `length` bytes and returns their position. A page that has reached `full` bytes is closed.
    pub(crate) fn advance(&mut self, length: u64, full: u64) -> Self {
        let at = *self;
        let bytes = self.bytes + length;
        *self = if bytes >= full {
            Self {
                page: self.page + 1,
                bytes: 0,
            }
        } else {
            Self { bytes, ..at }
        };
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NIGHTLY, TestWorld, key, sha256};

    #[test]
    fn the_json_of_a_head_contains_no_digests() {
        let mut test = TestWorld::new();
        let workflow = test.push("nightly", NIGHTLY);
        let digests = BTreeMap::from([("hosts".to_owned(), sha256("hosts"))]);
        let success = Success {
            job: "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap(),
            order: Order::default(),
            artifacts: 1,
            hops: Hops::default(),
            digests: digests.clone(),
        };
        let head = ScanHead {
            successes: vec![success],
            ..ScanHead::new(workflow, key(workflow, "subdomains_all").scan)
        };
        let json = serde_json::to_string(&head).unwrap();
        assert!(!json.contains(&sha256("hosts")), "{json}");
        let mut read: ScanHead = serde_json::from_str(&json).unwrap();
        assert!(read.successes[0].lacks_digests());
        read.successes[0].digests = digests;
        assert_eq!(read, head);
        assert!(!read.successes[0].lacks_digests());
    }
}
