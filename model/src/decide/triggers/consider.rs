//! Checking an expression after a success.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cause::unseen;
use super::{Obstacle, Subject, not_made, replace};
use crate::change::Change;
use crate::decide::{Command, Decision, Refusal, Urgency};
use crate::job::Trigger;
use crate::ledger::{Evaluation, LedgerRecord, Outcome};
use crate::moment::Moment;
use crate::view::{View, histories, unreadable};
use crate::world::World;
use crate::{JobId, Reason, ScanKey};

/// Evaluate the expression of a scan, if there is a success for which it has not been evaluated.
#[derive(Debug, Clone)]
pub struct Consider {
    pub scan: ScanKey,
    /// The length of the logs of the jobs that may be replaced, in bytes.
    pub log_bytes: BTreeMap<JobId, u64>,
}

impl Command for Consider {
    /// The new job, when there is one.
    type Answer = Option<JobId>;
    const URGENCY: Urgency = Urgency::Beginning;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        read_by_trigger(world, &self.scan)
    }

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Option<JobId>>, Refusal> {
        let view = View::of(world);
        let mut latest = world.latest_job();
        let before = latest;
        let replacing = Replacing::Allowed(&self.log_bytes);
        let changes = consider(&view, &self.scan, &mut latest, replacing, moment)?;
        Ok(Decision {
            changes,
            answer: (latest != before).then_some(latest),
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
        histories(&subject.workflow, expression.references())
    })
}

/// Whether a check may cancel jobs that a new one replaces.
#[derive(Debug, Clone, Copy)]
pub(in crate::decide) enum Replacing<'a> {
    /// It may. The map holds the length of their logs, in bytes.
    Allowed(&'a BTreeMap<JobId, u64>),
    /// Not in this commit. The success stays unseen and is checked in a commit of its own.
    Later,
}

/// Checks an expression. There are no changes if no success is unseen or a job is in the way.
pub(in crate::decide) fn consider(
    view: &View<'_>,
    key: &ScanKey,
    latest: &mut JobId,
    replacing: Replacing<'_>,
    moment: &mut Moment<'_>,
) -> Result<Vec<Change>, Refusal> {
    let Some(subject) = Subject::new(view, key) else {
        return Ok(Vec::new());
    };
    let Some(scan) = subject.scan() else {
        return Ok(Vec::new());
    };
    let Some(expression) = &scan.on.expr else {
        return Ok(Vec::new());
    };
    let Some(cause) = unseen(&subject, scan) else {
        return Ok(Vec::new());
    };
    let no_logs = BTreeMap::new();
    let (replaced, log_bytes) = match (subject.obstacle(scan.overlap), replacing) {
        (Obstacle::None, _) => (Vec::new(), &no_logs),
        // The success stays unseen. It is checked when that job has ended.
        (Obstacle::Unfinished(_), _) => return Ok(Vec::new()),
        (Obstacle::Replaceable(_), Replacing::Later) => return Ok(Vec::new()),
        (Obstacle::Replaceable(jobs), Replacing::Allowed(log_bytes)) => (jobs, log_bytes),
    };
    // The success stays unseen. It is checked when the history can be read.
    if unreadable(view.world(), &subject.workflow, expression.references()).is_some() {
        return Ok(Vec::new());
    }
    let evaluation = view.evaluate(&subject.workflow, key, expression, None, moment);
    let mut head = view.head(key).as_ref().clone();
    head.considered = Some(moment.order);
    let mut changes = Vec::new();
    let outcome = match verdict(&evaluation) {
        Err(reason) => not_made(reason),
        Ok(()) => {
            let id = JobId::next(*latest, moment.now, moment.entropy);
            *latest = id;
            changes.extend(replace(&replaced, log_bytes, id, &mut head, moment)?);
            let job = subject.job(scan, id, Trigger::Expr, Reason::ExpressionTrue, moment);
            head.latest_job = head.latest_job.max(id);
            changes.push(Change::Job(Arc::new(job)));
            Outcome::Made { job: id }
        }
    };
    let record = LedgerRecord {
        at: moment.now,
        cause,
        evaluation: Some(evaluation),
        outcome,
    };
    changes.extend(head.note(record)?);
    changes.push(Change::Head(Arc::new(head)));
    Ok(changes)
}

/// Why an evaluation makes no job, if it makes none.
pub(super) fn verdict(evaluation: &Evaluation) -> Result<(), Reason> {
    match evaluation.holds() {
        Some(true) => Ok(()),
        Some(false) => Err(Reason::ExpressionFalse),
        None => Err(Reason::ExpressionFailed {
            message: evaluation.clause.error.clone().unwrap_or_default(),
        }),
    }
}

/// Evaluate the expression of a scan and change nothing.
#[derive(Debug, Clone)]
pub struct ExplainTrigger {
    pub scan: ScanKey,
}

impl Command for ExplainTrigger {
    /// None when the scan has no expression, or is gone.
    type Answer = Option<Evaluation>;
    const URGENCY: Urgency = Urgency::Finishing;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        read_by_trigger(world, &self.scan)
    }

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Option<Evaluation>>, Refusal> {
        let view = View::of(world);
        let Some(subject) = Subject::new(&view, &self.scan) else {
            return Ok(Decision::unchanged(None));
        };
        let Some(expression) = subject.scan().and_then(|scan| scan.on.expr.as_ref()) else {
            return Ok(Decision::unchanged(None));
        };
        if let Some(scan) = unreadable(world, &subject.workflow, expression.references()) {
            return Err(Refusal::HistoryUnreadable {
                scan: scan.scan.to_string(),
            });
        }
        let evaluation =
            Some(view.evaluate(&subject.workflow, &self.scan, expression, None, moment));
        Ok(Decision::unchanged(evaluation))
    }
}
