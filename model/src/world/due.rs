//! The triggers that can create a job now, and the times since which they are active.

use std::sync::Arc;

use workflow::{Overlap, Scan};

use super::World;
use crate::job::Trigger;
use crate::revision::{ActiveWorkflow, WorkflowRecord, WorkflowStatus};
use crate::{ArmedExpr, Order, ScanKey, Timestamp};

impl World {
    /// Scans whose schedule has a due slot, if no job prevents a new job.
    pub fn due(&self, now: Timestamp) -> Vec<ScanKey> {
        self.triggers
            .by_time
            .iter()
            .take_while(|(slot, _)| *slot <= now)
            .filter(|(_, scan)| !self.is_held_up(scan, &[Overlap::Queue]))
            .map(|(_, scan)| scan.clone())
            .collect()
    }

    /// The first slot of all schedules after `now`.
    pub fn next_slot(&self, now: Timestamp) -> Option<Timestamp> {
        let later = self.triggers.by_time.iter().find(|(slot, _)| *slot > now);
        later.map(|(slot, _)| *slot)
    }

    /// The next slot of every schedule, in order.
    pub fn next_slots(&self) -> impl Iterator<Item = (Timestamp, &ScanKey)> {
        self.triggers
            .by_time
            .iter()
            .map(|(slot, scan)| (*slot, scan))
    }

    /// The next slot of a scan's schedule. A due slot may wait for the end of a job.
    pub fn next_slot_of(&self, scan: &ScanKey) -> Option<Timestamp> {
        self.triggers.next.get(scan).copied()
    }

    /// Schedules whose cursor is after `time`, latest first.
    pub fn followed_beyond(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, &ScanKey)> {
        let all = self.triggers.by_cursor.iter().rev();
        all.take_while(move |(cursor, _)| *cursor > time)
            .map(|(cursor, scan)| (*cursor, scan))
    }

    /// The cursor of a scan's schedule, from the index.
    pub fn followed_until(&self, scan: &ScanKey) -> Option<Timestamp> {
        self.triggers.cursors.get(scan).copied()
    }

    /// Scans whose expression was not yet evaluated for a success, a failure or an activation, if no job prevents a new job.
    pub fn unseen(&self) -> Vec<ScanKey> {
        self.triggers
            .unseen
            .iter()
            .filter(|scan| self.is_unseen(scan))
            .cloned()
            .collect()
    }

    /// True if [`World::unseen`] contains the scan.
    pub fn is_unseen(&self, scan: &ScanKey) -> bool {
        let held_up_by = [Overlap::Queue, Overlap::Skip];
        self.triggers.unseen.contains(scan) && !self.is_held_up(scan, &held_up_by)
    }

    /// True if a job of the scan must end before its trigger is checked. A dispatched job is never replaced. The
    /// trigger of a suspended scan creates no job, so no job prevents its check.
    pub(super) fn is_held_up(&self, scan: &ScanKey, by: &[Overlap]) -> bool {
        if self.suspension(scan).is_some() {
            return false;
        }
        let mut unfinished = self.jobs_of(scan).peekable();
        if unfinished.peek().is_none() {
            return false;
        }
        let overlap = self
            .workflow(scan.workflow)
            .and_then(|workflow| Some(workflow.scan(&scan.scan)?.overlap));
        match overlap {
            Some(Overlap::Replace) => {
                by.contains(&Overlap::Skip)
                    && unfinished.any(|job| job.trigger == Trigger::Dispatch)
            }
            Some(overlap @ (Overlap::Skip | Overlap::Queue)) => by.contains(&overlap),
            None => true,
        }
    }

    /// The cursor of a scan's schedule, from the head and the workflow.
    pub(crate) fn cursor(&self, scan: &ScanKey) -> Option<Timestamp> {
        let record = self.workflow_record(scan.workflow)?;
        let since = record.armed.get(&scan.scan)?.cron.as_ref()?.since;
        let cursor = self.head(scan).and_then(|head| head.cron_cursor);
        Some(cursor.map_or(since, |cursor| cursor.max(since)))
    }

    /// The time from which a resumed scan checks the slots of its suspension again.
    pub(crate) fn passed_slots(&self, scan: &ScanKey) -> Option<Timestamp> {
        if self.suspension(scan).is_some() {
            return None;
        }
        let record = self.workflow_record(scan.workflow)?;
        let since = record.armed.get(&scan.scan)?.cron.as_ref()?.since;
        let passed = self.head(scan)?.passed_slots?;
        Some(passed.max(since))
    }

