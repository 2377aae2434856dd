//! Checks the interactions of a callback server that a scan has not considered yet.

use std::sync::Arc;

use super::{Obstacle, Subject, not_made, replace};
use crate::callback::{CallbackCause, ConsideredInteractions};
use crate::change::Change;
use crate::decide::{Command, Decision, Refusal, Urgency};
use crate::job::{Job, Trigger};
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::moment::Moment;
use crate::view::View;
use crate::world::World;
use crate::{Hops, JobId, Reason, ScanKey};

/// Start a scan because of the interactions that it has not considered yet.
#[derive(Debug, Clone)]
pub struct Hear {
    pub scan: ScanKey,
}

impl Command for Hear {
    /// The new job, if there is one.
    type Answer = Option<JobId>;
    const URGENCY: Urgency = Urgency::Beginning;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Option<JobId>>, Refusal> {
        let view = View::of(world);
        let due = world
            .listening(&self.scan)
            .filter(|listening| listening.due(moment.now) <= moment.now);
        let found = due.zip(Subject::new(&view, &self.scan));
        let Some((listening, subject)) = found else {
            return Ok(Decision::unchanged(None));
        };
        let Some(scan) = subject.scan() else {
            return Ok(Decision::unchanged(None));
        };
        let replaced = match subject.obstacle(scan.overlap) {
            // They are considered when this job has ended, or when the scan is resumed.
            Obstacle::Unfinished(_) => return Ok(Decision::unchanged(None)),
            _ if world.suspension(&self.scan).is_some() => return Ok(Decision::unchanged(None)),
            Obstacle::None => Vec::new(),
            Obstacle::Replaceable(jobs) => jobs,
        };
        let (callback, heard) = (listening.callback, listening.unconsidered);
        let mut head = view.head(&self.scan).as_ref().clone();
        head.interactions = Some(ConsideredInteractions {
            server: callback.id,
            last: heard.last,
            at: moment.now,
        });
        let mut changes = Vec::new();
        let cause = CallbackCause::of(callback, heard);
        let made =
            (cause.count > 0).then(|| JobId::next(world.latest_job(), moment.now, moment.entropy));
        let outcome = match made {
            None => not_made(Reason::OwnCallbacks),
            Some(job) => Outcome::Made { job },
        };
        if let Some(id) = made {
            changes.extend(replace(&replaced, id, &mut head, moment)?);
            head.latest_job = head.latest_job.max(id);
            let reason = Reason::CallbackHeard {
                name: cause.name.to_string(),
                first: cause.first,
                last: cause.last,
                count: cause.count,
            };
            let by = heard.by.as_ref();
            let hops = by.map_or_else(Hops::default, |by| by.hops.started_by_step());
            let pause = hops.pause_after_step(moment.cycle_pause);
            let job = subject.job(scan, id, Trigger::Callback, reason, moment);
            changes.push(Change::Job(Arc::new(Job {
                causes: by.map(|by| by.id).into_iter().collect(),
                hops,
                not_before: pause.and_then(|pause| moment.steady.checked_add_signed(pause)),
                callback: Some(Box::new(cause)),
                ..job
            })));
        }
        changes.extend(head.note(LedgerRecord {
            at: moment.now,
            cause: Cause::Interactions {
                server: callback.id,
                name: callback.name.clone(),
                first: heard.first,
                last: heard.last,
                count: heard.count,
                own: heard.own,
            },
            evaluation: None,
            outcome,
        })?);
        changes.push(Change::Head(Arc::new(head)));
        let considered = callback.considered_by(&self.scan);
        changes.push(Change::Callback(Arc::new(considered)));
        Ok(Decision {
            changes,
            answer: made,
        })
    }
}
