//! Checking a schedule whose slots are due.

use std::sync::Arc;

use workflow::{CatchUp, Overlap, Scan};

use super::slots::{Slots, slots};
use super::{Obstacle, Subject, not_made, replace};
use crate::change::Change;
use crate::decide::{Command, Decision, Refusal, Urgency};
use crate::job::Trigger;
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::limits::SLOT_LATE;
use crate::moment::Moment;
use crate::scan_head::ScanHead;
use crate::view::View;
use crate::world::World;
use crate::{JobId, Reason, ScanKey, Timestamp};

/// Check the schedule of a scan whose next slot is due.
#[derive(Debug, Clone)]
pub struct Fire {
    pub scan: ScanKey,
}

impl Command for Fire {
    /// The newest new job, when there is one.
    type Answer = Option<JobId>;
    const URGENCY: Urgency = Urgency::Beginning;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Option<JobId>>, Refusal> {
        let view = View::of(world);
        let Some(subject) = Subject::new(&view, &self.scan) else {
            return Ok(Decision::unchanged(None));
        };
        let Some((scan, since)) = subject.scan().zip(world.cursor(&self.scan)) else {
            return Ok(Decision::unchanged(None));
        };
        let Some(slots) = slots(&scan.on, since, moment.now) else {
            return Ok(Decision::unchanged(None));
        };
        fire(&subject, scan, slots, moment)
    }
}

fn fire(
    subject: &Subject<'_>,
    scan: &Scan,
    slots: Slots,
    moment: &mut Moment<'_>,
) -> Result<Decision<Option<JobId>>, Refusal> {
    let mut head = subject.view.head(&subject.key).as_ref().clone();
    let Some(&last) = slots.newest.last() else {
        return Ok(Decision::unchanged(None));
    };
    let mut changes = Vec::new();
    let mut made = None;
    let wanted = wanted(scan, &slots, moment.now);
    let missed = slots.count - wanted.len() as u64;
    if missed > 0 {
        let until = wanted
            .first()
            .and_then(|first| slots.newest.iter().rev().find(|slot| *slot < first))
            .copied();
        let cause = Cause::Slots {
            first: slots.first,
            last: if wanted.is_empty() {
                last
            } else {
                until.unwrap_or(slots.first)
            },
            count: missed,
        };
        changes.extend(head.note(record(moment, cause, not_made(Reason::SlotsMissed)))?);
    }
    match subject.obstacle(scan.overlap) {
        // The slot stays due until that job has ended. Later slots merge with it.
        Obstacle::Unfinished(_) if scan.overlap == Overlap::Queue => {
            return Ok(Decision::unchanged(None));
        }
        Obstacle::Unfinished(job) => {
            for slot in wanted {
                let outcome = not_made(Reason::Overlap { job });
                changes.extend(head.note(record(moment, at(slot), outcome))?);
            }
        }
        Obstacle::None => {
            for slot in wanted {
                made = Some(make(
                    subject,
                    scan,
                    slot,
                    made,
                    &mut head,
                    &mut changes,
                    moment,
                )?);
            }
        }
        Obstacle::Replaceable(jobs) => {
            if let [older @ .., slot] = wanted.as_slice() {
                for slot in older {
                    let outcome = not_made(Reason::SlotsMissed);
                    changes.extend(head.note(record(moment, at(*slot), outcome))?);
                }
                let job = make(subject, scan, *slot, None, &mut head, &mut changes, moment)?;
                changes.extend(replace(&jobs, job, &mut head, moment)?);
                made = Some(job);
            }
        }
    }
    head.cron_cursor = Some(last);
    changes.push(Change::Head(Arc::new(head)));
    Ok(Decision {
        changes,
        answer: made,
    })
}

/// The slots that make a job: the newest, and of the missed ones those that `on.catch_up` allows. With `overlap: queue`
/// the newest slot may have waited for a job to end, so it is never late.
fn wanted(scan: &Scan, slots: &Slots, now: Timestamp) -> Vec<Timestamp> {
    let is_late = |slot: &Timestamp| scan.overlap != Overlap::Queue && now - *slot > SLOT_LATE;
    match scan.on.catch_up {
        CatchUp::Latest => slots.newest.last().copied().into_iter().collect(),
        CatchUp::None => slots
            .newest
            .last()
            .copied()
            .filter(|slot| !is_late(slot))
            .into_iter()
            .collect(),
        CatchUp::All => slots.newest.clone(),
    }
}

fn make(
    subject: &Subject<'_>,
    scan: &Scan,
    slot: Timestamp,
    before: Option<JobId>,
    head: &mut ScanHead,
    changes: &mut Vec<Change>,
    moment: &mut Moment<'_>,
) -> Result<JobId, Refusal> {
    let latest = before.unwrap_or_else(|| subject.view.world().latest_job());
    let id = JobId::next(latest, moment.now, moment.entropy);
    let job = subject.job(scan, id, Trigger::Cron, Reason::SlotDue { slot }, moment);
    head.latest_job = head.latest_job.max(id);
    changes.push(Change::Job(Arc::new(job)));
    changes.extend(head.note(record(moment, at(slot), Outcome::Made { job: id }))?);
    Ok(id)
}

const fn at(slot: Timestamp) -> Cause {
    Cause::Slots {
        first: slot,
        last: slot,
        count: 1,
    }
}

const fn record(moment: &Moment<'_>, cause: Cause, outcome: Outcome) -> LedgerRecord {
    LedgerRecord {
        at: moment.now,
        cause,
        evaluation: None,
        outcome,
    }
}
