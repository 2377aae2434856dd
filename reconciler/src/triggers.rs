//! Checks schedules and expressions in time, and explains why a scan ran or did not run.
//!
//! The commit of a success decides which jobs it starts, if deciding costs little. This task checks the rest: due
//! slots, interactions of callback servers, successes with costly expressions or with more scans than fit into one commit, and triggers that had to wait
//! for a full disk or another job. It evaluates expressions outside of the committer.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use model::callback::{CallbackId, Unconsidered};
use model::decide::{ExplainedTrigger, Fire, Hear};
use model::limits::CLOCK_JUMP;
use model::{Evaluation, Job, LedgerRecord, ScanKey, Timestamp, World};
use state::{DamagedLines, JobFilter, Ledger, ReadError, SubmitError};
use tokio::time::Instant;
use workflow::Sandbox;

use crate::cursors::check_cursors;
use crate::handle::Handle;
use crate::limits::{AT_ONCE, DEADLINE_CHECK, DEFECT_REST, TRIGGER_REST};

#[cfg(test)]
mod tests;
mod unseen;

use unseen::{Considering, unseen};

/// Why a scan ran or did not run.
#[derive(Debug, Clone)]
pub struct Why {
    pub unfinished: Vec<Arc<Job>>,
    pub newest: Option<Arc<Job>>,
    pub next_slot: Option<Timestamp>,
    /// The time up to which its schedule has run, if it is more than an hour ahead of the clock.
    pub ahead: Option<Timestamp>,
    /// The callback server that starts it, at present.
    pub callback: Option<WhyCallback>,
    /// The present value of its expression. None for a time in the past.
    pub evaluation: Option<Evaluation>,
    pub records: Vec<LedgerRecord>,
    pub damaged: Vec<DamagedLines>,
}

/// The callback server that starts a scan. None of it is present if the project has no such server.
#[derive(Debug, Clone, Default)]
pub struct WhyCallback {
    pub server: Option<CallbackId>,
    pub considered: Option<u64>,
    /// Others listen to it, as many as may.
    pub is_unheard: bool,
    /// What the scan has not considered yet, and when its `min_interval` has passed.
    pub unconsidered: Option<(Unconsidered, Timestamp)>,
}

