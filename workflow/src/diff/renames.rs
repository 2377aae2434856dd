//! Finds renamed scans: those that say so by `renamed_from`, and those that look renamed: one was removed, one was
//! added, and they are the same apart from their names. One member of the scan itself may differ, such as its schedule
//! or its timeout; its inputs, `env`, steps and artifacts may not. A scan that differs in more is another one, even if
//! it runs the same scripts. So is a scan whose steps, `env` or artifacts name the scan itself, because after a rename
//! they name another scan.

use std::collections::BTreeMap;

use super::{Change, Part, members};
use crate::definition::{Scan, Workflow};
use crate::limits::RENAME_CANDIDATES;

/// For each added scan the removed one that it looks like.
pub(super) fn find<'w>(before: &'w Workflow, after: &'w Workflow) -> BTreeMap<&'w str, &'w Scan> {
    let mut gone = Gone::default();
    let is_gone = |scan: &&Scan| after.scan(scan.name.as_str()).is_none();
    for scan in before.scans().filter(is_gone) {
        gone.entry(texts(scan)).or_default().push(scan);
    }
    let is_new = |scan: &&Scan| before.scan(scan.name.as_str()).is_none();
    let mut new: Vec<&Scan> = after.scans().filter(is_new).collect();
    let mut found = BTreeMap::new();
    new.retain(|scan| {
        let Some(name) = &scan.renamed_from else {
            return true;
        };
        let former = before.scan(name.as_str()).filter(is_gone);
        let Some(former) = former else {
            // It names no scan that was there, perhaps by a slip.
            return true;
        };
        if let Some(alike) = gone.get_mut(&texts(former)) {
            alike.retain(|other| other.name != former.name);
        }
        found.insert(scan.name.as_str(), former);
        false
    });
    // Scans without another change come first: otherwise a similar scan could take the place of the identical one.
    for is_alike in [<[Change]>::is_empty, is_one_member] {
        new.retain(|scan| {
            let is_former = |former: &Scan| {
                let mut changes = members::scan(former, scan, after);
                changes.retain(|change| change.member != Some(members::RENAMED_FROM));
                is_alike(&changes)
            };
            match take(&mut gone, scan, is_former) {
                Some(former) => {
                    found.insert(scan.name.as_str(), former);
                    false
                }
                None => true,
            }
        });
    }
    found
}

/// The removed scans, by what similar scans have in common.
type Gone<'w> = BTreeMap<Vec<&'w str>, Vec<&'w Scan>>;

/// Takes the first similar scan for which `is_former` holds.
fn take<'w>(
    gone: &mut Gone<'w>,
    scan: &'w Scan,
    is_former: impl Fn(&Scan) -> bool,
) -> Option<&'w Scan> {
    let alike = gone.get_mut(&texts(scan))?;
    let at = alike
        .iter()
        .take(RENAME_CANDIDATES)
        .position(|former| is_former(former))?;
    Some(alike.remove(at))
}

fn is_one_member(changes: &[Change]) -> bool {
    matches!(changes, [one] if one.part == Part::Itself)
}

/// The scripts without their expressions, which can be written in several ways.
fn texts(scan: &Scan) -> Vec<&str> {
    scan.steps
        .iter()
        .flat_map(|step| step.run.texts())
        .collect()
}
