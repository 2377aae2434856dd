//! Decides whether one condition implies another, by `&&`, `||` and equal parts. `false` means only that their forms do not show
//! an implication.

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::Expression;
use super::same::{is_same, parts};

impl Expression {
    /// Whether this condition holds whenever `other` holds and no step has failed the job. A missing condition always holds.
    pub(crate) fn follows_from(&self, other: Option<&Self>) -> bool {
        let facts = other.map_or_else(Vec::new, |other| facts_of(other.program().expression()));
        follows(self.program().expression(), &facts)
    }
}

/// The parts that must hold if a condition holds.
fn facts_of(node: &IdedExpr) -> Vec<&IdedExpr> {
    let mut facts = vec![node];
    if operator(node) == Some(operators::LOGICAL_AND) {
        facts.extend(parts(node));
    }
    facts
}

fn follows(node: &IdedExpr, facts: &[&IdedExpr]) -> bool {
    if is_given(&node.expr) || facts.iter().any(|fact| is_same(fact, node)) {
        return true;
    }
    // Flatten a chain first, so that its inner chains are not compared with each other.
    let mut operands = parts(node).into_iter();
    match operator(node) {
        Some(operators::LOGICAL_AND) => operands.all(|operand| follows(operand, facts)),
        Some(operators::LOGICAL_OR) => operands.any(|operand| follows(operand, facts)),
        Some(_) | None => false,
    }
}

fn operator(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Call(call) => Some(&call.func_name),
        _ => None,
    }
}

/// Whether the condition holds while no step has failed the job.
fn is_given(expr: &Expr) -> bool {
    match expr {
        Expr::Ident(name) => matches!(name.as_str(), "ok" | "always"),
        Expr::Literal(LiteralValue::Boolean(value)) => *value.inner(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::{Expression, Site};

    #[test]
    fn forms_show_what_follows_from_what() {
        let parse = |source: &str| Expression::parse(source, Site::Condition).unwrap();
        for (condition, from, expected) in [
            ("inputs.a == 'x y'", "inputs.a=='x y'", true),
            ("inputs.a == 'x y'", "inputs.a == 'xy'", false),
            ("inputs.a == 'x'", "(inputs.a) == \"x\"", true),
            ("ok && inputs.a", "inputs.a", true),
            (
                "inputs.a && inputs.b",
                "inputs.b && inputs.a && inputs.c",
                true,
            ),
            ("inputs.a && inputs.b", "inputs.a", false),
            ("inputs.a || inputs.b", "inputs.b && ok", true),
            ("inputs.a", "inputs.a || inputs.b", false),
            ("inputs.a || inputs.b", "inputs.a || inputs.b", true),
            ("!inputs.a", "inputs.a", false),
        ] {
            let follows = parse(condition).follows_from(Some(&parse(from)));
            assert_eq!(follows, expected, "{condition} from {from}");
        }
        assert!(parse("always").follows_from(None));
        assert!(parse("true || inputs.a").follows_from(None));
        assert!(!parse("inputs.a").follows_from(None));
    }
}
