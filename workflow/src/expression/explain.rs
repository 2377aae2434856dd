//! Explains why a condition is true or false. It evaluates `&&`, `||`, `!` and `?:` itself, with the library's rules. The library
//! evaluates all other parts as a whole.

use std::collections::{BTreeMap, BTreeSet};

use cel_interpreter::common::ast::{Expr, IdedExpr, operators};

use super::error::EvaluationError;
use super::variables::Variables;
use super::{Expression, Value, evaluate};

/// A condition, or a part of one, with its value and its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The operator of a combination. For a leaf, its source as far as known.
    pub text: String,
    pub result: Result<Value, EvaluationError>,
    /// The scans that a leaf has read, with the ids of the jobs that it has read. `size()` only counts jobs, so it has no ids.
    pub jobs: BTreeMap<String, BTreeSet<String>>,
    /// The parts of a combination, in order.
    pub parts: Vec<Operand>,
}

/// One part of a combination.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// It was evaluated.
    Evaluated(Explanation),
    /// It was not evaluated, because other parts decided the result. Contains its source.
    LeftOut(String),
}

pub(super) fn explain(expression: &Expression, variables: &Variables) -> Explanation {
    walk(expression, &expression.0.evaluated, variables)
}

fn walk(expression: &Expression, node: &IdedExpr, variables: &Variables) -> Explanation {
    let walk = |node: &IdedExpr| walk(expression, node, variables);
    // The parts have already recorded their reads.
    let whole = || {
        let result = evaluate::node(expression, node, variables);
        drop(variables.take_reads());
        result
    };
    let left_out = |node: &IdedExpr| Operand::LeftOut(source_of(expression, node));
    let combination = |symbol: &str, result, parts| Explanation {
        text: symbol.to_owned(),
        result,
        jobs: BTreeMap::new(),
        parts,
    };
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
                    return combination(
                        symbol,
                        result,
                        vec![Operand::Evaluated(left), left_out(right)],
                    );
                }
                let right = walk(right);
                let result = match (&left.result, &right.result) {
                    // An error on one side does not matter if the other side decides.
                    (_, Ok(Value::Bool(value))) if *value == decisive => Ok(Value::Bool(decisive)),
                    (Ok(Value::Bool(_)), Ok(Value::Bool(value))) => Ok(Value::Bool(*value)),
                    (Err(error), _) | (_, Err(error)) => Err(error.clone()),
                    (Ok(_), Ok(_)) => whole(),
                };
                return combination(
                    symbol,
                    result,
                    vec![Operand::Evaluated(left), Operand::Evaluated(right)],
                );
            }
            (operators::LOGICAL_NOT, [operand]) => {
                let operand = walk(operand);
                let result = match &operand.result {
                    Ok(Value::Bool(value)) => Ok(Value::Bool(!value)),
                    Ok(_) => whole(),
                    Err(error) => Err(error.clone()),
                };
                return combination("!", result, vec![Operand::Evaluated(operand)]);
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                let condition = walk(condition);
                let (result, branches) = match &condition.result {
                    Ok(Value::Bool(true)) => {
                        let yes = walk(yes);
                        (yes.result.clone(), [Operand::Evaluated(yes), left_out(no)])
                    }
                    Ok(Value::Bool(false)) => {
                        let no = walk(no);
                        (no.result.clone(), [left_out(yes), Operand::Evaluated(no)])
                    }
                    Ok(_) => {
                        let result = whole();
                        (result, [left_out(yes), left_out(no)])
                    }
                    Err(error) => (Err(error.clone()), [left_out(yes), left_out(no)]),
                };
                let parts = std::iter::once(Operand::Evaluated(condition)).chain(branches);
                return combination("?:", result, parts.collect());
            }
            _ => {}
        }
    }
    let result = evaluate::node(expression, node, variables);
    Explanation {
        text: source_of(expression, node),
        result,
        jobs: variables.take_reads(),
        parts: Vec::new(),
    }
}

/// The source from the first to the last token of the node whose place the library knows.
fn source_of(expression: &Expression, node: &IdedExpr) -> String {
    let source = expression.source();
    let range = super::analysis::covered(source, expression.program().source_info(), node);
    source.get(range).unwrap_or(source).trim().to_owned()
}
