//! The scans that callback servers start.

use std::sync::Arc;

use chrono::TimeDelta;
use workflow::Overlap;
use workflow::notify::NotifyName;

use super::World;
use crate::callback::{Callback, Unconsidered};
use crate::limits::CALLBACK_LISTENERS;
use crate::{Order, ProjectId, ScanKey, Timestamp};

/// A scan with interactions that it has not considered yet.
#[derive(Debug, Clone, Copy)]
pub struct Listening<'w> {
    pub callback: &'w Arc<Callback>,
    pub unconsidered: &'w Unconsidered,
    min_interval: TimeDelta,
    /// When the scan has considered interactions last.
    considered_at: Option<Timestamp>,
}

impl Listening<'_> {
    /// When the scan may consider them. After a jump of the clock back, the last time may be ahead of it.
    pub fn due(&self, now: Timestamp) -> Timestamp {
        let last = self.considered_at.filter(|at| *at <= now);
        last.map_or(now, |at| at + self.min_interval)
    }
}

impl World {
    /// Scans that must consider interactions now, and the time when the next one must. A scan with a job in the way, or that is
    /// suspended, is not among them.
    pub fn heard(&self, now: Timestamp) -> (Vec<ScanKey>, Option<Timestamp>) {
        let (mut due, mut next) = (Vec::new(), None);
        for callback in self.callbacks_with_unconsidered() {
            for heard in &callback.unconsidered {
                let held_up_by = [Overlap::Queue, Overlap::Skip];
                let listening = self.listening_to(callback, heard).filter(|_| {
                    self.suspension(&heard.scan).is_none()
                        && !self.is_held_up(&heard.scan, &held_up_by)
                });
                match listening.map(|listening| listening.due(now)) {
                    None => {}
                    Some(at) if at <= now => due.push(heard.scan.clone()),
                    Some(at) => next = Some(next.map_or(at, |next: Timestamp| next.min(at))),
                }
            }
        }
        (due, next)
    }

    /// What a scan has not considered yet of the server that starts it.
    pub fn listening(&self, scan: &ScanKey) -> Option<Listening<'_>> {
        let workflow = self.workflow(scan.workflow)?;
        let on = workflow.scan(&scan.scan)?.on.callback.as_ref()?;
        let callback = self.callback_of(workflow.record.project, &on.server)?;
        self.listening_to(callback, callback.unconsidered_by(scan)?)
    }

    fn listening_to<'w>(
        &'w self,
        callback: &'w Arc<Callback>,
        unconsidered: &'w Unconsidered,
    ) -> Option<Listening<'w>> {
        let scan = &unconsidered.scan;
        let workflow = self.workflow(scan.workflow)?;
        let on = workflow.scan(&scan.scan)?.on.callback.as_ref()?;
        let is_of = workflow.record.project == callback.project && on.server == callback.name;
        let counts = is_of && unconsidered.since > self.armed_callback(scan)?;
        let considered = self.head(scan).and_then(|head| head.interactions);
        counts.then_some(Listening {
            callback,
            unconsidered,
            min_interval: on.min_interval,
            considered_at: considered.map(|considered| considered.at),
        })
    }

    /// The scans that a server with this name starts, each with the place from which interactions count; those beyond the limit wait.
    pub(crate) fn listeners(&self, project: ProjectId, name: &NotifyName) -> Vec<(ScanKey, Order)> {
        let scans = self.triggers.listeners.get(&(project, name.clone()));
        let scans = scans.into_iter().flatten();
        let armed = |scan: &ScanKey| Some((scan.clone(), self.armed_callback(scan)?));
        scans.filter_map(armed).take(CALLBACK_LISTENERS).collect()
    }

    /// True if the scan is beyond the limit of those that listen to a server.
    pub fn is_unheard(&self, callback: &Callback, scan: &ScanKey) -> bool {
        let listeners = self.listeners(callback.project, &callback.name);
        listeners.len() == CALLBACK_LISTENERS && !listeners.iter().any(|(it, _)| it == scan)
    }

    fn armed_callback(&self, scan: &ScanKey) -> Option<Order> {
        let record = self.workflow_record(scan.workflow)?;
        let armed = record.active_triggers()?.get(&scan.scan)?;
        armed.callback.as_ref().map(|armed| armed.since)
    }
}
