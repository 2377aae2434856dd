//! Suggestions for unknown names.

use cel_interpreter::common::ast::{Expr, IdedExpr};

use super::Analysis;
use crate::diagnostic::Code;
use crate::expression::kind::{JOB_MEMBERS, Kind};
use crate::suggestion::closest;

const SCAN_FUNCTIONS: [&str; 7] = [
    "is_available",
    "has_diff",
    "has_failed",
    "has_news",
    "last_success",
    "processed",
    "size",
];

impl Analysis<'_> {
    /// A suggestion for a bare name.
    pub(super) fn suggested_name(&self, name: &str) -> Option<String> {
        if self.names.is_terse {
            return None;
        }
        if name == "env" {
            let hint = "expressions do not read the environment; write `$NAME` in the script";
            return Some(hint.to_owned());
        }
        let scans = self.names.scans.as_ref();
        if scans.is_some_and(|scans| scans.contains_key(name)) {
            return Some(format!("did you mean `scans.{name}`?"));
        }
        let inputs = self.names.inputs.as_ref();
        let has_inputs = matches!(self.site.root("inputs"), Some(Ok(_)));
        if has_inputs && inputs.is_some_and(|inputs| inputs.contains_key(name)) {
            return Some(format!("did you mean `inputs.{name}`?"));
        }
        self.did_you_mean(name, self.names_here())
    }

    /// All names that are available here.
    pub(super) fn known_names(&self) -> Option<String> {
        (!self.names.is_terse).then(|| format!("there are {}", listed(self.names_here())))
    }

    /// A suggestion for an unknown member, or the list of known members.
    pub(super) fn suggested_member(&self, kind: &Kind, name: &str) -> Option<String> {
        if self.names.is_terse {
            return None;
        }
        let members = || kind.members().iter().copied();
        self.did_you_mean(name, members())
            .or_else(|| Some(format!("it has {}", listed(members()))))
    }

    /// A suggestion for a member of a scan. A scan has functions but no members: either the parentheses are missing, or the
    /// newest job is meant.
    pub(super) fn suggested_for_scan(&self, name: &str) -> Option<String> {
        if SCAN_FUNCTIONS.contains(&name) {
            return Some(format!("write `{name}()`"));
        }
        let of_job = |member: &str| Some(format!("the newest job's is `[0].{member}`"));
        if JOB_MEMBERS.contains(&name) {
            return of_job(name);
        }
        if self.names.is_terse {
            return None;
        }
        match closest(name, SCAN_FUNCTIONS) {
            Some(function) => Some(format!("did you mean `{function}()`?")),
            None => of_job(closest(name, JOB_MEMBERS)?),
        }
    }

    /// An unquoted word that is compared with a string is probably meant as a string.
    pub(super) fn hint_at_quotes(&mut self, node: &IdedExpr, other: &Kind) {
        let Expr::Ident(name) = &node.expr else {
            return;
        };
        if !matches!(other, Kind::Text)
            || self.names.is_terse
            || self.suggested_name(name).is_some()
        {
            return;
        }
        let range = self.range(node);
        let unknown = (self.faults.iter_mut())
            .find(|fault| fault.code == Code::UnknownName && fault.range == range);
        if let Some(fault) = unknown {
            fault.hint = Some(format!("a string has quotes: `'{name}'`"));
        }
    }

    /// Suggests the whole `vars.X` for `var.X`, with the written member.
    pub(super) fn hint_at_member(&mut self, node: &IdedExpr, member: &str) {
        let Expr::Ident(name) = &node.expr else {
            return;
        };
        let range = self.range(node);
        let meant = closest(name, self.names_here()).filter(|root| {
            let kind = self.site.root(root);
            matches!(
                kind,
                Some(Ok(Kind::Vars | Kind::Secrets | Kind::Inputs | Kind::Scans))
            )
        });
        let Some(root) = meant.map(str::to_owned) else {
            return;
        };
        let guessed = Some(format!("did you mean `{root}`?"));
        let unknown =
            (self.faults.iter()).position(|fault| fault.range == range && fault.hint == guessed);
        if let Some(at) = unknown {
            let fault = self.faults.remove(at);
            let hint = format!("did you mean `{root}.{member}`?");
            self.fault(fault.range, fault.code, fault.message, Some(hint));
        }
    }

    fn names_here(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.site.roots().collect();
        // Internal names of macros start with `@`.
        let bound = self.scope.iter().map(|(name, _)| name.as_str());
        names.extend(bound.filter(|name| !name.starts_with('@')));
        names
    }
}

fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
