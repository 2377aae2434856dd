//! For which successes an expression has not been evaluated.

use workflow::Scan;

use super::Subject;
use crate::ledger::Cause;
use crate::view::View;
use crate::{Order, ScanKey};

/// The newest success that triggers the scan's expression and for which it has not been evaluated.
pub(super) fn unseen(subject: &Subject<'_>, scan: &Scan) -> Option<Cause> {
    let references = scan.on.expr.as_ref()?.references();
    let considered = subject.view.world().considered(&subject.key);
    subject
        .workflow
        .revision
        .definition
        .scans()
        .filter(|other| other.name != scan.name && references.woken_by(other.name.as_str()))
        .filter_map(|other| newest_success(subject.view, subject.key.workflow, other))
        .filter(|(order, _)| *order > considered)
        .max_by_key(|(order, _)| *order)
        .map(|(_, cause)| cause)
}

fn newest_success(
    view: &View<'_>,
    workflow: crate::WorkflowId,
    scan: &Scan,
) -> Option<(Order, Cause)> {
    let key = ScanKey {
        workflow,
        scan: scan.name.clone(),
    };
    let head = view.head(&key);
    let success = head.successes.first()?;
    let cause = Cause::Success {
        scan: scan.name.to_string(),
        job: success.job,
    };
    Some((success.order, cause))
}
