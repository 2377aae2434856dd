//! Checks a schedule with due slots.

use std::sync::Arc;

use workflow::{CatchUp, Overlap, Scan};

use super::slots::{Slots, slots};
use super::{Obstacle, Subject, not_made, replace};
use crate::change::Change;
use crate::decide::{Command, Decision, Refusal, Urgency};
use crate::job::Trigger;
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::limits::{CATCH_UP, SLOT_LATE};
use crate::moment::Moment;
use crate::scan_head::ScanHead;
use crate::suspension::Suspension;
use crate::view::View;
use crate::world::World;
use crate::{JobId, Reason, ScanKey, Timestamp};

/// Check the schedule of a scan whose next slot is due.
#[derive(Debug, Clone)]
pub struct Fire {
    pub scan: ScanKey,
}

impl Command for Fire {
    /// The newest of the new jobs, if there are any.
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
        let Some((scan, cursor)) = subject.scan().zip(world.cursor(&self.scan)) else {
            return Ok(Decision::unchanged(None));
        };
        let new = slots(&scan.on, cursor, moment.now);
        if let Some(suspension) = world.suspension(&self.scan) {
            let Some(new) = new else {
                return Ok(Decision::unchanged(None));
            };
            return pass_over(&subject, scan, cursor, &new, suspension, moment);
        }
        let until = cursor.min(moment.now);
        let passed = world
            .passed_slots(&self.scan)
            .and_then(|from| slots(&scan.on, from, until));
        let due = Due {
            cursor,
            passed,
            new,
        };
        fire(&subject, scan, &due, moment)
    }
}

/// The slots that are due.
struct Due {
    /// Slots up to this time are recorded.
    cursor: Timestamp,
    /// Slots that were due during a suspension. They were recorded at that time.
    passed: Option<Slots>,
    new: Option<Slots>,
}

impl Due {
    fn newest(&self) -> Vec<Timestamp> {
        let all = self.passed.iter().chain(&self.new);
        let mut newest: Vec<_> = all.flat_map(|slots| slots.newest.clone()).collect();
        newest.drain(..newest.len().saturating_sub(CATCH_UP));
        newest
    }

    fn cause(&self, scan: &Scan, slot: Timestamp) -> Cause {
        if slot > self.cursor {
            of_slots(scan, slot, slot, 1)
        } else {
            let schedule = scan.on.named_schedule_of(slot);
            Cause::Resumed { slot, schedule }
        }
    }
}

/// Records the slots that are due while the scan is suspended. The resumption checks them again.
fn pass_over(
    subject: &Subject<'_>,
    scan: &Scan,
    cursor: Timestamp,
    slots: &Slots,
    suspension: &Suspension,
    moment: &Moment<'_>,
) -> Result<Decision<Option<JobId>>, Refusal> {
    let mut head = subject.view.head(&subject.key).as_ref().clone();
    let Some(&last) = slots.newest.last() else {
        return Ok(Decision::unchanged(None));
    };
    let cause = of_slots(scan, slots.first, last, slots.count);
    let mut changes = head.note(record(moment, cause, not_made(suspension.as_reason())))?;
    head.passed_slots.get_or_insert(cursor);
    head.cron_cursor = Some(last);
    changes.push(Change::Head(Arc::new(head)));
    Ok(Decision {
        changes,
        answer: None,
    })
}

