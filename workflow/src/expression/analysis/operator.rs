//! Operators: their operands, results and costs.

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::Analysis;
use crate::context::SUCCEEDED;
use crate::diagnostic::Code;
use crate::expression::error::Fault;
use crate::expression::kind::{Kind, Shape, Taint};
use crate::expression::site::Site;
use crate::expression::syntax::AS_DOUBLES;
use crate::expression::tree::literal_text;
use crate::limits::HISTORY_JOBS;

/// Bytes that are copied or compared for one unit of cost.
const BYTES_PER_UNIT: u64 = 256;

impl Analysis<'_> {
    /// The shape of an operator's result; `None` if the call is not an operator.
    pub(super) fn operator(
        &mut self,
        node: &IdedExpr,
        name: &str,
        operands: &[IdedExpr],
    ) -> Option<Shape> {
        Some(match (name, operands) {
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.boolean(condition);
                self.value(yes).join(self.value(no))
            }
            (operators::LOGICAL_OR, [left, right]) => self.either(node, left, right),
            (operators::LOGICAL_AND, [left, right]) => {
                self.boolean(left);
                self.boolean(right);
                Shape::of(Kind::Bool)
            }
            (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [operand]) => {
                self.boolean(operand);
                Shape::of(Kind::Bool)
            }
            (operators::NEGATE, [operand]) => {
                let shape = self.value(operand);
                if !shape.kind.is_unknown()
                    && !matches!(shape.kind, Kind::Int | Kind::Double | Kind::Number)
                {
                    self.mismatch(node, format!("{} cannot be negated", shape.kind));
                }
                Shape {
                    taint: Taint::Nobody,
                    ..shape
                }
            }
            (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => {
                let (left, right) = (self.value(one), self.value(other));
                self.hint_at_quotes(one, &right.kind);
                self.hint_at_quotes(other, &left.kind);
                let text = literal_text(one).or(literal_text(other));
                let is_text = matches!(text, None | Some("true" | "false"));
                let mixes = left.kind.mixes_with(&right.kind);
                if mixes && is_text {
                    let is_first = matches!(left.kind, Kind::Bool);
                    let boolean = if is_first { one } else { other };
                    let is_equal = (name == operators::EQUALS) == (text == Some("true"));
                    self.boolean_as_text(node, text.map(|_| (boolean, is_equal)));
                } else if !left.kind.is_comparable_with(&right.kind) {
                    let message = if mixes {
                        "a boolean equals only the texts `'true'` and `'false'`".to_owned()
                    } else {
                        format!("{} never equals {}", left.kind, right.kind)
                    };
                    self.mismatch(node, message);
                }
                self.spend(left.bytes.min(right.bytes));
                self.compared_state(node, one, other);
                self.compared_state(node, other, one);
                Shape::of(Kind::Bool)
            }
            (
                operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [left, right],
            ) => {
                let (left, right) = (self.value(left), self.value(right));
                if !is_ordered(&left.kind)
                    || !is_ordered(&right.kind)
                    || !left.kind.is_comparable_with(&right.kind)
                {
                    self.mismatch(
                        node,
                        format!("{} cannot be ordered with {}", left.kind, right.kind),
                    );
                }
                self.spend(left.bytes.min(right.bytes));
                Shape::of(Kind::Bool)
            }
            (
                operators::ADD
                | operators::SUBSTRACT
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::MODULO,
                [left, right],
            ) => {
                if name == operators::SUBSTRACT && self.hyphenated(node) {
                    return Some(Shape::of(Kind::Any));
                }
                let (left, right) = (self.value(left), self.value(right));
                self.arithmetic(node, name, left, right)
            }
            (operators::INDEX, [container, index]) => self.index(node, container, index),
            (operators::IN, [element, container]) => self.contains(node, element, container),
            _ => return None,
        })
    }

    /// `left || right`. A text on the left is meant as a value with a default, and `a && b || 'c'` as `a ? b : 'c'`.
    fn either(&mut self, node: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Shape {
        if let Some((condition, value)) = conjunction(left)
            && conjunction(value).is_none()
            && literal_text(right).is_some()
        {
            self.boolean(condition);
            self.value(value);
            let [condition, value, other] = [condition, value, right]
                .map(|node| self.source.get(self.range(node)).unwrap_or("…"));
            let hint = format!(
                "write `{condition} ? {value} : {other}`, and quote the whole text because of the `: `"
            );
            let message = "`||` takes booleans, its right side is a string".to_owned();
            self.fault(self.range(node), Code::ExpressionType, message, Some(hint));
            return Shape::of(Kind::Any);
        }
        let shapes = (self.value(left), self.value(right));
        if matches!(shapes.0.kind, Kind::Text) {
            let text = |node| self.source.get(self.range(node)).unwrap_or("…");
            let (value, default) = (text(left), text(right));
            let condition = match &left.expr {
                Expr::Select(_) if !is_input(left) => format!("has({value})"),
                _ => format!("{value} != ''"),
            };
            let hint = format!(
                "write `{condition} ? {value} : {default}`, and quote the whole text because of the `: `"
            );
            let message = "`||` takes booleans, its left side is a string".to_owned();
            let range = self.range(node);
            self.fault(range, Code::ExpressionType, message, Some(hint));
            return Shape::of(Kind::Any);
        }
        self.expect_boolean(left, &shapes.0);
        self.expect_boolean(right, &shapes.1);
        Shape::of(Kind::Bool)
    }

    /// Warns that `node` compares a boolean with a text. If the text is a literal, the boolean alone or its negation is enough.
    fn boolean_as_text(&mut self, node: &IdedExpr, enough: Option<(&IdedExpr, bool)>) {
        let hint = match enough {
            Some((boolean, is_equal)) => {
                let boolean = self.source.get(self.range(boolean)).unwrap_or("…");
                match boolean {
                    _ if is_equal => format!("`{boolean}` is enough"),
                    _ if boolean.contains(' ') => format!("`!({boolean})` is enough"),
                    _ => format!("`!{boolean}` is enough"),
                }
            }
            None => {
                "it is compared as its text, `true` or `false`; compare two booleans or two texts"
                    .to_owned()
            }
        };
        let message = "this compares a boolean with a text";
        let warning = Fault::new(self.range(node), Code::BooleanAsText, message);
        self.warn(warning.hint(hint));
    }

    fn arithmetic(&mut self, node: &IdedExpr, name: &str, left: Shape, right: Shape) -> Shape {
        let is_add = name == operators::ADD;
        let is_difference = name == operators::SUBSTRACT;
        let kind = match (&left.kind, &right.kind) {
            (Kind::Timestamp, Kind::Duration) if is_add || is_difference => Some(Kind::Timestamp),
            (Kind::Duration, Kind::Timestamp) if is_add => Some(Kind::Timestamp),
            (Kind::Timestamp, Kind::Timestamp) if is_difference => Some(Kind::Duration),
            (Kind::Duration, Kind::Duration) if is_add || is_difference => Some(Kind::Duration),
            (Kind::Text, Kind::Text) | (Kind::Bytes, Kind::Bytes) if is_add => {
                Some(left.kind.clone())
            }
            (Kind::List(_), Kind::List(_)) if is_add => {
                Some(left.kind.clone().join(right.kind.clone()))
            }
            (Kind::Double, Kind::Double) if name == operators::MODULO => None,
            (one, other) if one.is_number() && one == other => Some(one.clone()),
            (Kind::Number, other) | (other, Kind::Number) if other.is_number() => {
                Some(Kind::Number)
            }
            (one, other) if one.is_unknown() || other.is_unknown() => Some(Kind::Any),
            _ => None,
        };
        let Some(kind) = kind else {
            let symbol = name.trim_matches('_');
            let message = format!("`{symbol}` does not take {} and {}", left.kind, right.kind);
            let are_numbers = left.kind.is_number() && right.kind.is_number();
            let hint = are_numbers.then(|| AS_DOUBLES.to_owned());
            self.fault(self.range(node), Code::ExpressionType, message, hint);
            return Shape::of(Kind::Any);
        };
        let taint = left.taint.max(right.taint);
        let joined = matches!(kind, Kind::Text | Kind::Bytes | Kind::List(_) | Kind::Any);
        let shape = Shape::of(kind);
        let shape = if joined {
            let (length, bytes) = (
                left.length.saturating_add(right.length),
                left.bytes.saturating_add(right.bytes),
            );
            self.spend(bytes);
            Shape {
                length,
                bytes,
                ..shape
            }
        } else {
            shape
        };
        shape.tainted(taint)
    }

    fn index(&mut self, node: &IdedExpr, container: &IdedExpr, index: &IdedExpr) -> Shape {
        let shape = self.infer(container);
        if let Some(name) = literal_text(index)
            && !matches!(shape.kind, Kind::History(_) | Kind::List(_))
        {
            self.cost = self.cost.saturating_add(1);
            self.note_state(node, &shape, name);
            return self.member(&shape, name, self.range(index));
        }
        let key = self.value(index);
        // A computed name may be `outputs`.
        self.references.outputs |= matches!(shape.kind, Kind::Job) || shape.kind.is_unknown();
        match &shape.kind {
            Kind::Scans => {
                self.references.any_scan = true;
                return Shape::of(Kind::History(None));
            }
            Kind::Inputs => {
                self.references.any_input = true;
                return Shape {
                    kind: Kind::Any,
                    ..Shape::foreign_text()
                }
                .tainted(Taint::Free);
            }
            Kind::Vars | Kind::Secrets | Kind::Steps => {
                let message = format!("the name of a member of {} must be written out", shape.kind);
                let hint = "an evaluation gets only the values that the expression names; write the name out"
                    .to_owned();
                self.fault(self.range(index), Code::DynamicName, message, Some(hint));
            }
            Kind::History(_) | Kind::List(_) => {
                if !key.kind.is_number() && !key.kind.is_unknown() {
                    self.mismatch(
                        index,
                        format!("a position in a list is a number, this is {}", key.kind),
                    );
                }
                if matches!(shape.kind, Kind::History(_)) {
                    self.job_position(index);
                }
                let element = shape.kind.element().unwrap_or(Kind::Any);
                return shape.part(element);
            }
            Kind::Map(value) => return shape.part((**value).clone()),
            kind if kind.is_unknown() => return shape.part(Kind::Any),
            kind => {
                let message = format!("{kind} has no members");
                self.mismatch(node, message);
            }
        }
        Shape::of(Kind::Any)
    }

    /// Reports a literal position that no history can have.
    fn job_position(&mut self, index: &IdedExpr) {
        let Expr::Literal(LiteralValue::Int(position)) = &index.expr else {
            return;
        };
        let position = *position.inner();
        let (message, hint) = if position < 0 {
            ("positions count from 0, the newest job".to_owned(), None)
        } else if usize::try_from(position).is_ok_and(|position| position < HISTORY_JOBS) {
            return;
        } else {
            (
                format!("only the newest {HISTORY_JOBS} jobs can be read"),
                Some("`size()` counts all of them".to_owned()),
            )
        };
        let mut range = self.range(index);
        // The library includes the sign in the number, but not in its place.
        let before = self.source.get(..range.start).unwrap_or("");
        if position < 0 && before.ends_with('-') {
            range.start -= 1;
        }
        self.fault(range, Code::InvalidValue, message, hint);
    }

    fn contains(&mut self, node: &IdedExpr, element: &IdedExpr, container: &IdedExpr) -> Shape {
        let shape = self.infer(container);
        match (&shape.kind, literal_text(element)) {
            (kind, Some(name)) if kind.is_namespace() => {
                self.member(&shape, name, self.range(element));
                return Shape::of(Kind::Bool);
            }
            (kind, None) if kind.is_namespace() => {
                let message = format!("the name of a member of {} must be written out", shape.kind);
                self.fault(self.range(element), Code::DynamicName, message, None);
            }
            (Kind::List(_) | Kind::Map(_) | Kind::Any | Kind::Nothing, _) => {}
            (kind, _) => {
                let message = format!("`in` takes a list or a map on its right, this is {kind}");
                self.mismatch(node, message);
            }
        }
        let wanted = self.value(element);
        if matches!(&shape.kind, Kind::List(kind) if kind.mixes_with(&wanted.kind)) {
            self.boolean_as_text(node, None);
        }
        self.compared_state(node, element, container);
        self.cost = self.cost.saturating_add(shape.length);
        self.spend(wanted.bytes.min(shape.bytes).saturating_mul(shape.length));
        Shape::of(Kind::Bool)
    }

    /// Records that `node` is the state of a job.
    pub(super) fn note_state(&mut self, node: &IdedExpr, operand: &Shape, member: &str) {
        if member == "state" && matches!(operand.kind, Kind::Job) {
            self.states.push(node.id);
        }
    }

    /// Warns if `state` is the state of a job and is compared with a state other than success.
    fn compared_state(&mut self, node: &IdedExpr, state: &IdedExpr, other: &IdedExpr) {
        let is_success = |node: &IdedExpr| literal_text(node) == Some(SUCCEEDED);
        let expects_success = match (&node.expr, &other.expr) {
            (Expr::Call(call), _) if call.func_name == operators::NOT_EQUALS => false,
            (_, Expr::List(list)) => list.elements.iter().all(is_success),
            _ => is_success(other),
        };
        if self.site != Site::Trigger || !self.states.contains(&state.id) || expects_success {
            return;
        }
        let message =
            "`on.expr` is evaluated when a job succeeds, so a failure does not start the scan";
        let warning = Fault::new(self.range(node), Code::UnseenFailure, message)
            .hint("`scans.NAME.has_failed()` is also evaluated when a job fails");
        self.warn(warning);
    }

    /// Adds the cost of reading or copying `bytes`.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.cost = self.cost.saturating_add(bytes / BYTES_PER_UNIT);
    }

    pub(super) fn mismatch(&mut self, node: &IdedExpr, message: String) {
        self.fault(self.range(node), Code::ExpressionType, message, None);
    }
}

/// The sides of `left && right`.
fn conjunction(node: &IdedExpr) -> Option<(&IdedExpr, &IdedExpr)> {
    match &node.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_AND => match &*call.args {
            [left, right] => Some((left, right)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the node is `inputs.NAME` or `inputs["NAME"]`.
fn is_input(node: &IdedExpr) -> bool {
    let container = match &node.expr {
        Expr::Select(select) => Some(select.operand.as_ref()),
        Expr::Call(call) if call.func_name == operators::INDEX => call.args.first(),
        _ => None,
    };
    container.is_some_and(|it| matches!(&it.expr, Expr::Ident(name) if name == "inputs"))
}

const fn is_ordered(kind: &Kind) -> bool {
    kind.is_unknown()
        || kind.is_number()
        || matches!(
            kind,
            Kind::Bool | Kind::Text | Kind::Bytes | Kind::Timestamp | Kind::Duration
        )
}
