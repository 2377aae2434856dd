//! Checking an expression again when a runner asks for its job.

use std::sync::Arc;

use workflow::Expression;

use super::Subject;
use super::consider::verdict;
use crate::Actor;
use crate::change::Change;
use crate::decide::Refusal;
use crate::decide::job_end::end_job;
use crate::job::{End, Job, Trigger};
use crate::ledger::{Cause, Evaluation, LedgerRecord, Outcome};
use crate::life_cycle::JobEvent;
use crate::moment::Moment;
use crate::revision::ActiveWorkflow;
use crate::scan_head::ScanHead;
use crate::view::View;
use crate::world::World;

/// Whether a job is still wanted.
pub(in crate::decide) enum Recheck {
    /// The head records that its expression was evaluated, if it has one.
    Wanted(Box<ScanHead>),
    /// Its expression is no longer true.
    Skipped(Arc<Job>, Vec<Change>),
}

/// The expression that decides whether an `expr` job is still wanted. A retry finishes what its expression started,
/// so it is not checked again.
pub(in crate::decide) fn rechecked(
    view: &View<'_>,
    job: &Job,
) -> Option<(ActiveWorkflow, Expression)> {
    match (job.trigger, job.retry_of) {
        (Trigger::Dispatch | Trigger::Cron, _) | (Trigger::Expr, Some(_)) => None,
        (Trigger::Expr, None) => {
            let subject = Subject::new(view, &job.scan_key())?;
            let expression = subject.scan()?.on.expr.clone()?;
            Some((subject.workflow, expression))
        }
    }
}

/// Takes the evaluation of [`rechecked`] with the latest results (specification, "States and transitions").
pub(in crate::decide) fn recheck(
    world: &World,
    job: &Job,
    evaluation: Option<Evaluation>,
    moment: &Moment<'_>,
) -> Result<Recheck, Refusal> {
    let mut head = View::of(world).head(&job.scan_key()).as_ref().clone();
    let Some(evaluation) = evaluation else {
        return Ok(Recheck::Wanted(Box::new(head)));
    };
    // The expression has now been evaluated for these results.
    head.considered = Some(moment.order);
    let Err(reason) = verdict(&evaluation) else {
        return Ok(Recheck::Wanted(Box::new(head)));
    };
    let record = LedgerRecord {
        at: moment.now,
        cause: Cause::Claim { job: job.id },
        evaluation: Some(evaluation),
        outcome: Outcome::Skipped {
            job: job.id,
            reason: reason.clone(),
        },
    };
    let mut changes = head.note(record)?;
    let event = JobEvent::NoLongerWanted(End {
        at: moment.now,
        reason,
        actor: Actor::Daemon,
    });
    let ended = end_job(job, event, 0, &mut head, moment)?;
    let job = ended.job.clone();
    changes.extend(ended.changes());
    changes.push(Change::Head(Arc::new(head)));
    Ok(Recheck::Skipped(job, changes))
}
