//! Checks an expression after a success.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cause::unseen;
use super::{Obstacle, Subject, not_made, replace};
use crate::change::Change;
use crate::decide::{Command, Decision, Evaluate, Refusal, Urgency};
use crate::ledger::{Evaluation, LedgerRecord, Outcome};
use crate::moment::Moment;
use crate::read_set::{Evaluated, cost};
use crate::view::{View, histories, unreadable};
use crate::world::World;
use crate::{JobId, Reason, ScanKey};

/// Evaluate the expression of a scan, if there is a success or an activation for which it was not evaluated yet.
#[derive(Debug, Clone)]
pub struct Consider {
    pub scan: ScanKey,
    pub evaluate: Evaluate<Evaluated>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Considered {
    /// All successes were considered, or an unfinished job prevents a new job. Contains the new job, if one was created.
    Settled(Option<JobId>),
    /// The expression was not evaluated: it costs too much, its inputs have changed, or a history cannot be read.
    Unevaluated,
}

impl Command for Consider {
    type Answer = Considered;
    const URGENCY: Urgency = Urgency::Beginning;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        read_by_trigger(world, &self.scan)
    }

    fn decide(
        mut self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Considered>, Refusal> {
        let view = View::of(world);
        let mut latest = world.latest_job();
        let before = latest;
        let changes = consider(&view, &self.scan, &mut latest, &mut self.evaluate, moment)?;
        let Some(changes) = changes else {
            return Ok(Decision::unchanged(Considered::Unevaluated));
        };
        Ok(Decision {
            changes,
            answer: Considered::Settled((latest != before).then_some(latest)),
        })
    }
}

/// The scans whose jobs the expression of `scan` reads.
pub(in crate::decide) fn read_by_trigger(world: &World, scan: &ScanKey) -> BTreeSet<ScanKey> {
    let view = View::of(world);
    let Some(subject) = Subject::new(&view, scan) else {
        return BTreeSet::new();
    };
    let expression = subject.scan().and_then(|scan| scan.on.expr.as_ref());
    expression.map_or_else(BTreeSet::new, |expression| {
        histories(world, &subject.workflow, expression.references())
    })
}

/// Checks an expression. Returns no changes if all successes were considered or an unfinished job prevents a new job.
/// Returns none if the expression was not evaluated; the success then stays unseen.
pub(in crate::decide) fn consider(
    view: &View<'_>,
    key: &ScanKey,
    latest: &mut JobId,
    evaluate: &mut Evaluate<Evaluated>,
    moment: &mut Moment<'_>,
) -> Result<Option<Vec<Change>>, Refusal> {
    let Some(subject) = Subject::new(view, key) else {
        return Ok(Some(Vec::new()));
    };
    let Some(scan) = subject.scan() else {
        return Ok(Some(Vec::new()));
    };
    let Some(expression) = &scan.on.expr else {
        return Ok(Some(Vec::new()));
    };
    let Some(unseen) = unseen(&subject, scan) else {
        return Ok(Some(Vec::new()));
    };
    let suspension = view.world().suspension(key);
    let replaced = match subject.obstacle(scan.overlap) {
        // A suspended scan creates no job.
        _ if suspension.is_some() => Vec::new(),
        Obstacle::None => Vec::new(),
        // The success stays unseen. It is checked when this job has ended.
        Obstacle::Unfinished(_) => return Ok(Some(Vec::new())),
        Obstacle::Replaceable(jobs) => jobs,
    };
    // The success stays unseen. It is checked when the history can be read again.
    if unreadable(view, &subject.workflow, expression.references()).is_some() {
        return Ok(None);
    }
    let prepare = || view.prepare(&subject.workflow, key, expression, None);
    let evaluation = match evaluate {
        Evaluate::UpTo(left) => {
            let Some(rest) = left.checked_sub(cost(&subject.workflow, expression)) else {
                return Ok(None);
            };
            *left = rest;
            prepare().evaluate(&moment.sandbox).evaluation
        }
        Evaluate::Done(done) if done.matches(&prepare()) => done.evaluation.clone(),
        Evaluate::Done(_) => return Ok(None),
    };
    let mut head = view.head(key).as_ref().clone();
    let before = view.world().considered(key);
    head.considered = Some(moment.order);
    let mut changes = Vec::new();
    let outcome = match (verdict(&evaluation), suspension) {
        (Err(reason), _) => not_made(reason),
        // The expression is evaluated for this success again when the scan is resumed.
        (Ok(()), Some(suspension)) => {
            head.passed_successes.get_or_insert(before);
            not_made(suspension.as_reason())
        }
        (Ok(()), None) => {
            let id = JobId::next(*latest, moment.now, moment.entropy);
            *latest = id;
            changes.extend(replace(&replaced, id, &mut head, moment)?);
            let job = subject.job_of_expression(scan, id, &unseen, moment);
            head.latest_job = head.latest_job.max(id);
            changes.push(Change::Job(Arc::new(job)));
            Outcome::Made { job: id }
        }
    };
    if suspension.is_none() {
        head.passed_successes = None;
    }
    let record = LedgerRecord {
        at: moment.now,
        cause: unseen.cause,
        evaluation: Some(evaluation),
        outcome,
    };
    changes.extend(head.note(record)?);
    changes.push(Change::Head(Arc::new(head)));
    Ok(Some(changes))
}

/// The reason why an evaluation creates no job, if it creates none.
pub(super) fn verdict(evaluation: &Evaluation) -> Result<(), Reason> {
    match evaluation.holds() {
        Some(true) => Ok(()),
        Some(false) => Err(Reason::ExpressionFalse),
        None => Err(Reason::ExpressionFailed {
            message: evaluation.clause.error.clone().unwrap_or_default(),
        }),
    }
}
