//! The static check: one recursive walk over the syntax tree. It finds the type, the taint, the cost and the names of an
//! expression. The size of the tree was limited earlier.

mod brackets;
mod call;
pub(super) mod hyphen;
mod member;
mod operator;
mod place;
mod suggest;

use std::ops::Range;
use std::sync::Arc;

use cel_interpreter::Program;
use cel_interpreter::common::ast::{
    ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo,
};

pub(super) use place::covered;
use place::{field_range, function_range};

use super::error::Fault;
use super::kind::{Kind, Shape, Taint};
use super::pattern::Pattern;
use super::reach;
use super::references::References;
use super::site::{Names, Purpose, Site};
use super::tree::literal_text;
use crate::diagnostic::Code;
use crate::limits::{COMPREHENSION_DEPTH, VALUE_BYTES};
use crate::suggestion::did_you_mean;

/// The result of the check.
pub(super) struct Findings {
    pub(super) references: References,
    pub(super) patterns: Vec<Arc<Pattern>>,
    pub(super) faults: Vec<Fault>,
    pub(super) warnings: Vec<Fault>,
    pub(super) cost: u64,
    pub(super) taint: Taint,
}

/// Checks a whole expression.
pub(super) fn analyse(source: &str, program: &Program, site: Site, names: &Names) -> Findings {
    let mut analysis = Analysis {
        source,
        positions: program.source_info(),
        site,
        names,
        scope: Vec::new(),
        comprehensions: 0,
        references: References::default(),
        patterns: Vec::new(),
        faults: Vec::new(),
        states: Vec::new(),
        warnings: Vec::new(),
        cost: 0,
    };
    let root = program.expression();
    let shape = analysis.value(root);
    reach::note(root, &mut analysis.references);
    analysis.check_result(root, &shape);
    // An expression with `has_failed()` is also evaluated after a failure.
    let mut warnings = analysis.warnings;
    if !analysis.references.failures.is_empty() {
        warnings.retain(|warning| warning.code != Code::UnseenFailure);
    }
    analysis.faults.sort_by_key(|fault| fault.range.start);
    Findings {
        references: analysis.references,
        patterns: analysis.patterns,
        faults: analysis.faults,
        warnings,
        cost: analysis.cost,
        taint: shape.taint,
    }
}

struct Analysis<'a> {
    source: &'a str,
    positions: &'a SourceInfo,
    site: Site,
    names: &'a Names,
    /// Variables of the surrounding macros, innermost last.
    scope: Vec<(String, Shape)>,
    comprehensions: usize,
    references: References,
    patterns: Vec<Arc<Pattern>>,
    faults: Vec<Fault>,
    /// The parts of the expression that are the `state` of a job.
    states: Vec<u64>,
    warnings: Vec<Fault>,
    cost: u64,
}

