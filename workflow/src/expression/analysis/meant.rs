//! What was probably meant by a name that there is none of.

use cel_interpreter::common::ast::{Expr, IdedExpr};

use super::Analysis;
use crate::diagnostic::Code;
use crate::expression::kind::Kind;

impl Analysis<'_> {
    /// What was probably meant by a bare name.
    pub(super) fn meant_by_name(&self, name: &str) -> Option<String> {
        if self.names.is_terse {
            return None;
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

    /// Every name that can be written here.
    pub(super) fn known_names(&self) -> Option<String> {
        (!self.names.is_terse).then(|| format!("there are {}", listed(self.names_here())))
    }

    /// What was probably meant by a member that a value has not, or which it has.
    pub(super) fn meant_member(&self, kind: &Kind, name: &str) -> Option<String> {
        if self.names.is_terse {
            return None;
        }
        let members = || kind.members().iter().copied();
        self.did_you_mean(name, members())
            .or_else(|| Some(format!("it has {}", listed(members()))))
    }

    /// A word without quotes that is compared with a string was meant to be one.
    pub(super) fn hint_at_quotes(&mut self, node: &IdedExpr, other: &Kind) {
        let Expr::Ident(name) = &node.expr else {
            return;
        };
        if !matches!(other, Kind::Text) || self.names.is_terse || self.meant_by_name(name).is_some()
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

    fn names_here(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.site.roots().collect();
        // What macros keep for themselves starts with `@`.
        let bound = self.scope.iter().map(|(name, _)| name.as_str());
        names.extend(bound.filter(|name| !name.starts_with('@')));
        names
    }
}

fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
