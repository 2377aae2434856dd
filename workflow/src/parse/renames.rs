//! Checks `renamed_from` of all scans of a file together.

use std::collections::BTreeMap;

use super::Reader;
use super::declared::{member_entry, text};
use crate::diagnostic::Code;
use crate::limits::RENAMES;
use crate::yaml::Entry;

impl Reader<'_> {
    /// Reports former names that are still in use, or that two scans use.
    pub(super) fn renames(&mut self, scans: &[Entry]) {
        let mut claimed: BTreeMap<&str, &Entry> = BTreeMap::new();
        for scan in scans {
            let Some(renamed_from) = member_entry(&scan.value, "renamed_from") else {
                continue;
            };
            let Some(former) = text(&renamed_from.value) else {
                continue;
            };
            let span = renamed_from.value.span;
            if let Some(still) = scans.iter().find(|other| &*other.key == former) {
                let message = format!(
                    "scan `{}` is still in the file, so scan `{}` cannot be its new name",
                    still.shown_key(),
                    scan.shown_key()
                );
                self.report
                    .error(span, Code::DuplicateName, message)
                    .hint("remove the scan of the old name, or `renamed_from`");
            } else if let Some(other) = claimed.insert(former, scan) {
                let message = format!(
                    "scans `{}` and `{}` have the same `renamed_from`",
                    other.shown_key(),
                    scan.shown_key()
                );
                self.report
                    .error(span, Code::DuplicateName, message)
                    .hint("only one scan can keep the results of another scan");
            } else if claimed.len() == RENAMES + 1 {
                let message = format!("at most {RENAMES} scans of a file have `renamed_from`");
                self.report
                    .error(span, Code::TooMany, message)
                    .hint("rename the others with the next push; after that push a scan no longer needs `renamed_from`");
            }
        }
    }
}
