//! Evaluates expressions, called by a sandbox. The static check has limited the cost.

use std::sync::Arc;

use cel_interpreter::common::ast::IdedExpr;
use cel_interpreter::{Context as CelContext, ExecutionError, Value as CelValue};

use super::compile::ENVIRONMENT;
use super::error::EvaluationError;
use super::syntax::AS_DOUBLES;
use super::value::Value;
use super::variables::Variables;
use super::{Expression, absent, missing};

/// Evaluates one node of an expression's tree.
pub(super) fn node(
    expression: &Expression,
    node: &IdedExpr,
    variables: &Variables,
) -> Result<Value, EvaluationError> {
    let source = || expression.source().to_owned();
    let failed = |message| EvaluationError::Failed {
        expression: source(),
        message,
    };
    let mut context = CelContext::with_env(Arc::clone(&ENVIRONMENT));
    context.set_variable_resolver(variables);
    let missing = |name| EvaluationError::Missing {
        expression: source(),
        name,
        meant: None,
    };
    let value = CelValue::resolve_val(node, &context).map_err(|error| match &error {
        ExecutionError::NoSuchKey(key) => match absent::absence(key) {
            Some(reason) => failed(reason.to_owned()),
            None => missing(missing::full_name(node, key)),
        },
        ExecutionError::UndeclaredReference(name) => missing(name.to_string()),
        other => failed(describe(other)),
    })?;
    Value::from_cel(value.as_ref())
        .map_err(|kind| failed(format!("an expression cannot yield a {kind}")))
}

pub(super) fn value(
    expression: &Expression,
    variables: &Variables,
) -> Result<Value, EvaluationError> {
    node(expression, &expression.0.evaluated, variables)
}

pub(super) fn truth(
    expression: &Expression,
    variables: &Variables,
) -> Result<bool, EvaluationError> {
    match value(expression, variables)? {
        Value::Bool(value) => Ok(value),
        other => Err(EvaluationError::NotBoolean {
            expression: expression.source().to_owned(),
            found: other.label(),
        }),
    }
}

/// The library's errors as text, without the values of the operands, because one of them may be a secret.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(", ");
            format!(
                "`{}` does not take {types}",
                overload.function().trim_matches('_')
            )
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::UnexpectedType { got, want } => format!("expected {want}, found {got}"),
        ExecutionError::IndexOutOfBounds(_) => "the list has no such position".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number or time is out of range".to_owned(),
        ExecutionError::ValuesNotComparable(..) => "the values cannot be compared".to_owned(),
        ExecutionError::UnsupportedBinaryOperator(name, left, right) => {
            let is_number = |value: &CelValue| {
                matches!(
                    value,
                    CelValue::Int(_) | CelValue::UInt(_) | CelValue::Float(_)
                )
            };
            if is_number(left) && is_number(right) {
                format!("`{name}` does not take numbers of different kinds; {AS_DOUBLES}")
            } else {
                format!("`{name}` does not take these values")
            }
        }
        ExecutionError::UnsupportedIndex(..) | ExecutionError::UnsupportedKeyType(_) => {
            "this is neither a position nor a name".to_owned()
        }
        _ => "the operation is not possible on these values".to_owned(),
    }
}
