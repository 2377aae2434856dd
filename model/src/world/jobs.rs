//! The unfinished jobs, with indices.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Bound;
use std::sync::Arc;

use super::queue::{Place, Queue};
use crate::job::{Job, JobState, Run};
use crate::limits::WORKER_LAST_WORDS;
use crate::matching::Turn;
use crate::principal::Share;
use crate::{JobId, ProjectId, RevisionId, RunnerId, ScanKey, Timestamp, TokenHash};

#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    by_id: BTreeMap<JobId, Arc<Job>>,
    queue: Queue,
    running: HashMap<RunnerId, BTreeSet<JobId>>,
    /// The running jobs by the first deadline in their records.
    by_end: BTreeSet<(Timestamp, JobId)>,
    by_scan: HashMap<ScanKey, BTreeSet<JobId>>,
    /// The number of jobs of a scan that wait for a runner; never 0.
    scheduled: HashMap<ScanKey, usize>,
    by_revision: HashMap<RevisionId, usize>,
    by_project: HashMap<ProjectId, usize>,
    /// Only for dispatched jobs.
    by_share: HashMap<Share, usize>,
    /// The running jobs by the tokens for their steps.
    by_token: HashMap<TokenHash, JobId>,
    /// Jobs that somebody has ended. Until the token for their steps expires, the steps may clean up.
    cleaning_up: HashMap<TokenHash, Arc<Job>>,
    /// The same, by the time at which their tokens expire.
    clean_up_ends: BTreeSet<(Timestamp, TokenHash)>,
}

impl Jobs {
    /// Stores the job's new record. A finished job is removed.
    pub(super) fn apply(&mut self, job: &Arc<Job>, place: Place) {
        let before = if job.state.is_terminal() {
            self.by_id.remove(&job.id)
        } else {
            self.by_id.insert(job.id, job.clone())
        };
        if let Some(before) = before {
            self.forget(&before);
            self.note_clean_up(job);
        }
        match &job.state {
            JobState::Scheduled => {
                self.queue.file(turn(job), job.id, place);
                *self.scheduled.entry(job.scan_key()).or_default() += 1;
            }
            JobState::Running { run } => {
                self.running
                    .entry(run.runner.id)
                    .or_default()
                    .insert(job.id);
                self.by_end.insert((run.ends_by(), job.id));
                let token = run.job_token.as_ref().map(|token| (token.hash, job.id));
                self.by_token.extend(token);
            }
            JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled { .. }
            | JobState::Skipped { .. } => return,
        }
        self.by_scan
            .entry(job.scan_key())
            .or_default()
            .insert(job.id);
        *self.by_revision.entry(job.revision.id).or_default() += 1;
        *self.by_project.entry(job.project).or_default() += 1;
        if let Some(share) = job.actor.share(job.project) {
            *self.by_share.entry(share).or_default() += 1;
        }
    }

    /// Keeps a job that somebody ended while it was running.
    fn note_clean_up(&mut self, job: &Arc<Job>) {
        let Some((token, run)) = job.clean_up() else {
            return;
        };
        // `run` expires at most this long after the present.
        let past = run.expires_at - WORKER_LAST_WORDS;
        while let Some((_, over)) = self.clean_up_ends.first().filter(|(end, _)| *end <= past) {
            self.cleaning_up.remove(over);
            self.clean_up_ends.pop_first();
        }
        self.clean_up_ends.insert((run.expires_at, token.hash));
        self.cleaning_up.insert(token.hash, job.clone());
    }

    /// The job whose steps may have this token.
    pub(super) fn with_token(&self, token: &TokenHash) -> Option<&Arc<Job>> {
        let running = self.by_token.get(token).and_then(|id| self.get(*id));
        running.or_else(|| self.cleaning_up.get(token))
    }

    /// The job with this id, if its steps may still run.
    pub(super) fn with_steps(&self, id: JobId) -> Option<&Arc<Job>> {
        let ended = || self.cleaning_up.values().find(|job| job.id == id);
        self.get(id).or_else(ended)
    }

    /// Changes the deadlines of all running jobs. The change must not affect another index.
    pub(super) fn each_run(&mut self, change: impl Fn(JobId, &mut Run)) {
        // These are not stored, and nothing depends on their last two minutes.
        self.cleaning_up.clear();
        self.clean_up_ends.clear();
        self.by_end.clear();
        for (id, job) in &mut self.by_id {
            if let JobState::Running { .. } = job.state
                && let Some(run) = Arc::make_mut(job).state.run_mut()
            {
                change(*id, run);
                self.by_end.insert((run.ends_by(), *id));
            }
        }
    }

    pub(super) fn delayed(&self) -> impl Iterator<Item = JobId> {
        self.queue.delayed()
    }

