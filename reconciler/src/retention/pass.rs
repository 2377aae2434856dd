//! One pass over the finished jobs of a workflow, oldest first.

use std::sync::Arc;

use model::decide::Prune;
use model::limits::REMOVAL_OPERATIONS;
use model::retention::{
    Backlog, Candidate, FinishedJob, Next, Position, RetentionPolicy, Stock, next,
};
use model::{Actor, Job, JobId, Reason, ScanKey, Timestamp, WorkflowId, World};
use state::ReadError;

use super::{Retained, ScanRetained};
use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::{JOBS_AHEAD, PRUNED_AT_ONCE};
use crate::removal::operations;

/// Applies a policy to a workflow. Also returns the time when the next job may have to be removed, if known. A dry run
/// only counts.
pub(super) async fn pass(
    handle: &Handle,
    workflow: WorkflowId,
    policy: RetentionPolicy,
    is_dry_run: bool,
) -> Result<(Retained, Option<Timestamp>), RemovalError> {
    let begin = |world: &World| Pass::begin(world, workflow, policy, is_dry_run);
    let mut pass = handle.state().read(begin);
    for _ in 0..PRUNED_AT_ONCE / JOBS_AHEAD {
        let round = move |handle: Handle| async move {
            let next = pass.round(&handle).await?;
            Ok((pass, next))
        };
        let (after, next) = handle.with_removal_lock(round).await?;
        pass = after;
        if let Next::Nothing(next) = next {
            let next = next.into_iter().chain(pass.silent).min();
            return Ok((pass.report(false), next));
        }
    }
    Ok((pass.report(true), Some(handle.now())))
}

struct Pass {
    policy: RetentionPolicy,
    is_dry_run: bool,
    /// True if no job is removed by age, because the clock is not trusted.
    age_waits: bool,
    /// The remaining jobs, without jobs that have just ended. Each round counts them again.
    stock: Stock,
    /// Jobs that have just ended. They will be removed later, so no other jobs are removed instead of them.
    just_ended: Stock,
    /// The oldest jobs of each scan that were not examined yet.
    backlogs: Vec<Backlog>,
    /// More about each scan, in the same order.
    scans: Vec<OfScan>,
    /// The earliest time when a job that has just ended may be removed.
    silent: Option<Timestamp>,
}

struct OfScan {
    key: ScanKey,
    protected: Vec<JobId>,
    /// The history is loaded up to this position.
    loaded: Position,
    /// True if the whole history is loaded.
    is_whole: bool,
    /// All jobs of the history before this position are decided.
    from: Position,
    /// The committed value of `from`.
    committed: Position,
    /// True if a job after `from` has just ended. Then the next pass begins at `from` again.
    waits: bool,
    /// Decisions since the last commit.
    remove: Vec<(FinishedJob, Arc<Job>)>,
    stay: Vec<FinishedJob>,
    gone: Vec<JobId>,
    report: ScanRetained,
}

impl Pass {
    /// Begins a pass. The history is read later.
    fn begin(
        world: &World,
        workflow: WorkflowId,
        policy: RetentionPolicy,
        is_dry_run: bool,
    ) -> Self {
        let mut pass = Self {
            policy,
            is_dry_run,
            age_waits: false,
            stock: Stock::default(),
            just_ended: Stock::default(),
            backlogs: Vec::new(),
            scans: Vec::new(),
            silent: None,
        };
        for head in world.heads().filter(|head| head.workflow == workflow) {
            let key = head.key();
            let retention = world.retention(&key);
            let from = retention.map(|it| it.from).unwrap_or_default();
            let passed_over = retention.into_iter().flat_map(|it| it.passed_over.clone());
            pass.backlogs.push(
                passed_over
                    .map(|job| Candidate { job, end: None })
                    .collect(),
            );
            pass.scans.push(OfScan {
                protected: Vec::new(),
                loaded: from,
                is_whole: false,
                from,
                committed: from,
                waits: false,
                remove: Vec::new(),
                stay: Vec::new(),
                gone: Vec::new(),
                report: ScanRetained {
                    scan: head.scan.clone(),
                    removed: Stock::default(),
                    kept: Stock::default(),
                    newest_successes: 0,
                    just_ended: 0,
                    unreadable: 0,
                    unfinished: world.unfinished_of(&key) as u64,
                },
                key,
            });
        }
        pass
    }

    /// Counts the present jobs. People and other passes may remove jobs between two rounds; with an old count this pass
    /// would remove too many.
    fn recount(&mut self, world: &World) {
        self.stock = Stock::default();
        for OfScan {
            key,
            protected,
            report,
            ..
        } in &mut self.scans
        {
            if let Some(head) = world.head(key) {
                *protected = head.successes.iter().map(|success| success.job).collect();
                report.kept = Stock::of(&world.retained(head));
                if self.is_dry_run {
                    report.kept.subtract(report.removed);
                }
            }
            self.stock.add(report.kept);
        }
        self.stock.subtract(self.just_ended);
    }

