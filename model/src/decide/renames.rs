//! Copies the records of a scan's old name to its new name.

use std::sync::Arc;

use workflow::{ScanName, Workflow};

use crate::callback::Callback;
use crate::change::Change;
use crate::scan_head::{Digests, ScanHead};
use crate::suspension::Suspension;
use crate::world::World;
use crate::{ScanKey, WorkflowId};

/// The changes for the renamed scans of a definition that becomes active. Records are taken over once: when the scan is
/// renamed, or when it first declares its former name. `replaced` is the previous definition.
pub(super) fn take_over(
    world: &World,
    workflow: WorkflowId,
    replaced: Option<&Workflow>,
    definition: &Workflow,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for scan in definition.scans() {
        let Some(former) = &scan.renamed_from else {
            continue;
        };
        let key = |scan: &ScanName| ScanKey::new(workflow, scan);
        let new = world.head(&key(&scan.name));
        let is_known = new.is_some_and(|head| head.renamed_from.as_ref() == Some(former));
        let is_renamed_now = replaced.is_some_and(|it| it.scan(former.as_str()).is_some());
        if is_known && !is_renamed_now {
            continue;
        }
        let suspension = world.latest_suspension(workflow, Some(former));
        let suspension = suspension.filter(|suspension| suspension.is_in_force());
        let old = world.head(&key(former));
        // Even without a head, the old scan may have unfinished jobs, so the new name is recorded.
        if old.is_none() && suspension.is_none() && !is_renamed_now {
            continue;
        }
        let empty = |name: &ScanName| Arc::new(ScanHead::new(workflow, name.clone()));
        let old = old.cloned().unwrap_or_else(|| empty(former));
        let mut head = ScanHead::clone(new.unwrap_or(&empty(&scan.name)));
        head.take_over(&old);
        if head.has_digests() {
            changes.push(Change::Digests(Arc::new(Digests::of(&head))));
        }
        changes.push(Change::Head(Arc::new(head)));
        for callback in world.callbacks_with_unconsidered() {
            let mut callback = Callback::clone(callback);
            let mut found = callback.unconsidered.iter_mut();
            if let Some(heard) = found.find(|heard| heard.scan == key(former)) {
                heard.scan = key(&scan.name);
                changes.push(Change::Callback(Arc::new(callback)));
            }
        }
        if let Some(suspension) = suspension {
            changes.push(Change::Suspension(Arc::new(Suspension {
                scan: Some(scan.name.clone()),
                ..Suspension::clone(suspension)
            })));
        }
    }
    changes
}