    /// Changes the time before which a waiting job may not be offered.
    pub(super) fn postpone(&mut self, id: JobId, change: impl Fn(Timestamp) -> Timestamp) {
        let Some(job) = self.by_id.get_mut(&id) else {
            return;
        };
        let job = Arc::make_mut(job);
        if let Some(at) = job.not_before.map(change) {
            job.not_before = Some(at);
            self.queue.retime(turn(job), id, at);
        }
    }

    /// Removes a job from every index.
    fn forget(&mut self, job: &Job) {
        self.queue.remove(turn(job), job.id);
        if let Some(run) = job.state.run() {
            leave(&mut self.running, &run.runner.id, job.id);
            self.by_end.remove(&(run.ends_by(), job.id));
            if let Some(token) = &run.job_token {
                self.by_token.remove(&token.hash);
            }
        }
        leave(&mut self.by_scan, &job.scan_key(), job.id);
        if matches!(job.state, JobState::Scheduled) {
            count_down(&mut self.scheduled, &job.scan_key());
        }
        count_down(&mut self.by_revision, &job.revision.id);
        count_down(&mut self.by_project, &job.project);
        if let Some(share) = job.actor.share(job.project) {
            count_down(&mut self.by_share, &share);
        }
    }

    /// Moves a waiting job in the queue, after its scan has changed.
    pub(super) fn refile(&mut self, job: &Job, place: Place) {
        self.queue.file(turn(job), job.id, place);
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Arc<Job>> {
        self.by_id.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        self.by_id.values()
    }

    pub(super) const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The jobs a runner executes, oldest first.
    pub(super) fn running_on(&self, runner: RunnerId) -> impl Iterator<Item = &Arc<Job>> {
        self.named(self.running.get(&runner).into_iter().flatten())
    }

    /// The busy runners with their jobs.
    pub(super) fn busy_runners(
        &self,
    ) -> impl Iterator<Item = (RunnerId, impl Iterator<Item = &Arc<Job>>)> {
        let running = self.running.iter();
        running.map(move |(runner, jobs)| (*runner, self.named(jobs.iter())))
    }

    /// The running jobs with a deadline up to `time`, earliest first.
    pub(super) fn ended_by(&self, time: Timestamp) -> impl Iterator<Item = &Arc<Job>> {
        let ended = self.by_end.iter().take_while(move |(end, _)| *end <= time);
        self.named(ended.map(|(_, job)| job))
    }

    /// The first deadline after `time`.
    pub(super) fn next_end(&self, time: Timestamp) -> Option<Timestamp> {
        let later = (Bound::Excluded((time, JobId::LAST)), Bound::Unbounded);
        self.by_end.range(later).next().map(|(end, _)| *end)
    }

    /// Every running job, by runner.
    pub(super) fn running(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.named(self.running.values().flatten())
    }

    /// The unfinished jobs of a scan, oldest first.
    pub(super) fn of_scan(&self, scan: &ScanKey) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        let ids = self.by_scan.get(scan).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id))
    }

    pub(super) fn unfinished_of(&self, scan: &ScanKey) -> usize {
        self.by_scan.get(scan).map_or(0, BTreeSet::len)
    }

    pub(super) fn scheduled_of(&self, scan: &ScanKey) -> usize {
        self.scheduled.get(scan).copied().unwrap_or(0)
    }

    pub(super) fn of_project(&self, project: ProjectId) -> usize {
        self.by_project.get(&project).copied().unwrap_or(0)
    }

    pub(super) fn of_share(&self, share: Share) -> usize {
        self.by_share.get(&share).copied().unwrap_or(0)
    }

    /// True if an unfinished job needs this revision.
    pub(super) fn uses(&self, revision: RevisionId) -> bool {
        self.by_revision.contains_key(&revision)
    }

    fn named<'a>(
        &'a self,
        ids: impl Iterator<Item = &'a JobId> + 'a,
    ) -> impl Iterator<Item = &'a Arc<Job>> + 'a {
        ids.filter_map(|id| self.by_id.get(id))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
            && self.queue.is_empty()
            && self.running.is_empty()
            && self.by_end.is_empty()
            && self.by_scan.is_empty()
            && self.scheduled.is_empty()
            && self.by_revision.is_empty()
            && self.by_project.is_empty()
            && self.by_share.is_empty()
            && self.by_token.is_empty()
    }
}

fn count_down<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

const fn turn(job: &Job) -> Turn {
    Turn {
        project: job.project,
        workflow: job.workflow.id,
    }
}

fn leave<K: Hash + Eq>(index: &mut HashMap<K, BTreeSet<JobId>>, key: &K, job: JobId) {
    if let Some(jobs) = index.get_mut(key) {
        jobs.remove(&job);
        if jobs.is_empty() {
            index.remove(key);
        }
    }
}