    /// Decides about at most [`JOBS_AHEAD`] jobs, and commits the decisions.
    async fn round(&mut self, handle: &Handle) -> Result<Next, RemovalError> {
        handle.state().read(|world| self.recount(world));
        let ages = handle.clock().ages();
        let now = ages.unwrap_or_else(|| handle.now());
        self.age_waits |= ages.is_none() && self.policy.age.is_some();
        let policy = RetentionPolicy {
            age: self.policy.age.filter(|_| !self.age_waits),
            ..self.policy
        };
        let mut outcome = Next::Nothing(None);
        for _ in 0..JOBS_AHEAD {
            if policy.age.is_none() && !policy.is_exceeded_by(self.stock) {
                // The policy is met without reading the history.
                outcome = Next::Nothing(None);
                break;
            }
            self.load(handle).await?;
            outcome = next(&policy, now, self.stock, &self.backlogs);
            match outcome {
                Next::Job(number) => self.decide_first(handle, number, now).await?,
                Next::Nothing(_) => break,
            }
        }
        if !self.is_dry_run {
            for of_scan in &mut self.scans {
                of_scan.commit(handle).await?;
            }
        }
        Ok(outcome)
    }

    /// Loads more jobs for every scan whose loaded jobs are all examined. The first load is needed even if earlier passes
    /// kept jobs, because the end time of a job is judged by the end times of later jobs.
    async fn load(&mut self, handle: &Handle) -> Result<(), RemovalError> {
        for (backlog, of_scan) in self.backlogs.iter_mut().zip(&mut self.scans) {
            let is_used_up = backlog.iter().all(|candidate| candidate.end.is_none());
            if of_scan.is_whole || !is_used_up {
                continue;
            }
            let state = handle.state();
            let found = state.finished_after(&of_scan.key, of_scan.loaded, JOBS_AHEAD);
            let found = found.await?;
            of_scan.is_whole = found.is_whole;
            let last = found.jobs.last().and_then(|candidate| candidate.end);
            of_scan.loaded = last.unwrap_or(of_scan.loaded);
            backlog.extend(found.jobs);
        }
        Ok(())
    }

    /// Decides about the first job of a scan, which the policy selects for removal.
    async fn decide_first(
        &mut self,
        handle: &Handle,
        number: usize,
        now: Timestamp,
    ) -> Result<(), RemovalError> {
        let first = self.backlogs.get_mut(number).and_then(Backlog::pop_front);
        let (Some(Candidate { job, end }), Some(of_scan)) = (first, self.scans.get_mut(number))
        else {
            return Ok(());
        };
        let id = job.id;
        let record = match handle.state().job(id).await {
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::error!(job = %id, %error, "a job that should be removed cannot be read and stays");
                of_scan.report.unreadable += 1;
                of_scan.stays(job, end);
                return Ok(());
            }
            record => record?,
        };
        let Some(record) = record else {
            // The job was already removed and counted.
            of_scan.gone.extend(end.is_none().then_some(id));
            of_scan.read_to(end);
            return Ok(());
        };
        if of_scan.protected.contains(&id) {
            of_scan.report.newest_successes += 1;
            of_scan.stays(job, end);
            return Ok(());
        }
        let bytes = record.bytes();
        let one = Stock { jobs: 1, bytes };
        self.stock.subtract(one);
        if let Some(until) = record.may_log_until(now) {
            self.just_ended.add(one);
            of_scan.report.just_ended += 1;
            of_scan.waits |= end.is_some();
            self.silent = self.silent.into_iter().chain([until]).min();
            return Ok(());
        }
        of_scan.report.removed.add(one);
        of_scan.report.kept.subtract(one);
        if !self.is_dry_run {
            of_scan.removes(handle, job, record).await?;
        }
        of_scan.read_to(end);
        Ok(())
    }

    fn report(self, has_more: bool) -> Retained {
        let mut scans: Vec<_> = self.scans.into_iter().map(|scan| scan.report).collect();
        scans.sort_by(|one, other| one.scan.cmp(&other.scan));
        Retained {
            policy: self.policy,
            scans,
            has_more,
            age_waits: self.age_waits,
        }
    }
}

impl OfScan {
    /// Marks the job whose line ends at `end` as decided.
    fn read_to(&mut self, end: Option<Position>) {
        self.from = end.filter(|_| !self.waits).unwrap_or(self.from);
    }

    /// Keeps the job. No entry is needed if the next pass reads its line again, or if an entry exists.
    fn stays(&mut self, job: FinishedJob, end: Option<Position>) {
        self.stay
            .extend((end.is_some() && !self.waits).then_some(job));
        self.read_to(end);
    }

    async fn removes(
        &mut self,
        handle: &Handle,
        job: FinishedJob,
        record: Arc<Job>,
    ) -> Result<(), RemovalError> {
        let record = handle
            .lightened(record, Reason::Pruned, &Actor::Daemon)
            .await?;
        let pending: usize = self.remove.iter().map(|(_, job)| operations(job)).sum();
        if pending + operations(&record) > REMOVAL_OPERATIONS {
            self.commit(handle).await?;
        }
        self.remove.push((job, record));
        Ok(())
    }

    /// Commits the decisions since the last commit.
    async fn commit(&mut self, handle: &Handle) -> Result<(), RemovalError> {
        let prune = Prune {
            scan: self.key.clone(),
            from: self.from,
            remove: std::mem::take(&mut self.remove),
            stay: std::mem::take(&mut self.stay),
            gone: std::mem::take(&mut self.gone),
        };
        if prune.remove.is_empty() && prune.gone.is_empty() && self.from == self.committed {
            return Ok(());
        }
        let removed: Vec<JobId> = prune.remove.iter().map(|(job, _)| job.id).collect();
        handle.state().submit(prune).await?;
        for job in removed {
            handle.state().logs().forget(job);
        }
        self.committed = self.from;
        Ok(())
    }
}
