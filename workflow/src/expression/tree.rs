//! The tree of an expression: the parts of a node, and its literals.

use cel_interpreter::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};

/// Defines a function that lists the direct parts of a node.
macro_rules! children {
    ($name:ident $(, $mut:tt)?) => {
        pub(super) fn $name(expr: &$($mut)? Expr) -> Vec<&$($mut)? IdedExpr> {
            fn entries(entries: &$($mut)? [IdedEntryExpr]) -> Vec<&$($mut)? IdedExpr> {
                entries
                    .into_iter()
                    .flat_map(|entry| match &$($mut)? entry.expr {
                        EntryExpr::StructField(field) => vec![&$($mut)? field.value],
                        EntryExpr::MapEntry(entry) => {
                            vec![&$($mut)? entry.key, &$($mut)? entry.value]
                        }
                    })
                    .collect()
            }
            match expr {
                Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
                Expr::Call(call) => (&$($mut)? call.target)
                    .into_iter()
                    .map(|target| &$($mut)? **target)
                    .chain(&$($mut)? call.args)
                    .collect(),
                Expr::Comprehension(comprehension) => {
                    let it = &$($mut)? **comprehension;
                    vec![
                        &$($mut)? it.iter_range,
                        &$($mut)? it.accu_init,
                        &$($mut)? it.loop_cond,
                        &$($mut)? it.loop_step,
                        &$($mut)? it.result,
                    ]
                }
                Expr::List(list) => (&$($mut)? list.elements).into_iter().collect(),
                Expr::Map(map) => entries(&$($mut)? map.entries),
                Expr::Select(select) => vec![&$($mut)? select.operand],
                Expr::Struct(object) => entries(&$($mut)? object.entries),
            }
        }
    };
}

children!(children);
children!(children_mut, mut);

/// The text of a string literal.
pub(super) fn literal_text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
