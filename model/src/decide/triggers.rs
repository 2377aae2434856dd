//! Checks the triggers of a scan: a schedule with due slots, or an expression after a success.
//!
//! All decisions here have the same form. They check a [`Subject`], record the check in its head, write the outcome to
//! the ledger, and may create a job.

mod cause;
mod consider;
mod explain;
mod fire;
mod hear;
mod recheck;
mod rewind;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use workflow::{Overlap, Scan, ScanName};

use cause::Unseen;

pub use consider::{Consider, Considered};
pub(super) use consider::{consider, read_by_trigger};
pub use explain::ExplainedTrigger;
pub use fire::Fire;
pub use hear::Hear;
pub(super) use recheck::{Recheck, recheck, rechecked};
pub use rewind::Rewind;

use super::Refusal;
use super::job_end::end_job;
use crate::change::Change;
use crate::job::{End, Inputs, Job, JobState, Trigger};
use crate::ledger::Outcome;
use crate::life_cycle::JobEvent;
use crate::moment::Moment;
use crate::revision::{ActiveWorkflow, WorkflowStatus};
use crate::scan_head::ScanHead;
use crate::view::View;
use crate::world::World;
use crate::{Actor, Hops, JobId, Reason, ScanKey};

/// A scan of an active workflow whose trigger is checked.
struct Subject<'a> {
    view: &'a View<'a>,
    workflow: ActiveWorkflow,
    key: ScanKey,
}

/// The unfinished jobs that prevent another job of a scan.
enum Obstacle {
    None,
    /// This job must end first.
    Unfinished(JobId),
    /// The new job replaces these jobs.
    Replaceable(Vec<Arc<Job>>),
}

impl<'a> Subject<'a> {
    /// None if the workflow is retired or no longer has the scan.
    fn new(view: &'a View<'a>, key: &ScanKey) -> Option<Self> {
        let workflow = active(view.world(), key)?;
        workflow.scan(&key.scan)?;
        Some(Self {
            view,
            workflow,
            key: key.clone(),
        })
    }

    fn scan(&self) -> Option<&Scan> {
        self.workflow.scan(&self.key.scan)
    }

    /// Finds the unfinished jobs that prevent another job (design section 4, `overlap`). A dispatched job is never replaced.
    fn obstacle(&self, overlap: Overlap) -> Obstacle {
        let Some(newest) = self.view.unfinished(&self.key).next() else {
            return Obstacle::None;
        };
        match overlap {
            Overlap::Skip | Overlap::Queue => Obstacle::Unfinished(newest.id),
            Overlap::Replace => {
                let mut unfinished = self.view.unfinished(&self.key);
                match unfinished.find(|job| job.trigger == Trigger::Dispatch) {
                    Some(dispatched) => Obstacle::Unfinished(dispatched.id),
                    None => {
                        Obstacle::Replaceable(self.view.unfinished(&self.key).cloned().collect())
                    }
                }
            }
        }
    }

    /// The scan's group: the scans that can trigger each other, including this scan.
    fn group(&self) -> Option<&BTreeSet<ScanName>> {
        self.workflow
            .revision
            .definition
            .group(self.key.scan.as_str())
    }

    /// A new job of the scan's expression. From the second lap of its group on, the job starts after a pause.
    fn job_of_expression(
        &self,
        scan: &Scan,
        id: JobId,
        unseen: &Unseen,
        moment: &Moment<'_>,
    ) -> Job {
        let scans = self.group().map_or(0, BTreeSet::len);
        let hops = unseen.hops(scans, moment.steady);
        let pause = hops.pause(scans, moment.cycle_pause);
        Job {
            causes: unseen.causes.clone(),
            hops,
            not_before: pause.and_then(|pause| moment.steady.checked_add_signed(pause)),
            ..self.job(scan, id, Trigger::Expr, Reason::ExpressionTrue, moment)
        }
    }

    fn job(
        &self,
        scan: &Scan,
        id: JobId,
        trigger: Trigger,
        reason: Reason,
        moment: &Moment<'_>,
    ) -> Job {
        Job {
            id,
            project: self.workflow.record.project,
            workflow: self.workflow.record.reference(),
            revision: self.workflow.record.revision.clone(),
            scan: self.key.scan.clone(),
            trigger,
            reason,
            actor: Actor::Daemon,
            inputs: Inputs::defaults_of(scan),
            created_at: moment.now,
            rerun_of: None,
            source: None,
            retry_of: None,
            retried_by: None,
            not_before: None,
            causes: Vec::new(),
            hops: Hops::default(),
            callback: None,
            state: JobState::Scheduled,
        }
    }
}

/// Cancels jobs that a newer job replaces.
fn replace(
    jobs: &[Arc<Job>],
    by: JobId,
    head: &mut ScanHead,
    moment: &Moment<'_>,
) -> Result<Vec<Change>, Refusal> {
    let mut changes = Vec::new();
    for job in jobs {
        let event = JobEvent::Cancelled(End {
            at: moment.now,
            reason: Reason::Replaced { by },
            actor: Actor::Daemon,
        });
        let bytes = (moment.log_bytes)(job.id);
        changes.extend(end_job(job, event, bytes, head, moment)?.changes());
    }
    Ok(changes)
}

fn not_made(reason: Reason) -> Outcome {
    Outcome::NotMade { reason }
}

/// The workflow of a scan, if it is active and has the scan.
pub(super) fn active(world: &World, key: &ScanKey) -> Option<ActiveWorkflow> {
    let workflow = world.workflow(key.workflow)?;
    match workflow.record.status {
        WorkflowStatus::Active => workflow.scan(&key.scan).is_some().then_some(workflow),
        WorkflowStatus::Retired { .. } => None,
    }
}
