//! Successes, failures and activations for which an expression was not evaluated yet.

use workflow::{References, Scan, ScanName};

use super::Subject;
use crate::ledger::Cause;
use crate::limits::CAUSES;
use crate::scan_head::{Failure, ScanHead};
use crate::{Hops, JobId, Order, ScanKey, Timestamp};

/// The successes and failures that trigger a scan's expression and for which it was not evaluated yet: at most the
/// newest end of each scan. If there are none, an activation.
pub(super) struct Unseen {
    /// The newest success or failure, or the activation.
    pub(super) cause: Cause,
    /// The jobs of these successes and failures, newest first, at most as many as a job's record lists.
    pub(super) causes: Vec<JobId>,
    /// The longest chain of causes within the scan's own group, or with a job that a step has started.
    in_group: Option<Hops>,
}

impl Unseen {
    /// The position of the new job in its chain of causes. Its group has `scans` scans.
    pub(super) fn hops(&self, scans: usize, time: Timestamp) -> Hops {
        self.in_group
            .map_or_else(Hops::default, |hops| hops.next(scans, time))
    }
}

/// None if all successes and failures were considered and no activation needs an evaluation.
pub(super) fn unseen(subject: &Subject<'_>, scan: &Scan) -> Option<Unseen> {
    let references = scan.on.expr.as_ref()?.references();
    let considered = subject.view.world().considered(&subject.key);
    let group = subject.group();
    let mut found: Vec<(NewestEnd, &Scan)> = Vec::new();
    let mut in_group: Option<Hops> = None;
    for other in subject.workflow.revision.definition.scans() {
        if other.name == scan.name || !references.woken_by(other.name.as_str()) {
            continue;
        }
        let head = subject
            .view
            .head(&ScanKey::new(subject.key.workflow, &other.name));
        let newest = head.newest_end(references, &other.name);
        let Some(end) = newest.filter(|end| end.order > considered) else {
            continue;
        };
        if end.hops.by_step || group.is_some_and(|group| group.contains(&other.name)) {
            in_group = in_group.max(Some(end.hops));
        }
        found.push((end, other));
    }
    found.sort_unstable_by_key(|(end, _)| std::cmp::Reverse(end.order));
    let cause = match found.first() {
        Some((end, newest)) => end.cause(&newest.name),
        None if subject.view.world().owes_evaluation(&subject.key) => Cause::Activation {
            revision: subject.workflow.record.revision.number,
        },
        None => return None,
    };
    Some(Unseen {
        cause,
        causes: found.iter().take(CAUSES).map(|(end, _)| end.job).collect(),
        in_group,
    })
}

/// The newest end of a job that triggers an expression.
pub(crate) struct NewestEnd {
    pub(crate) order: Order,
    job: JobId,
    hops: Hops,
    has_failed: bool,
}

impl NewestEnd {
    fn cause(&self, scan: &ScanName) -> Cause {
        let (scan, job) = (scan.to_string(), self.job);
        if self.has_failed {
            Cause::Failure { scan, job }
        } else {
            Cause::Success { scan, job }
        }
    }
}

impl ScanHead {
    /// The newest end of a job of the scan that triggers an expression with these references: a success, or a failure
    /// if the expression uses failures. The expression refers to the scan as `name`.
    pub(crate) fn newest_end(&self, references: &References, name: &ScanName) -> Option<NewestEnd> {
        let failure = self
            .failure
            .filter(|_| references.woken_by_failure(name.as_str()));
        // A recorded failure is newer than all successes.
        if let Some(Failure { job, order, hops }) = failure {
            return Some(NewestEnd {
                order,
                job,
                hops,
                has_failed: true,
            });
        }
        let success = self.successes.first()?;
        Some(NewestEnd {
            order: success.order,
            job: success.job,
            hops: success.hops,
            has_failed: false,
        })
    }
}