    /// The position in the order of decisions up to which a scan's expression was evaluated. After a suspension, its
    /// successes count as not evaluated.
    pub(crate) fn considered(&self, scan: &ScanKey) -> Order {
        let armed = self.armed_expression(scan).map(|armed| armed.since);
        self.evaluated(scan).max(armed).unwrap_or(Order::START)
    }

    /// True if a scan's expression must be evaluated once because of an activation.
    pub(crate) fn owes_evaluation(&self, scan: &ScanKey) -> bool {
        let activation = self.armed_expression(scan).and_then(|armed| armed.look);
        // If the activation was during a suspension, `evaluated` is the position of the activation.
        activation
            .is_some_and(|activation| self.evaluated(scan).is_none_or(|order| order <= activation))
    }

    /// When the scan's expression was last evaluated, according to its head.
    fn evaluated(&self, scan: &ScanKey) -> Option<Order> {
        let head = self.head(scan)?;
        let passed = head
            .passed_successes
            .filter(|_| self.suspension(scan).is_none());
        passed.or(head.considered)
    }

    fn armed_expression(&self, scan: &ScanKey) -> Option<&ArmedExpr> {
        let record = self.workflow_record(scan.workflow)?;
        record.armed.get(&scan.scan)?.expr.as_ref()
    }

    /// Updates the index of all triggers of a workflow after a change.
    pub(super) fn rearm(&mut self, record: &Arc<WorkflowRecord>) {
        self.triggers.forget(record.id);
        let scans = self
            .workflow(record.id)
            .map(|workflow| workflow.revision.definition.clone());
        for scan in scans.iter().flat_map(|definition| definition.scans()) {
            let key = ScanKey::new(record.id, &scan.name);
            self.index_scan(&key);
        }
    }

    /// Updates the index of the triggers that depend on a head: the scan's own triggers, and expressions that its
    /// successes trigger.
    pub(super) fn index_triggers(&mut self, scan: &ScanKey) {
        let Some(workflow) = self.workflow(scan.workflow) else {
            return;
        };
        self.index_scan(scan);
        for other in workflow.revision.definition.scans() {
            let is_woken = other.on.expr.as_ref().is_some_and(|expression| {
                other.name != scan.scan && expression.references().woken_by(scan.scan.as_str())
            });
            if is_woken {
                self.index_scan(&ScanKey::new(scan.workflow, &other.name));
            }
        }
    }

    fn index_scan(&mut self, key: &ScanKey) {
        let workflow =
            self.workflow(key.workflow)
                .filter(|workflow| match workflow.record.status {
                    WorkflowStatus::Active => true,
                    WorkflowStatus::Retired { .. } => false,
                });
        let scan = workflow
            .as_ref()
            .and_then(|workflow| Some((workflow, workflow.scan(&key.scan)?)));
        let schedule = scan.filter(|(_, scan)| scan.on.cron.is_some());
        let cursor = schedule.and_then(|_| self.cursor(key));
        let passed = schedule.and_then(|_| self.passed_slots(key));
        let next = schedule.and_then(|(_, scan)| {
            let from = passed.into_iter().chain(cursor);
            from.filter_map(|from| scan.on.next_slot(from)).min()
        });
        let unseen = scan.is_some_and(|(workflow, scan)| self.has_unseen(workflow, scan, key));
        let heard = scan.and_then(|(workflow, scan)| {
            let server = scan.on.callback.as_ref()?.server.clone();
            Some((workflow.record.project, server))
        });
        self.triggers.set_listener(key, heard);
        self.triggers.set_next(key, next);
        self.triggers.set_cursor(key, cursor);
        self.triggers.set_unseen(key, unseen);
    }

    fn has_unseen(&self, workflow: &ActiveWorkflow, scan: &Scan, key: &ScanKey) -> bool {
        let Some(expression) = &scan.on.expr else {
            return false;
        };
        let references = expression.references();
        if self.owes_evaluation(key) {
            return true;
        }
        let considered = self.considered(key);
        workflow.revision.definition.scans().any(|other| {
            let wakes = other.name != scan.name && references.woken_by(other.name.as_str());
            let head = || self.head(&ScanKey::new(key.workflow, &other.name));
            wakes
                && head()
                    .and_then(|head| head.newest_end(references, &other.name))
                    .is_some_and(|end| end.order > considered)
        })
    }
}
