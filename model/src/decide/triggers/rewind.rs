//! Corrects the cursor of a schedule after the clock was set back.

use std::sync::Arc;

use super::not_made;
use crate::change::Change;
use crate::decide::{Command, Decision, Refusal, Urgency};
use crate::ledger::{Cause, LedgerRecord};
use crate::limits::CURSOR_AHEAD;
use crate::moment::Moment;
use crate::revision::WorkflowRecord;
use crate::view::View;
use crate::world::World;
use crate::{Reason, ScanKey, Timestamp};

/// Reset a schedule's cursor to now if it is far ahead of the clock.
#[derive(Debug, Clone)]
pub struct Rewind {
    pub scan: ScanKey,
}

impl Command for Rewind {
    /// The old cursor, if it was reset.
    type Answer = Option<Timestamp>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Option<Timestamp>>, Refusal> {
        let ahead = world
            .cursor(&self.scan)
            .filter(|it| *it - moment.now > CURSOR_AHEAD);
        let Some((cursor, workflow)) = ahead.zip(world.workflow_record(self.scan.workflow)) else {
            return Ok(Decision::unchanged(None));
        };
        let mut head = View::of(world).head(&self.scan).as_ref().clone();
        let mut changes = head.note(LedgerRecord {
            at: moment.now,
            cause: Cause::Clock { cursor },
            evaluation: None,
            outcome: not_made(Reason::ClockSetBack { cursor }),
        })?;
        head.cron_cursor = Some(moment.now);
        head.passed_slots = head.passed_slots.filter(|passed| *passed <= moment.now);
        changes.push(Change::Head(Arc::new(head)));
        let mut workflow = WorkflowRecord::clone(workflow);
        let armed = workflow.armed.get_mut(&self.scan.scan);
        if let Some(cron) = armed.and_then(|armed| armed.cron.as_mut())
            && cron.since > moment.now
        {
            cron.since = moment.now;
            changes.push(Change::Workflow(Arc::new(workflow)));
        }
        Ok(Decision {
            changes,
            answer: Some(cursor),
        })
    }
}
