//! Suggestions for a member of a scan. A scan has functions and no members: either the parentheses are missing, or the
//! newest job is meant.

use super::Analysis;
use crate::expression::kind::JOB_MEMBERS;
use crate::suggestion::closest;

/// The functions of a scan.
const FUNCTIONS: [&str; 7] = [
    "is_available",
    "has_diff",
    "has_failed",
    "has_news",
    "last_success",
    "processed",
    "size",
];

impl Analysis<'_> {
    /// A suggestion for a member that a scan does not have.
    pub(super) fn suggested_for_scan(&self, name: &str) -> Option<String> {
        if FUNCTIONS.contains(&name) {
            return Some(format!("write `{name}()`"));
        }
        let of_job = |member: &str| Some(format!("the newest job's is `[0].{member}`"));
        if JOB_MEMBERS.contains(&name) {
            return of_job(name);
        }
        if self.names.is_terse {
            return None;
        }
        match closest(name, FUNCTIONS) {
            Some(function) => Some(format!("did you mean `{function}()`?")),
            None => of_job(closest(name, JOB_MEMBERS)?),
        }
    }
}