fn fire(
    subject: &Subject<'_>,
    scan: &Scan,
    due: &Due,
    moment: &mut Moment<'_>,
) -> Result<Decision<Option<JobId>>, Refusal> {
    let mut head = subject.view.head(&subject.key).as_ref().clone();
    if due.new.is_none() && due.passed.is_none() {
        return Ok(Decision::unchanged(None));
    }
    let mut changes = Vec::new();
    let mut made = None;
    let wanted = wanted(scan, due, moment.now);
    if let Some(new) = &due.new {
        let wanted = wanted.iter().filter(|slot| **slot > due.cursor);
        changes.extend(note_missed(
            scan,
            new,
            &wanted.copied().collect::<Vec<_>>(),
            &mut head,
            moment,
        )?);
    }
    match subject.obstacle(scan.overlap) {
        // The slot stays due until this job has ended. Later slots are merged with it.
        Obstacle::Unfinished(_) if scan.overlap == Overlap::Queue => {
            return Ok(Decision::unchanged(None));
        }
        Obstacle::Unfinished(job) => {
            for slot in wanted {
                let outcome = not_made(Reason::Overlap { job });
                changes.extend(head.note(record(moment, due.cause(scan, slot), outcome))?);
            }
        }
        Obstacle::None => {
            for slot in wanted {
                made = Some(make(
                    subject,
                    scan,
                    (slot, due.cause(scan, slot)),
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
                    changes.extend(head.note(record(moment, due.cause(scan, *slot), outcome))?);
                }
                let slot = (*slot, due.cause(scan, *slot));
                let job = make(subject, scan, slot, None, &mut head, &mut changes, moment)?;
                changes.extend(replace(&jobs, job, &mut head, moment)?);
                made = Some(job);
            }
        }
    }
    head.cron_cursor = Some(
        due.newest()
            .last()
            .map_or(due.cursor, |last| due.cursor.max(*last)),
    );
    // If the clock was set back, some slots of the suspension are in the future again.
    let are_ahead = due.cursor > moment.now;
    head.passed_slots = head.passed_slots.filter(|_| are_ahead).map(|_| moment.now);
    changes.push(Change::Head(Arc::new(head)));
    Ok(Decision {
        changes,
        answer: made,
    })
}

/// Records the new slots that create no job because they were missed.
fn note_missed(
    scan: &Scan,
    new: &Slots,
    wanted: &[Timestamp],
    head: &mut ScanHead,
    moment: &Moment<'_>,
) -> Result<Vec<Change>, Refusal> {
    let missed = new.count - wanted.len() as u64;
    if missed == 0 {
        return Ok(Vec::new());
    }
    let until = match wanted.first() {
        None => new.newest.last(),
        Some(first) => new.newest.iter().rev().find(|slot| *slot < first),
    };
    let last = until.copied().unwrap_or(new.first);
    let cause = of_slots(scan, new.first, last, missed);
    head.note(record(moment, cause, not_made(Reason::SlotsMissed)))
}

/// The slots that create a job: the newest, and the missed or suspended slots that `on.catch_up` allows. With `overlap:
/// queue`, the newest slot may have waited for the end of a job, so it is never late.
fn wanted(scan: &Scan, due: &Due, now: Timestamp) -> Vec<Timestamp> {
    let newest = due.newest();
    let is_in_time = |slot: &Timestamp| {
        let may_have_waited = scan.overlap == Overlap::Queue;
        *slot > due.cursor && (may_have_waited || now - *slot <= SLOT_LATE)
    };
    match scan.on.catch_up {
        CatchUp::Latest => newest.last().copied().into_iter().collect(),
        CatchUp::None => newest
            .last()
            .copied()
            .filter(is_in_time)
            .into_iter()
            .collect(),
        CatchUp::All => newest,
    }
}

fn make(
    subject: &Subject<'_>,
    scan: &Scan,
    (slot, cause): (Timestamp, Cause),
    before: Option<JobId>,
    head: &mut ScanHead,
    changes: &mut Vec<Change>,
    moment: &mut Moment<'_>,
) -> Result<JobId, Refusal> {
    let latest = before.unwrap_or_else(|| subject.view.world().latest_job());
    let id = JobId::next(latest, moment.now, moment.entropy);
    let schedule = scan.on.named_schedule_of(slot);
    let reason = Reason::SlotDue { slot, schedule };
    let job = subject.job(scan, id, Trigger::Cron, reason, moment);
    head.latest_job = head.latest_job.max(id);
    changes.push(Change::Job(Arc::new(job)));
    changes.extend(head.note(record(moment, cause, Outcome::Made { job: id }))?);
    Ok(id)
}

fn of_slots(scan: &Scan, first: Timestamp, last: Timestamp, count: u64) -> Cause {
    let named = || scan.on.named_schedule_of(first);
    let schedule = (count == 1).then(named).flatten();
    Cause::Slots {
        first,
        last,
        count,
        schedule,
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
