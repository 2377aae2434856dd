//! A scan has functions and no members: somebody left the parentheses out, or means the newest of its jobs.

use super::Analysis;
use crate::expression::kind::JOB_MEMBERS;
use crate::suggestion::closest;

/// What a scan can be asked.
const FUNCTIONS: [&str; 3] = ["is_available", "has_diff", "size"];

impl Analysis<'_> {
    /// What was meant by a member that a scan does not have.
    pub(super) fn meant_of_history(&self, name: &str) -> Option<String> {
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
