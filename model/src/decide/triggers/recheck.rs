//! Checking an expression again when a runner asks for its job.

use std::sync::Arc;

use super::Subject;
use super::consider::verdict;
use crate::Actor;
use crate::change::Change;
use crate::decide::Refusal;
use crate::decide::job_end::end_job;
use crate::job::{End, Job, Trigger};
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::life_cycle::JobEvent;
use crate::moment::Moment;
use crate::scan_head::ScanHead;
use crate::view::View;
use crate::world::World;

/// Whether a job is still wanted.
pub(in crate::decide) enum Recheck {
    /// It is. The head records that its expression was evaluated, if it has one.
    Wanted(Box<ScanHead>),
    /// Its expression is no longer true.
    Skipped(Arc<Job>, Vec<Change>),
}

/// Evaluates the expression of an `expr` job with the latest results (specification, "States and transitions"). A retry
/// finishes what its expression has started, so it is not checked again.
pub(in crate::decide) fn recheck(
    world: &World,
    job: &Job,
    moment: &Moment<'_>,
) -> Result<Recheck, Refusal> {
    let view = View::of(world);
    let key = job.scan_key();
    let mut head = view.head(&key).as_ref().clone();
    let expression = match (job.trigger, job.retry_of) {
        (Trigger::Dispatch | Trigger::Cron, _) | (Trigger::Expr, Some(_)) => None,
        (Trigger::Expr, None) => Subject::new(&view, &key).and_then(|subject| {
            let expression = subject.scan()?.on.expr.clone()?;
            Some((subject.workflow, expression))
        }),
    };
    let Some((workflow, expression)) = expression else {
        return Ok(Recheck::Wanted(Box::new(head)));
    };
    let evaluation = view.evaluate(&workflow, &key, &expression, Some(job.id), moment);
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
