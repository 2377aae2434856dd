//! An index of the triggers to check, so that nobody has to visit all scans.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use workflow::notify::NotifyName;

use crate::{ProjectId, ScanKey, Timestamp, WorkflowId};

#[derive(Debug, Clone, Default)]
pub(super) struct Triggers {
    pub(super) next: HashMap<ScanKey, Timestamp>,
    pub(super) by_time: BTreeSet<(Timestamp, ScanKey)>,
    pub(super) unseen: BTreeSet<ScanKey>,
    pub(super) cursors: HashMap<ScanKey, Timestamp>,
    pub(super) by_cursor: BTreeSet<(Timestamp, ScanKey)>,
    /// The scans that a callback server with this name starts.
    pub(super) listeners: BTreeMap<(ProjectId, NotifyName), BTreeSet<ScanKey>>,
}

impl Triggers {
    pub(super) fn set_next(&mut self, scan: &ScanKey, next: Option<Timestamp>) {
        set(&mut self.next, &mut self.by_time, scan, next);
    }

    pub(super) fn set_cursor(&mut self, scan: &ScanKey, cursor: Option<Timestamp>) {
        set(&mut self.cursors, &mut self.by_cursor, scan, cursor);
    }

    pub(super) fn set_unseen(&mut self, scan: &ScanKey, unseen: bool) {
        if unseen {
            self.unseen.insert(scan.clone());
        } else {
            self.unseen.remove(scan);
        }
    }

    /// A change of the server comes with a new revision, which first forgets all triggers of its workflow.
    pub(super) fn set_listener(&mut self, scan: &ScanKey, server: Option<(ProjectId, NotifyName)>) {
        if let Some(server) = server {
            let listeners = self.listeners.entry(server).or_default();
            listeners.insert(scan.clone());
        }
    }

    pub(super) fn forget(&mut self, workflow: WorkflowId) {
        self.next.retain(|scan, _| scan.workflow != workflow);
        self.by_time.retain(|(_, scan)| scan.workflow != workflow);
        self.cursors.retain(|scan, _| scan.workflow != workflow);
        self.by_cursor.retain(|(_, scan)| scan.workflow != workflow);
        self.unseen.retain(|scan| scan.workflow != workflow);
        self.listeners.retain(|_, scans| {
            scans.retain(|scan| scan.workflow != workflow);
            !scans.is_empty()
        });
    }
}

/// Sets or removes the time of a scan in both indices.
fn set(
    times: &mut HashMap<ScanKey, Timestamp>,
    by_time: &mut BTreeSet<(Timestamp, ScanKey)>,
    scan: &ScanKey,
    time: Option<Timestamp>,
) {
    let before = match time {
        Some(time) => times.insert(scan.clone(), time),
        None => times.remove(scan),
    };
    if let Some(before) = before {
        by_time.remove(&(before, scan.clone()));
    }
    if let Some(time) = time {
        by_time.insert((time, scan.clone()));
    }
}