impl WhyCallback {
    fn of(world: &World, scan: &ScanKey, now: Timestamp) -> Option<Self> {
        let workflow = world.workflow(scan.workflow)?;
        let on = workflow.scan(&scan.scan)?.on.callback.clone()?;
        let Some(server) = world.callback_of(workflow.record.project, &on.server) else {
            return Some(Self::default());
        };
        let considered = world.head(scan).and_then(|head| head.interactions);
        let considered = considered.filter(|considered| considered.server == server.id);
        let listening = world.listening(scan);
        Some(Self {
            server: Some(server.id),
            considered: considered.map(|considered| considered.last),
            is_unheard: world.is_unheard(server, scan),
            unconsidered: listening.map(|it| (it.unconsidered.clone(), it.due(now))),
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

pub(crate) async fn pull_triggers(handle: Handle) {
    let state = handle.state();
    let mut changes = state.changed();
    // Scans that could not be checked, and the time of the next attempt.
    let mut resting: HashMap<ScanKey, Instant> = HashMap::new();
    let mut reported = None;
    let mut considering = Considering::default();
    let mut lapsed = pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        resting.retain(|_, until| *until > Instant::now());
        let now = check_cursors(&handle, &mut reported, &mut resting).await;
        let is_resting = |scan: &ScanKey| resting.contains_key(scan);
        let (due, unseen, (heard, next_look), next_slot) = state.read(|world| {
            (
                world.due(now),
                unseen(world, is_resting),
                world.heard(now),
                world.next_slot(now),
            )
        });
        let next = next_slot.into_iter().chain(next_look).min();
        considering.begin(&handle, unseen);
        let due = due.into_iter().filter(|scan| !resting.contains_key(scan));
        let heard = heard.into_iter().filter(|scan| !resting.contains_key(scan));
        let fired = due.map(|scan| {
            let (state, fire) = (state.clone(), Fire { scan: scan.clone() });
            async move { checked(scan, state.submit(fire).await) }.boxed()
        });
        let started = heard.map(|scan| {
            let (state, hear) = (state.clone(), Hear { scan: scan.clone() });
            async move { checked(scan, state.submit(hear).await) }.boxed()
        });
        let checks: Vec<_> = fired.chain(started).collect();
        // Submit them together, so that they share commits.
        let mut fired = stream::iter(checks).buffer_unordered(AT_ONCE);
        while let Some(checked) = fired.next().await {
            if let Err(Failed(scan, rest)) = checked {
                resting.insert(scan, Instant::now() + rest);
            }
        }
        // An untrusted clock may jump again, so wait less.
        let pause = if resting.is_empty() && handle.clock().ages().is_some() {
            until(next, now).min(DEADLINE_CHECK)
        } else {
            until(next, now).min(TRIGGER_REST)
        };
        lapsed.as_mut().reset(Instant::now() + pause);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            failed = considering.ended() => {
                let now = Instant::now();
                resting.extend(failed.into_iter().map(|Failed(scan, rest)| (scan, now + rest)));
            }
            () = &mut lapsed => {}
        }
    }
}

impl Handle {
    /// Explains why a scan ran or did not run, up to `at` if given.
    pub async fn why(
        &self,
        scan: &ScanKey,
        at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Why, WhyError> {
        let evaluation = match at {
            None => self.explain(scan).await?,
            Some(_) => None,
        };
        // For a time in the past, the present value does not matter.
        let too_far = self.now() + CLOCK_JUMP;
        let now = self.now();
        let (unfinished, next_slot, ahead, callback) = self.state().read(|world| match at {
            None => {
                let unfinished = world.jobs_of(scan).rev().take(limit).cloned().collect();
                let cursor = world.followed_until(scan).filter(|it| *it > too_far);
                let callback = WhyCallback::of(world, scan, now);
                (unfinished, world.next_slot_of(scan), cursor, callback)
            }
            Some(_) => (Vec::new(), None, None, None),
        });
        let ledger = self.state().ledger(scan, at, None, limit).await?;
        let Ledger {
            records, damaged, ..
        } = ledger;
        let newest = match at {
            None => self.newest_job(scan).await?,
            Some(_) => None,
        };
        Ok(Why {
            unfinished,
            newest,
            next_slot,
            ahead,
            callback,
            evaluation,
            records,
            damaged,
        })
    }

    /// Evaluates the present value of a scan's expression. None if the scan has no expression.
    async fn explain(&self, scan: &ScanKey) -> Result<Option<Evaluation>, WhyError> {
        let state = self.state();
        let found = state.read(|world| {
            let trigger = ExplainedTrigger::of(world, scan)?;
            let histories = trigger.histories(world);
            Some((trigger, histories))
        });
        let Some((trigger, histories)) = found else {
            return Ok(None);
        };
        let read = state.recent_jobs(histories).await;
        let state = state.clone();
        let evaluating = tokio::task::spawn_blocking(move || {
            let prepared = state.read(|world| trigger.prepare(world, &read))?;
            Ok(Some(prepared.evaluate(&Sandbox::shared()).evaluation))
        });
        match evaluating.await {
            Ok(evaluated) => evaluated.map_err(|refusal| SubmitError::Refused(refusal).into()),
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        }
    }

    /// The newest job of a scan, finished or not. The history is read only if the job in the scan's head was removed.
    async fn newest_job(&self, scan: &ScanKey) -> Result<Option<Arc<Job>>, ReadError> {
        let (unfinished, begun) = self.state().read(|world| {
            let unfinished = world.jobs_of(scan).next_back().cloned();
            (unfinished, world.head(scan).map(|head| head.latest_job))
        });
        let newest = unfinished.as_ref().map(|job| job.id);
        let Some(begun) = begun.filter(|begun| newest.is_none_or(|newest| newest < *begun)) else {
            return Ok(unfinished);
        };
        if let Some(job) = self.state().job(begun).await?
            && job.scan_key() == *scan
        {
            return Ok(Some(job));
        }
        let filter = JobFilter {
            workflow: Some(scan.workflow),
            scan: Some(scan.scan.clone()),
            ..JobFilter::default()
        };
        let page = self.state().jobs(&filter, None, 1).await?;
        Ok(page.jobs.into_iter().next())
    }
}

fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    next.and_then(|next| (next - now).to_std().ok())
        .unwrap_or(DEADLINE_CHECK)
}

/// The trigger of a scan could not be checked. It is checked again after this time.
struct Failed(ScanKey, Duration);

fn checked<A>(scan: ScanKey, answer: Result<A, SubmitError>) -> Result<(), Failed> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) => {
            tracing::warn!(workflow = %scan.workflow, scan = %scan.scan, %error, "a trigger cannot be checked");
            let rest = match error {
                SubmitError::Defect { .. } => DEFECT_REST,
                _ => TRIGGER_REST,
            };
            Err(Failed(scan, rest))
        }
    }
}
