//! Finds `scans.foo-bar`, which subtracts `bar` from `scans.foo`. It is a mistake, because names have no `-`.

use std::ops::Range;

use cel_interpreter::common::ast::IdedExpr;

use super::Analysis;
use crate::diagnostic::Code;
use crate::expression::error::Fault;
use crate::expression::site::Names;

/// The objects whose members have names chosen by users.
const NAMESPACES: [&str; 4] = ["scans", "vars", "secrets", "inputs"];

impl Analysis<'_> {
    /// Whether the subtraction `node` is a name with a `-`. Reports such a name.
    pub(super) fn hyphenated(&mut self, node: &IdedExpr) -> bool {
        let Some((operator, _)) = self.positions.offset_for(node.id) else {
            return false;
        };
        let Some(fault) = fault(self.source, operator as usize, self.names) else {
            return false;
        };
        self.fault(fault.range, fault.code, fault.message, fault.hint);
        true
    }
}

/// The problem of the name around the `-` at byte `operator`. `None` for a real subtraction.
pub(in crate::expression) fn fault(source: &str, operator: usize, names: &Names) -> Option<Fault> {
    let (namespace, range) = name_around(source, operator)?;
    let is_inside = range.start < operator
        && (source.get(operator + 1..range.end)?).starts_with(|c: char| c != '-');
    if !is_inside {
        return None;
    }
    let name = source.get(range.clone()).unwrap_or_default();
    let meant = name.replace('-', "_");
    let is_declared = match namespace {
        "scans" => (names.scans.as_ref()).is_some_and(|scans| scans.contains_key(&meant)),
        "inputs" => (names.inputs.as_ref()).is_some_and(|all| all.contains_key(&meant)),
        _ => false,
    };
    let hint = if is_declared {
        format!("did you mean `{namespace}.{meant}`?")
    } else {
        "names are letters, digits and `_`".to_owned()
    };
    let message = format!("`{namespace}.{name}` is a subtraction, not a name");
    Some(Fault::new(range, Code::HyphenatedName, message).hint(hint))
}

/// The member name around the byte `at`, if it follows the dot of a namespace without spaces. A `-` counts as a part of the name.
pub(in crate::expression) fn name_around(
    source: &str,
    at: usize,
) -> Option<(&'static str, Range<usize>)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (before, behind) = (source.get(..at)?, source.get(at..)?);
    let start = before.trim_end_matches(is_part).len();
    let end = at + behind.find(|c| !is_part(c)).unwrap_or(behind.len());
    let owner = source.get(..start)?.strip_suffix('.')?;
    let namespace = NAMESPACES.into_iter().find(|namespace| {
        owner.strip_suffix(namespace).is_some_and(|rest| {
            !rest.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        })
    })?;
    (start < end).then_some((namespace, start..end))
}
