//! Compares the counters of scans with the folders of jobs.

use model::retention::{Position, Retention};
use model::{ScanHead, ScanKey, Totals};
use store::look::Look;

use super::check::Check;
use super::finding::Code;
use crate::envelope;
use crate::layout::Layout;

/// Compares the counters of each scan with the folders of its jobs. If the counters have changed since they were read,
/// the scan is left out: its folders may have changed too.
pub(super) fn check(check: &mut Check<'_>) {
    let known = &check.known.learned;
    for (scan, counted) in &known.counted {
        let present = known.present.get(scan).copied().unwrap_or_default();
        let Some((head, retention)) = records(check.look, scan) else {
            continue;
        };
        let left = head.totals.without(&retention.removed);
        if left != *counted || known.doubtful.contains(scan) {
            continue;
        }
        let end = Position {
            page: head.history.page,
            at: head.history.bytes,
        };
        let is_ahead = retention.from > end;
        if is_ahead {
            let Position { page, at } = retention.from;
            let what =
                format!("its place is byte {at} of page {page}, but the history ends before");
            check.find(Code::RetentionDiffers, Layout::retention(scan), what);
        }
        if present != left {
            let what = format!(
                "{} should be left, but there are {}",
                counts(&left),
                counts(&present)
            );
            check.find(Code::KeptDiffers, Layout::retention(scan), what);
        }
        if is_ahead || present != left {
            check.facts.miscounted.push((scan.clone(), present));
        }
    }
}

/// The records of a scan that count its jobs, if they can be read.
fn records(look: &Look, scan: &ScanKey) -> Option<(ScanHead, Retention)> {
    let key = Layout::head(scan);
    let head = envelope::open_at(&key, &look.get(&key).ok()??).ok()?;
    let key = Layout::retention(scan);
    let retention = match look.get(&key).ok()? {
        Some(bytes) => envelope::open_at(&key, &bytes).ok()?,
        None => Retention::new(scan.workflow, scan.scan.clone()),
    };
    Some((head, retention))
}

fn counts(totals: &Totals) -> String {
    let Totals {
        succeeded,
        failed,
        cancelled,
        skipped,
        bytes,
    } = totals;
    format!(
        "{} finished jobs ({succeeded} succeeded, {failed} failed, {cancelled} cancelled, {skipped} skipped) with {bytes} bytes",
        totals.jobs()
    )
}
