//! Finds renamed scans. A scan is renamed if its `renamed_from` names a removed scan. It looks renamed if it was added, another
//! scan was removed, and the two are equal except for their names. One further member of the scan itself may differ, such as its
//! schedule or timeout, but not inputs, `env`, steps or artifacts. A scan whose steps, `env` or artifacts name the scan itself
//! does not look renamed, because after a rename they name a different scan.

use std::collections::BTreeMap;

use super::{Change, Part, members};
use crate::definition::{Scan, Workflow};
use crate::limits::RENAME_CANDIDATES;

/// For each renamed scan, the removed scan.
pub(super) fn find<'w>(before: &'w Workflow, after: &'w Workflow) -> BTreeMap<&'w str, &'w Scan> {
    let mut removed = Removed::default();
    let is_removed = |scan: &&Scan| after.scan(scan.name.as_str()).is_none();
    for scan in before.scans().filter(is_removed) {
        removed.entry(texts(scan)).or_default().push(scan);
    }
    let is_new = |scan: &&Scan| before.scan(scan.name.as_str()).is_none();
    let mut new: Vec<&Scan> = after.scans().filter(is_new).collect();
    let mut found = BTreeMap::new();
    new.retain(|scan| {
        let Some(name) = &scan.renamed_from else {
            return true;
        };
        let former = before.scan(name.as_str()).filter(is_removed);
        let Some(former) = former else {
            // The former name may be misspelled.
            return true;
        };
        if let Some(alike) = removed.get_mut(&texts(former)) {
            alike.retain(|other| other.name != former.name);
        }
        found.insert(scan.name.as_str(), former);
        false
    });
    // Scans without another change come first, so that a similar scan cannot take the place of an identical scan.
    for is_alike in [<[Change]>::is_empty, is_one_member] {
        new.retain(|scan| {
            let is_former = |former: &Scan| {
                let mut changes = members::scan(former, scan, after);
                changes.retain(|change| change.member != Some(members::RENAMED_FROM));
                is_alike(&changes)
            };
            match take(&mut removed, scan, is_former) {
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

/// The removed scans, by the parts that similar scans have in common.
type Removed<'w> = BTreeMap<Vec<&'w str>, Vec<&'w Scan>>;

/// Takes the first similar scan for which `is_former` holds.
fn take<'w>(
    removed: &mut Removed<'w>,
    scan: &'w Scan,
    is_former: impl Fn(&Scan) -> bool,
) -> Option<&'w Scan> {
    let alike = removed.get_mut(&texts(scan))?;
    let at = alike
        .iter()
        .take(RENAME_CANDIDATES)
        .position(|former| is_former(former))?;
    Some(alike.remove(at))
}

fn is_one_member(changes: &[Change]) -> bool {
    matches!(changes, [one] if one.part == Part::Itself)
}

/// The scripts without their expressions, because expressions have several spellings.
fn texts(scan: &Scan) -> Vec<&str> {
    scan.steps
        .iter()
        .flat_map(|step| step.run.texts())
        .collect()
}
