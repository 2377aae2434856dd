//! `==`, `!=` and `in`. They differ from the library in one rule: a boolean equals its text, also inside lists and maps.

use cel_interpreter::common::ast::{Expr, IdedExpr, operators};
use cel_interpreter::common::functions::Function;
use cel_interpreter::common::traits::Indexer;
use cel_interpreter::common::types::{CelBool, CelList, CelMap, CelMapKey, CelString, DYN_TYPE};
use cel_interpreter::common::value::{CowVal, Val};
use cel_interpreter::{DeclarationError, Env, ExecutionError};

use super::tree::children_mut;

/// The library's operators, and the functions that replace them. No expression can call these by name.
const OPERATORS: [(&str, &str, Function); 3] = [
    (operators::EQUALS, "==", equals),
    (operators::NOT_EQUALS, "!=", differs),
    (operators::IN, "in", is_in),
];

/// Declares the functions.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    for (_, name, function) in OPERATORS {
        env.add_overload(name, name, vec![DYN_TYPE, DYN_TYPE], function)?;
    }
    Ok(())
}

/// The tree with the functions instead of the operators.
pub(super) fn replaced(root: &IdedExpr) -> IdedExpr {
    let mut root = root.clone();
    let mut pending = vec![&mut root];
    while let Some(node) = pending.pop() {
        if let Expr::Call(call) = &mut node.expr
            && let Some((_, name, _)) = OPERATORS.iter().find(|it| it.0 == call.func_name)
        {
            call.func_name = (*name).to_owned();
        }
        pending.extend(children_mut(&mut node.expr));
    }
    root
}

fn equals<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (one, other) = both(&values)?;
    Ok(boolean(is_equal(one, other)))
}

fn differs<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (one, other) = both(&values)?;
    Ok(boolean(!is_equal(one, other)))
}

fn is_in<'b, 'v>(values: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (element, container) = both(&values)?;
    let refused =
        || ExecutionError::function_error("in", "`in` takes a list or a map on its right");
    let mut is_found = (container.as_container())
        .ok_or_else(refused)?
        .contains(element)?;
    if let Some(elements) = container.as_iterable() {
        let mut elements = elements.iter();
        while !is_found && let Some(it) = elements.next() {
            is_found = is_equal(it, element);
        }
    }
    Ok(boolean(is_found))
}

fn both<'a, 'v>(
    values: &'a [CowVal<'_, 'v>],
) -> Result<(&'a (dyn Val + 'v), &'a (dyn Val + 'v)), ExecutionError> {
    match values {
        [one, other] => Ok((one.as_ref(), other.as_ref())),
        _ => Err(ExecutionError::function_error("==", "not two values")),
    }
}

fn boolean(value: bool) -> CowVal<'static, 'static> {
    CowVal::owned(CelBool::from(value))
}

fn is_equal(one: &dyn Val, other: &dyn Val) -> bool {
    if let (Some(one), Some(other)) = (as_list(one), as_list(other)) {
        let mut pairs = one.iter().zip(other.iter());
        one.len() == other.len() && pairs.all(|(one, other)| is_equal(&**one, &**other))
    } else if let (Some(one), Some(other)) = (as_map(one), as_map(other)) {
        let get = |key: &CelMapKey<'_>| Indexer::get(other, key.inner());
        let mut entries = one.iter();
        one.len() == other.len()
            && entries.all(|(key, value)| get(key).is_ok_and(|it| is_equal(&**value, &*it)))
    } else {
        is_text_of(one, other) || is_text_of(other, one) || one.equals(other)
    }
}

/// Whether one value is a text, and the text of the other value, a boolean.
fn is_text_of(text: &dyn Val, boolean: &dyn Val) -> bool {
    let text = text.downcast_ref::<CelString<'_>>();
    let boolean = boolean.downcast_ref::<CelBool>();
    text.zip(boolean)
        .is_some_and(|(text, boolean)| text.inner() == boolean.to_string())
}

fn as_list<'a, 'v>(value: &'a (dyn Val + 'v)) -> Option<&'a CelList<'v>> {
    value.downcast_ref()
}

fn as_map<'a, 'v>(value: &'a (dyn Val + 'v)) -> Option<&'a CelMap<'v>> {
    value.downcast_ref()
}
