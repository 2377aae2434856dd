//! Checks an expression again when a runner claims its job.

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

pub(in crate::decide) enum Recheck {
    /// The job is still wanted. If it has an expression, the head records the evaluation.
    Wanted(Box<ScanHead>),
    /// The expression is no longer true.
    Skipped(Arc<Job>, Vec<Change>),
}

/// The expression that decides whether an `expr` job is still wanted. A retry continues a job that its expression has
/// already started, so it is not checked again.
pub(in crate::decide) fn rechecked(
    view: &View<'_>,
    job: &Job,
) -> Option<(ActiveWorkflow, Expression)> {
    match (job.trigger, job.retry_of) {
        (Trigger::Dispatch | Trigger::Cron | Trigger::Callback, _) | (Trigger::Expr, Some(_)) => {
            None
        }
        (Trigger::Expr, None) => {
            let subject = Subject::new(view, &job.scan_key())?;
            let expression = subject.scan()?.on.expr.clone()?;
            Some((subject.workflow, expression))
        }
    }
}

/// Applies the evaluation of [`rechecked`] for the latest results (specification, "States and transitions").
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
    // These results are now considered.
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
