//! Finds the place of a part of an expression in its source.

use std::ops::Range;

use cel_interpreter::common::ast::{CallExpr, Expr, IdedExpr, SourceInfo};

use super::brackets::balanced;
use crate::expression::tree::children;

/// The bytes of a node and its parts. The library knows the place of an operator, but not the end of a call and not the grouping
/// parentheses.
pub(in crate::expression) fn covered(
    source: &str,
    positions: &SourceInfo,
    node: &IdedExpr,
) -> Range<usize> {
    let mut covered: Option<Range<usize>> = None;
    let mut is_test = false;
    let mut pending = vec![node];
    while let Some(node) = pending.pop() {
        if let Some((start, last)) = positions.offset_for(node.id) {
            let (start, end) = (
                start as usize,
                (last as usize).saturating_add(1).min(source.len()),
            );
            covered = Some(match covered {
                Some(all) => all.start.min(start)..all.end.max(end),
                None => start..end.max(start),
            });
        }
        let name = match &node.expr {
            Expr::Select(select) => Some(field_range(source, positions, node, &select.field)),
            Expr::Call(call) => function_range(source, positions, node, call),
            _ => None,
        };
        covered = covered.map(|all| match name {
            Some(name) => all.start.min(name.start)..all.end.max(name.end),
            None => all,
        });
        is_test |= matches!(&node.expr, Expr::Select(select) if select.test);
        pending.extend(children(&node.expr));
    }
    let range = covered.map_or(0..source.len(), |range| balanced(source, range));
    if is_test {
        with_has(source, range)
    } else {
        range
    }
}

/// Extends the range by the `has` before it, if its first parenthesis belongs to a `has`. The tree does not contain the macro's
/// name.
fn with_has(source: &str, range: Range<usize>) -> Range<usize> {
    let is_opened = source
        .get(range.clone())
        .is_some_and(|text| text.starts_with('('));
    let before = source.get(..range.start).unwrap_or("").trim_end();
    match before.strip_suffix("has") {
        Some(rest) if is_opened => rest.len()..range.end,
        _ => range,
    }
}

/// The bytes of a function's name before its parenthesis; `None` for operators and macros.
pub(super) fn function_range(
    source: &str,
    positions: &SourceInfo,
    node: &IdedExpr,
    call: &CallExpr,
) -> Option<Range<usize>> {
    let (parenthesis, _) = positions.offset_for(node.id)?;
    let before = source.get(..parenthesis as usize)?.trim_end();
    before
        .ends_with(&call.func_name)
        .then(|| before.len() - call.func_name.len()..before.len())
}

/// The bytes of the field's name after the dot.
pub(super) fn field_range(
    source: &str,
    positions: &SourceInfo,
    node: &IdedExpr,
    field: &str,
) -> Range<usize> {
    let dot = positions
        .offset_for(node.id)
        .map_or(0, |(start, _)| start as usize);
    match source.get(dot..).and_then(|rest| rest.find(field)) {
        Some(at) => dot + at..dot + at + field.len(),
        None => dot..(dot + 1).min(source.len()),
    }
}
