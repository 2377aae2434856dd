//! For what an expression has not been evaluated.

use workflow::Scan;

use super::Subject;
use crate::ledger::Cause;
use crate::limits::CAUSES;
use crate::{Hops, JobId, Order, ScanKey, Timestamp};

/// The successes that trigger a scan's expression and for which it has not been evaluated: at most one of each scan, the
/// newest. Or an activation, if there is none.
pub(super) struct Unseen {
    /// The newest success, or the activation.
    pub(super) cause: Cause,
    /// Their jobs, newest first, as many as a job names.
    pub(super) causes: Vec<JobId>,
    /// The largest place in a chain of causes of those that belong to the scan's own group.
    in_group: Option<Hops>,
}

impl Unseen {
    /// The place in its chain of causes of the job that they make, in a group of so many scans.
    pub(super) fn hops(&self, scans: usize, time: Timestamp) -> Hops {
        self.in_group
            .map_or_else(Hops::default, |hops| hops.next(scans, time))
    }
}

/// None if no success is unseen and no look is owed after an activation.
pub(super) fn unseen(subject: &Subject<'_>, scan: &Scan) -> Option<Unseen> {
    let references = scan.on.expr.as_ref()?.references();
    let considered = subject.view.world().considered(&subject.key);
    let group = subject.group();
    let mut found: Vec<(Order, JobId, &Scan)> = Vec::new();
    let mut in_group: Option<Hops> = None;
    for other in subject.workflow.revision.definition.scans() {
        if other.name == scan.name || !references.woken_by(other.name.as_str()) {
            continue;
        }
        let head = subject.view.head(&ScanKey {
            workflow: subject.key.workflow,
            scan: other.name.clone(),
        });
        let newest = head.successes.first();
        let Some(success) = newest.filter(|success| success.order > considered) else {
            continue;
        };
        found.push((success.order, success.job, other));
        if group.is_some_and(|group| group.contains(&other.name)) {
            in_group = in_group.max(Some(success.hops));
        }
    }
    found.sort_unstable_by_key(|(order, ..)| std::cmp::Reverse(*order));
    let cause = match found.first() {
        Some((_, job, newest)) => Cause::Success {
            scan: newest.name.to_string(),
            job: *job,
        },
        None if subject.view.world().owes_look(&subject.key) => Cause::Activation {
            revision: subject.workflow.record.revision.number,
        },
        None => return None,
    };
    Some(Unseen {
        cause,
        causes: found.iter().take(CAUSES).map(|(_, job, _)| *job).collect(),
        in_group,
    })
}
