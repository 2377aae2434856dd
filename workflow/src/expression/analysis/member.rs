//! Names and members: which names exist, and the kinds of their values.

use std::ops::Range;

use cel_interpreter::common::ast::{IdedExpr, SelectExpr};

use super::Analysis;
use crate::diagnostic::Code;
use crate::dispatch::InputKind;
use crate::expression::kind::{Kind, Shape, Taint};
use crate::names::check_variable_name;
use crate::suggestion::neighbours;

impl Analysis<'_> {
    pub(super) fn ident(&mut self, node: &IdedExpr, name: &str) -> Shape {
        // A leading dot skips the variables of macros.
        let (name, is_absolute) = name
            .strip_prefix('.')
            .map_or((name, false), |name| (name, true));
        if !is_absolute
            && let Some((_, shape)) = self.scope.iter().rev().find(|(bound, _)| bound == name)
        {
            return shape.clone();
        }
        match self.site.root(name) {
            Some(Ok(kind)) => {
                self.references.ok |= name == "ok";
                self.references.always |= name == "always";
                return Shape::of(kind);
            }
            Some(Err(kind)) => {
                let (code, hint) = self.site.unavailable(&kind);
                let message = format!("`{name}` is not available in {}", self.site.label());
                self.fault(self.range(node), code, message, hint.map(str::to_owned));
            }
            None => {
                let hint = self.suggested_name(name).or_else(|| self.known_names());
                self.fault(
                    self.range(node),
                    Code::UnknownName,
                    format!("there is no `{name}`"),
                    hint,
                );
            }
        }
        Shape::of(Kind::Any)
    }

    pub(super) fn select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Shape {
        let operand = self.infer(&select.operand);
        self.hint_at_member(&select.operand, &select.field);
        let range = self.field_range(node, &select.field);
        self.note_state(node, &operand, &select.field);
        let shape = self.member(&operand, &select.field, range);
        if select.test {
            Shape::of(Kind::Bool)
        } else {
            shape
        }
    }

    /// `operand.name` or `operand["name"]`.
    pub(super) fn member(&mut self, operand: &Shape, name: &str, range: Range<usize>) -> Shape {
        // Record this even if the kind of the operand is unknown.
        self.references.outputs |= name == "outputs";
        match &operand.kind {
            Kind::Vars => {
                self.variable_name("a variable name", name, range);
                self.references.vars.insert(name.to_owned());
                return Shape::foreign_text().tainted(Taint::OfVar);
            }
            Kind::Secrets => {
                self.variable_name("a secret name", name, range);
                self.references.secrets.insert(name.to_owned());
                return Shape::foreign_text();
            }
            Kind::Inputs => return self.input(name, range),
            Kind::Scans => return self.scan(name, range),
            Kind::Steps => return self.step(name, range),
            Kind::History(_) => {
                let hint = self.suggested_for_scan(name);
                let message = format!("a scan is a list of jobs and has no `{name}`");
                self.fault(range, Code::UnknownMember, message, hint);
                return Shape::of(Kind::Any);
            }
            _ => {}
        }
        match operand.kind.member(name) {
            Ok(Some(kind))
                if name == "outputs" && matches!(operand.kind, Kind::Job | Kind::Step) =>
            {
                return Shape::outputs(kind);
            }
            Ok(Some(kind)) => return operand.part(kind),
            Ok(None) => {
                let hint = self.suggested_member(&operand.kind, name);
                self.fault(
                    range,
                    Code::UnknownMember,
                    format!("{} has no `{name}`", operand.kind),
                    hint,
                );
            }
            Err(()) => {
                self.fault(
                    range,
                    Code::UnknownMember,
                    format!("{} has no members", operand.kind),
                    None,
                );
            }
        }
        Shape::of(Kind::Any)
    }

    /// Reports a name that no variable or secret can have.
    fn variable_name(&mut self, what: &'static str, name: &str, range: Range<usize>) {
        if let Err(error) = check_variable_name(what, name) {
            self.fault(range, Code::InvalidName, error.to_string(), None);
        }
    }

    fn input(&mut self, name: &str, range: Range<usize>) -> Shape {
        self.references.inputs.insert(name.to_owned());
        let declared = self.names.inputs.as_ref().map(|inputs| inputs.get(name));
        match declared {
            Some(Some(Some(InputKind::Bool))) => Shape::of(Kind::Bool),
            Some(Some(Some(InputKind::Number))) => Shape::of(Kind::Number),
            // The file lists the options, so the value is not free text.
            Some(Some(Some(InputKind::Choice))) => Shape::foreign_text(),
            Some(Some(Some(InputKind::Text))) => Shape::foreign_text().tainted(Taint::Free),
            Some(Some(None)) => Shape::of(Kind::Any),
            Some(None) => {
                let known = self.names.inputs.iter();
                let known = known.flat_map(|inputs| neighbours(name, inputs));
                let hint = self.did_you_mean(name, known);
                self.fault(
                    range,
                    Code::UnknownInput,
                    format!("there is no input `{name}`"),
                    hint,
                );
                Shape::of(Kind::Any)
            }
            None => Shape {
                kind: Kind::Any,
                ..Shape::foreign_text()
            }
            .tainted(Taint::Free),
        }
    }

    /// Reads `steps.NAME`, a step that has ended.
    fn step(&mut self, name: &str, range: Range<usize>) -> Shape {
        self.references.steps = true;
        if let Some(steps) = self.names.steps.clone() {
            match steps.get(name) {
                Some(place) if *place < self.names.steps_before => {}
                Some(_) => {
                    let message = format!("step `{name}` has not run yet");
                    let hint = "only steps further up have outputs".to_owned();
                    self.fault(range, Code::UnknownStep, message, Some(hint));
                }
                None => {
                    let hint = self.did_you_mean(name, neighbours(name, &*steps));
                    let message = format!("there is no step `{name}`");
                    self.fault(range, Code::UnknownStep, message, hint);
                }
            }
        }
        Shape::of(Kind::Step)
    }

    fn scan(&mut self, name: &str, range: Range<usize>) -> Shape {
        self.references.scans.insert(name.to_owned());
        if let Some(scans) = &self.names.scans
            && !scans.contains_key(name)
        {
            let hint = self.did_you_mean(name, neighbours(name, scans));
            self.fault(
                range,
                Code::UnknownScan,
                format!("there is no scan `{name}`"),
                hint,
            );
        }
        Shape::of(Kind::History(Some(name.to_owned())))
    }
}
