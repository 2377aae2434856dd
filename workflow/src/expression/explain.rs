//! Why a condition is what it is: `&&`, `||`, `!` and `?:` are walked here, with the same rules as the library's, and
//! everything else is given to it whole.

use std::collections::{BTreeMap, BTreeSet};

use cel_interpreter::common::ast::{Expr, IdedExpr, operators};

use super::error::EvaluationError;
use super::variables::Variables;
use super::{Expression, Value, evaluate};

/// A condition, or a part of one, with its value and the parts that were looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The operator for a combination; the source, as far as it is known, for a leaf.
    pub text: String,
    /// What it yields.
    pub result: Result<Value, EvaluationError>,
    /// The scans that a leaf has asked, with the ids of the jobs it has read; none where the scan's summary had the
    /// answer, as for `is_available()`.
    pub jobs: BTreeMap<String, BTreeSet<String>>,
    /// The parts that were evaluated, in order. What a short-circuit left out is not among them.
    pub parts: Vec<Explanation>,
}

/// Explains a whole condition.
pub(super) fn explain(expression: &Expression, variables: &Variables) -> Explanation {
    walk(expression, expression.program().expression(), variables)
}

fn walk(expression: &Expression, node: &IdedExpr, variables: &Variables) -> Explanation {
    let walk = |node: &IdedExpr| walk(expression, node, variables);
    if let Expr::Call(call) = &node.expr {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (name @ (operators::LOGICAL_AND | operators::LOGICAL_OR), [left, right]) => {
                let (symbol, decisive) = if name == operators::LOGICAL_AND {
                    ("&&", false)
                } else {
                    ("||", true)
                };
                let left = walk(left);
                if left.result == Ok(Value::Bool(decisive)) {
                    let result = left.result.clone();
                    return Explanation {
                        text: symbol.to_owned(),
                        result,
                        jobs: BTreeMap::new(),
                        parts: vec![left],
                    };
                }
                let right = walk(right);
                let result = match (&left.result, &right.result) {
                    // An error on one side does not matter when the other decides.
                    (_, Ok(Value::Bool(value))) if *value == decisive => Ok(Value::Bool(decisive)),
                    (Ok(Value::Bool(_)), Ok(Value::Bool(value))) => Ok(Value::Bool(*value)),
                    (Err(error), _) | (_, Err(error)) => Err(error.clone()),
                    (Ok(_), Ok(_)) => evaluate::node(expression, node, variables),
                };
                return Explanation {
                    text: symbol.to_owned(),
                    result,
                    jobs: BTreeMap::new(),
                    parts: vec![left, right],
                };
            }
            (operators::LOGICAL_NOT, [operand]) => {
                let operand = walk(operand);
                let result = match &operand.result {
                    Ok(Value::Bool(value)) => Ok(Value::Bool(!value)),
                    Ok(_) => evaluate::node(expression, node, variables),
                    Err(error) => Err(error.clone()),
                };
                return Explanation {
                    text: "!".to_owned(),
                    result,
                    jobs: BTreeMap::new(),
                    parts: vec![operand],
                };
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                let condition = walk(condition);
                let chosen = match &condition.result {
                    Ok(Value::Bool(true)) => Some(walk(yes)),
                    Ok(Value::Bool(false)) => Some(walk(no)),
                    Ok(_) | Err(_) => None,
                };
                let result = match (&chosen, &condition.result) {
                    (Some(chosen), _) => chosen.result.clone(),
                    (None, Err(error)) => Err(error.clone()),
                    (None, Ok(_)) => evaluate::node(expression, node, variables),
                };
                let parts = std::iter::once(condition).chain(chosen).collect();
                return Explanation {
                    text: "?:".to_owned(),
                    result,
                    jobs: BTreeMap::new(),
                    parts,
                };
            }
            _ => {}
        }
    }
    let result = evaluate::node(expression, node, variables);
    Explanation {
        text: leaf_text(expression, node),
        result,
        jobs: variables.take_reads(),
        parts: Vec::new(),
    }
}

/// The source from the first to the last token of the node that the library remembers the place of.
fn leaf_text(expression: &Expression, node: &IdedExpr) -> String {
    let range = super::analysis::covered(
        expression.source(),
        expression.program().source_info(),
        node,
    );
    expression
        .source()
        .get(range)
        .unwrap_or(expression.source())
        .trim()
        .to_owned()
}
