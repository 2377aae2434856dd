//! Scans that look renamed: one is gone, one is new, and they are the same apart from their names. One member of the scan
//! itself may differ, such as its schedule or its timeout; its inputs, `env`, steps and artifacts may not. A scan that
//! differs in more is another one, even when it runs the same scripts.

use std::collections::BTreeMap;

use super::{Change, Part, members};
use crate::definition::{Scan, Workflow};
use crate::limits::RENAME_CANDIDATES;

/// For new scans the scan that is gone and that they look like.
pub(super) fn find<'w>(before: &'w Workflow, after: &'w Workflow) -> BTreeMap<&'w str, &'w Scan> {
    let mut gone: BTreeMap<Vec<&str>, Vec<&Scan>> = BTreeMap::new();
    let is_gone = |scan: &&Scan| after.scan(scan.name.as_str()).is_none();
    for scan in before.scans().filter(is_gone) {
        gone.entry(scripts(scan)).or_default().push(scan);
    }
    let is_new = |scan: &&Scan| before.scan(scan.name.as_str()).is_none();
    let mut found = BTreeMap::new();
    for scan in after.scans().filter(is_new) {
        let Some(alike) = gone.get_mut(&scripts(scan)) else {
            continue;
        };
        // The one with the fewest other changes; the first of several.
        let nearest = alike
            .iter()
            .take(RENAME_CANDIDATES)
            .map(|former| members::scan(former, scan, after))
            .enumerate()
            .filter(|(_, changes)| is_nearly_none(changes))
            .min_by_key(|(_, changes)| changes.len());
        if let Some((at, _)) = nearest {
            found.insert(scan.name.as_str(), alike.remove(at));
        }
    }
    found
}

fn is_nearly_none(changes: &[Change]) -> bool {
    match changes {
        [] => true,
        [one] => one.part == Part::Itself,
        _ => false,
    }
}

fn scripts(scan: &Scan) -> Vec<&str> {
    scan.steps.iter().map(|step| step.run.source()).collect()
}
