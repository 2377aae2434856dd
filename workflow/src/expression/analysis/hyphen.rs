//! `scans.foo-bar` subtracts `bar` from `scans.foo`, which nobody means: names have no `-`.

use std::ops::Range;

use cel_interpreter::common::ast::IdedExpr;

use super::Analysis;
use crate::diagnostic::Code;

/// What has members with names of a person's choice.
const NAMESPACES: [&str; 4] = ["scans", "vars", "secrets", "inputs"];

impl Analysis<'_> {
    /// Whether the subtraction `node` is a name with a `-` in it; reports it then.
    pub(super) fn hyphenated(&mut self, node: &IdedExpr) -> bool {
        let Some((operator, _)) = self.positions.offset_for(node.id) else {
            return false;
        };
        let Some((namespace, range)) = member_around(self.source, operator as usize) else {
            return false;
        };
        let name = self.source.get(range.clone()).unwrap_or_default();
        let meant = name.replace('-', "_");
        let is_declared = match namespace {
            "scans" => (self.names.scans.as_ref()).is_some_and(|scans| scans.contains_key(&meant)),
            "inputs" => (self.names.inputs.as_ref()).is_some_and(|all| all.contains_key(&meant)),
            _ => false,
        };
        let hint = if is_declared {
            format!("did you mean `{namespace}.{meant}`?")
        } else {
            "names are letters, digits and `_`".to_owned()
        };
        let message = format!("`{namespace}.{name}` is a subtraction, not a name");
        self.fault(range, Code::HyphenatedName, message, Some(hint));
        true
    }
}

/// The member name around the byte `at` of a `-`, when it is written in one piece behind the dot of a namespace.
fn member_around(source: &str, at: usize) -> Option<(&'static str, Range<usize>)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (before, behind) = (source.get(..at)?, source.get(at..)?);
    let start = before.trim_end_matches(is_part).len();
    let end = at + behind.find(|c| !is_part(c)).unwrap_or(behind.len());
    let is_name = start < at && source.get(at + 1..end)?.starts_with(|c| c != '-');
    let owner = source.get(..start)?.strip_suffix('.')?;
    let namespace = NAMESPACES.into_iter().find(|namespace| {
        owner.strip_suffix(namespace).is_some_and(|rest| {
            !rest.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        })
    })?;
    is_name.then_some((namespace, start..end))
}