impl Analysis<'_> {
    /// A node that must be a value. `vars` alone is not a value.
    fn value(&mut self, node: &IdedExpr) -> Shape {
        let shape = self.infer(node);
        if shape.kind.is_namespace() {
            self.fault(
                self.range(node),
                Code::DynamicName,
                format!("{} is not a value", shape.kind),
                Some("name a member of it".to_owned()),
            );
            return Shape::of(Kind::Any);
        }
        shape
    }

    fn infer(&mut self, node: &IdedExpr) -> Shape {
        self.cost = self.cost.saturating_add(1);
        let faults_before = self.faults.len();
        let shape = match &node.expr {
            Expr::Unspecified => Shape::of(Kind::Any),
            Expr::Literal(literal) => literal_shape(literal),
            Expr::Ident(name) => self.ident(node, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Call(call) => self.call(node, call),
            Expr::Comprehension(comprehension) => self.comprehension(node, comprehension),
            Expr::List(list) => {
                let shapes: Vec<Shape> = list
                    .elements
                    .iter()
                    .map(|element| self.value(element))
                    .collect();
                self.collection(shapes, |element| Kind::List(Box::new(element)))
            }
            Expr::Map(map) => {
                let mut shapes = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.value(&entry.key);
                        shapes.push(self.value(&entry.value));
                    }
                }
                self.collection(shapes, |value| Kind::Map(Box::new(value)))
            }
            Expr::Struct(object) => {
                let message = format!("there is no type `{}`", object.type_name);
                self.fault(self.range(node), Code::UnknownName, message, None);
                Shape::of(Kind::Any)
            }
        };
        // A name copies nothing: the part that built the value is reported instead. The size of a part with an error is unknown.
        if shape.bytes > VALUE_BYTES && !matches!(node.expr, Expr::Ident(_)) {
            if self.faults.len() > faults_before {
                return Shape { bytes: 0, ..shape };
            }
            let message = format!(
                "this could build a value of {} bytes; at most {VALUE_BYTES} are allowed",
                shape.bytes
            );
            self.fault(self.range(node), Code::ExpressionTooCostly, message, None);
            return Shape { bytes: 0, ..shape };
        }
        shape
    }

    fn collection(&self, shapes: Vec<Shape>, kind: impl FnOnce(Kind) -> Kind) -> Shape {
        let length = shapes.len() as u64;
        let bytes = shapes
            .iter()
            .map(|shape| shape.bytes)
            .fold(0, u64::saturating_add);
        let taint = shapes.iter().map(|shape| shape.taint).max();
        let element = shapes
            .into_iter()
            .map(|shape| shape.kind)
            .fold(Kind::Nothing, Kind::join);
        Shape {
            kind: kind(element),
            taint: taint.unwrap_or(Taint::Nobody),
            length,
            bytes,
        }
    }

    /// Macros over lists. In all macros the accumulator grows by the same amount for each element.
    fn comprehension(&mut self, node: &IdedExpr, comprehension: &ComprehensionExpr) -> Shape {
        let list = self.value(&comprehension.iter_range);
        let element = list.kind.element().unwrap_or_else(|| {
            let message = format!("{} cannot be iterated over", list.kind);
            self.fault(
                self.range(&comprehension.iter_range),
                Code::ExpressionType,
                message,
                None,
            );
            Kind::Any
        });
        self.comprehensions += 1;
        if self.comprehensions > COMPREHENSION_DEPTH {
            let message = format!(
                "`filter`, `map`, `all` and `exists` may be nested {COMPREHENSION_DEPTH} deep at most"
            );
            self.fault(self.range(node), Code::ExpressionTooCostly, message, None);
        }
        let init = self.value(&comprehension.accu_init);
        let outside = self.scope.len();
        self.scope
            .push((comprehension.accu_var.clone(), init.clone()));
        self.scope
            .push((comprehension.iter_var.clone(), list.part(element)));

        let before = std::mem::take(&mut self.cost);
        self.boolean(&comprehension.loop_cond);
        let step = self.value(&comprehension.loop_step);
        let each = std::mem::replace(&mut self.cost, before);
        self.cost = self.cost.saturating_add(each.saturating_mul(list.length));

        let grown = |init: u64, step: u64| {
            init.saturating_add(step.saturating_sub(init).saturating_mul(list.length))
        };
        let accumulator = Shape {
            length: grown(init.length, step.length),
            bytes: grown(init.bytes, step.bytes),
            taint: init.taint.max(step.taint),
            kind: init.kind.join(step.kind),
        };
        self.scope.truncate(outside);
        self.scope
            .push((comprehension.accu_var.clone(), accumulator));
        let result = self.value(&comprehension.result);
        self.scope.truncate(outside);
        self.comprehensions -= 1;
        result
    }

    fn boolean(&mut self, node: &IdedExpr) {
        let shape = self.value(node);
        self.expect_boolean(node, &shape);
    }

    fn expect_boolean(&mut self, node: &IdedExpr, shape: &Shape) {
        if !matches!(shape.kind, Kind::Bool) && !shape.kind.is_unknown() {
            let message = format!("expected a boolean, this is {}", shape.kind);
            let hint = self.compare_hint(node, &shape.kind);
            self.fault(self.range(node), Code::ExpressionType, message, hint);
        }
    }

    /// What to do with a text that is used as a boolean.
    fn compare_hint(&self, node: &IdedExpr, kind: &Kind) -> Option<String> {
        let text = self.source.get(self.range(node))?;
        matches!(kind, Kind::Text).then(|| match literal_text(node) {
            Some(_) => "compare it with something".to_owned(),
            None => format!("compare it, as in `{text} == 'true'`"),
        })
    }

    fn check_result(&mut self, root: &IdedExpr, shape: &Shape) {
        let label = self.site.label();
        let (fits, code, message, hint) = match self.site.purpose() {
            Purpose::Answer => return,
            Purpose::Decision => {
                let hint = self.compare_hint(root, &shape.kind);
                let fits = matches!(shape.kind, Kind::Bool) || shape.kind.is_unknown();
                (
                    fits,
                    Code::ConditionNotBoolean,
                    format!("{label} must be true or false, this is {}", shape.kind),
                    hint,
                )
            }
            Purpose::Insertion => {
                let has_text = matches!(
                    shape.kind,
                    Kind::Any
                        | Kind::Nothing
                        | Kind::Null
                        | Kind::Bool
                        | Kind::Int
                        | Kind::Uint
                        | Kind::Double
                        | Kind::Number
                        | Kind::Text
                        | Kind::Timestamp
                        | Kind::Duration
                );
                (
                    has_text,
                    Code::ExpressionType,
                    format!("{} cannot be inserted into {label}", shape.kind),
                    None,
                )
            }
        };
        if !fits {
            self.fault(self.range(root), code, message, hint);
        }
    }

    fn warn(&mut self, warning: Fault) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn fault(&mut self, range: Range<usize>, code: Code, message: String, hint: Option<String>) {
        let fault = Fault {
            range,
            code,
            message,
            hint,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Computes a suggestion, unless it would not be shown.
    fn did_you_mean<'n>(
        &self,
        given: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        if self.names.is_terse {
            return None;
        }
        did_you_mean(given, known)
    }

    fn range(&self, node: &IdedExpr) -> Range<usize> {
        covered(self.source, self.positions, node)
    }

    fn field_range(&self, node: &IdedExpr, field: &str) -> Range<usize> {
        field_range(self.source, self.positions, node, field)
    }
}

fn literal_shape(literal: &LiteralValue) -> Shape {
    let sized = |kind: Kind, bytes: usize| Shape {
        bytes: bytes as u64,
        ..Shape::of(kind)
    };
    match literal {
        LiteralValue::Boolean(_) => Shape::of(Kind::Bool),
        LiteralValue::Bytes(bytes) => sized(Kind::Bytes, bytes.inner().len()),
        LiteralValue::Double(_) => Shape::of(Kind::Double),
        LiteralValue::Int(_) => Shape::of(Kind::Int),
        LiteralValue::Null => Shape::of(Kind::Null),
        LiteralValue::String(text) => sized(Kind::Text, text.inner().len()),
        LiteralValue::UInt(_) => Shape::of(Kind::Uint),
    }
}
