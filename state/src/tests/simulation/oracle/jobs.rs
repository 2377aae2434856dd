//! Checks that a job is claimed at most once and never returns to an earlier state, that a failed job gets its retry,
//! and that a chain of retries ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Job, JobId, JobState, Outcome, Reason, Run, ScanKey};

use super::{Known, News, Now, Oracle, is_retried, is_success, is_triggered};
use crate::State;
use crate::tests::simulation::scenario::ATTEMPTS;
use crate::tests::simulation::time::SECOND;

impl Oracle {
    pub(super) async fn check_jobs(
        &mut self,
        state: &State,
        live: &[Arc<Job>],
        news: &BTreeMap<ScanKey, News>,
        now: Now,
    ) {
        let mut ids: BTreeSet<JobId> = BTreeSet::new();
        for record in news.values().flat_map(|news| &news.records) {
            match &record.outcome {
                Outcome::Made { job } | Outcome::Skipped { job, .. } => {
                    ids.insert(*job);
                }
                Outcome::NotMade { .. } => {}
            }
        }
        let is_open = |known: &&Known| !known.record.state.is_terminal();
        let open = self.jobs.values().filter(is_open);
        ids.extend(open.map(|known| known.record.id));
        ids.extend(
            self.dispatched
                .iter()
                .filter(|id| !self.jobs.contains_key(*id)),
        );
        let mut seen: Vec<Arc<Job>> = live.to_vec();
        for job in live {
            ids.remove(&job.id);
        }
        while let Some(id) = ids.pop_first() {
            let job = state.job(id).await.unwrap();
            let job = job.unwrap_or_else(|| panic!("{id} is lost"));
            ids.extend(job.retried_by.filter(|id| !self.jobs.contains_key(id)));
            seen.push(job);
        }
        let mut succeeded = Vec::new();
        for job in &seen {
            if self.see(job, now.steady) && is_success(job) {
                succeeded.push(job.clone());
            }
        }
        self.note_successes(state, succeeded);
        for job in &seen {
            self.check_retry_of(job, now);
            self.check_place(job, now);
            if self.jobs[&job.id].ended == Some(self.round) {
                self.check_retried(state, job, now);
            }
        }
    }

    /// Records the state of a job. True if its end is new.
    fn see(&mut self, job: &Arc<Job>, steady: i64) -> bool {
        let round = self.round;
        if is_triggered(job) {
            self.triggered.insert(job.id);
        }
        let known = self.jobs.entry(job.id).or_insert_with(|| Known {
            record: job.clone(),
            since: round,
            ended: None,
            ended_at: 0,
        });
        let before = &known.record.state;
        let is_forward = match (before, &job.state) {
            (JobState::Scheduled, _) => true,
            (JobState::Running { run }, JobState::Scheduled) => panic!("{} lost {run:?}", job.id),
            (before, after) if before.is_terminal() => {
                before.kind() == after.kind() && before.end() == after.end()
            }
            (before, after) => {
                let worker = |state: &JobState| state.run().map(|run| (run.token, run.claimed));
                worker(before) == worker(after)
            }
        };
        assert!(
            is_forward,
            "{} was {before:?} and is {:?}",
            job.id, job.state
        );
        if let (Some(token), run) = (self.started.get(&job.id), job.state.run()) {
            let is_its = run.is_some_and(|run| run.token == *token);
            assert!(
                is_its,
                "{} is executed with a token that differs from its claim",
                job.id
            );
        }
        known.record = job.clone();
        let is_new_end = job.state.is_terminal() && known.ended.is_none();
        if is_new_end {
            (known.ended, known.ended_at) = (Some(round), steady);
        }
        is_new_end
    }

    /// Orders the successes of one check by the order in the heads, if known.
    fn note_successes(&mut self, state: &State, mut succeeded: Vec<Arc<Job>>) {
        state.read(|world| {
            succeeded.sort_by_key(|job| {
                let head = world.head(&job.scan_key());
                let mut successes = head.into_iter().flat_map(|head| &head.successes);
                let known = successes.find(|success| success.job == job.id);
                known.map(|success| success.order)
            });
        });
        self.successes += succeeded.len();
        for job in succeeded {
            let of_scan = self.scans.entry(job.scan_key()).or_default();
            of_scan.successes.push(job.id);
        }
    }

    /// A retry has one finished predecessor, and begins after its pause.
    fn check_retry_of(&self, job: &Job, now: Now) {
        let Some(retry) = job.retry_of else {
            return;
        };
        assert!(
            retry.attempt <= ATTEMPTS + 1 && retry.attempts == ATTEMPTS + 1,
            "{} has too many attempts: {retry:?}",
            job.id
        );
        let Some(before) = self.jobs.get(&retry.job) else {
            panic!("{} retries {}, which is unknown", job.id, retry.job);
        };
        assert_eq!(before.record.retried_by, Some(job.id), "{}", retry.job);
        assert_eq!(retry.attempt, before.record.attempt() + 1, "{}", job.id);
        let reason = before.record.reason();
        assert!(
            is_retried(reason),
            "{} is retried after {reason:?}",
            retry.job
        );
        // The pause is in the world's time, which a new process takes from the wall clock.
        let is_claimed_now = job.state.run().is_some()
            && self.jobs[&job.id].since < self.round
            && self.clock_set < before.ended_at;
        if is_claimed_now {
            let pause = now.steady - before.ended_at;
            assert!(pause >= SECOND, "{} begins after {pause} ms", job.id);
        }
    }

    /// A failed job has a retry unless there is a reason against it.
    fn check_retried(&self, state: &State, job: &Job, now: Now) {
        let Some(time) = now.time else {
            return;
        };
        let has_expired = |run: &Run| run.expires_at <= time;
        let is_out_of_time =
            *job.reason() != Reason::TimedOut && job.state.run().is_some_and(has_expired);
        let wants = state.read(|world| {
            let scan = world.revision(job.revision.id);
            let scan = scan.and_then(|revision| revision.definition.scan(job.scan.as_str()));
            // If the revision is no longer in the world, nothing is checked.
            scan.map(|scan| {
                scan.retry.is_some()
                    && world.suspension(&job.scan_key()).is_none()
                    && !world.is_orphan(job)
            })
        });
        let wants = wants.map(|wants| {
            wants && is_retried(job.reason()) && job.attempt() <= ATTEMPTS && !is_out_of_time
        });
        if let Some(wants) = wants {
            let reason = job.reason();
            assert_eq!(
                job.retried_by.is_some(),
                wants,
                "whether {} is retried after {reason:?}",
                job.id
            );
        }
    }

    /// Two jobs of the same chain never run at the same time.
    pub(in crate::tests::simulation) fn check_executions(&self, live: impl Iterator<Item = JobId>) {
        let mut chains: BTreeMap<JobId, JobId> = BTreeMap::new();
        for job in live {
            let mut first = job;
            while let Some(retry) = self
                .jobs
                .get(&first)
                .and_then(|known| known.record.retry_of)
            {
                first = retry.job;
            }
            if let Some(other) = chains.insert(first, job) {
                panic!("{job} and {other} run at the same time");
            }
        }
    }
}
