//! Scans that look renamed: one is gone, one is new, and both run the same scripts.

use std::collections::BTreeMap;

use super::members;
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
            .enumerate()
            .min_by_key(|(_, former)| members::scan(former, scan, after).len())
            .map(|(at, _)| at);
        if let Some(at) = nearest {
            found.insert(scan.name.as_str(), alike.remove(at));
        }
    }
    found
}

fn scripts(scan: &Scan) -> Vec<&str> {
    scan.steps.iter().map(|step| step.run.source()).collect()
}
