//! Decides whether two expressions mean the same. The tree does not contain spaces, comments, quotes and unnecessary parentheses.

use cel_interpreter::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators,
};

use super::tree::children;

/// Compares two trees without the ids of their nodes.
pub(super) fn is_same(one: &IdedExpr, other: &IdedExpr) -> bool {
    let mut pending = vec![(one, other)];
    while let Some((one, other)) = pending.pop() {
        if !is_same_node(&one.expr, &other.expr) {
            return false;
        }
        let (ones, others) = (parts(one), parts(other));
        if ones.len() != others.len() {
            return false;
        }
        pending.extend(ones.into_iter().zip(others));
    }
    true
}

/// The parts of a node. `a && (b && c)` and `(a && b) && c` are one chain.
pub(super) fn parts(node: &IdedExpr) -> Vec<&IdedExpr> {
    let Some(name) = chain(node) else {
        return children(&node.expr);
    };
    let mut found = Vec::new();
    let mut pending = vec![node];
    while let Some(node) = pending.pop() {
        if chain(node) == Some(name) {
            pending.extend(children(&node.expr).into_iter().rev());
        } else {
            found.push(node);
        }
    }
    found
}

/// The operator of a node whose grouping does not matter.
fn chain(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Call(call)
            if [operators::LOGICAL_AND, operators::LOGICAL_OR]
                .contains(&call.func_name.as_str()) =>
        {
            Some(&call.func_name)
        }
        _ => None,
    }
}

/// Compares two nodes without their parts.
fn is_same_node(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Unspecified, Expr::Unspecified) => true,
        (Expr::Call(one), Expr::Call(other)) => {
            one.func_name == other.func_name && one.target.is_some() == other.target.is_some()
        }
        (Expr::Comprehension(one), Expr::Comprehension(other)) => {
            one.iter_var == other.iter_var
                && one.iter_var2 == other.iter_var2
                && one.accu_var == other.accu_var
        }
        (Expr::Ident(one), Expr::Ident(other)) => one == other,
        (Expr::List(one), Expr::List(other)) => one.optional_indices == other.optional_indices,
        // -0.0 equals 0.0, but differs as a divisor.
        (Expr::Literal(LiteralValue::Double(one)), Expr::Literal(LiteralValue::Double(other))) => {
            one.inner().to_bits() == other.inner().to_bits()
        }
        (Expr::Literal(one), Expr::Literal(other)) => one == other,
        (Expr::Map(one), Expr::Map(other)) => keys(&one.entries) == keys(&other.entries),
        (Expr::Select(one), Expr::Select(other)) => {
            one.field == other.field && one.test == other.test
        }
        (Expr::Struct(one), Expr::Struct(other)) => {
            one.type_name == other.type_name && keys(&one.entries) == keys(&other.entries)
        }
        (
            Expr::Unspecified
            | Expr::Call(_)
            | Expr::Comprehension(_)
            | Expr::Ident(_)
            | Expr::List(_)
            | Expr::Literal(_)
            | Expr::Map(_)
            | Expr::Select(_)
            | Expr::Struct(_),
            _,
        ) => false,
    }
}

/// Entries without their parts: the name of a field, and whether it may be absent.
fn keys(entries: &[IdedEntryExpr]) -> Vec<(Option<&str>, bool)> {
    entries
        .iter()
        .map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => (Some(field.field.as_str()), field.optional),
            EntryExpr::MapEntry(entry) => (None, entry.optional),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::expression::{Expression, Site};

    fn is_same(one: &str, other: &str) -> bool {
        let read = |source| Expression::parse(source, Site::Question).unwrap();
        read(one).means_the_same(&read(other))
    }

    #[test]
    fn one_expression_can_be_written_in_several_ways() {
        for (one, other) in [
            ("ok", "(ok)"),
            ("ok", " ( ( ok ) ) "),
            ("ok&&always", "ok && always"),
            ("ok && always && ok", "ok && (always && ok)"),
            ("ok || (always || ok) || ok", "(ok || always) || (ok || ok)"),
            ("vars.A == 'x'", "vars . A==\"x\""),
            ("1 + 2 * 3 == 7", "1 + (2 * 3) == 7"),
            (
                "scans.a.exists(j, j.id == '')",
                "scans.a.exists( j , (j.id) == \"\" )",
            ),
            ("ok // why", "ok"),
            ("{'a': [1, 2.0]}", "{ \"a\" : [ 1,2.0 ] }"),
        ] {
            assert!(is_same(one, other), "{one} | {other}");
        }
    }

    #[test]
    fn different_expressions_are_different() {
        for (one, other) in [
            ("ok", "!ok"),
            ("ok && always", "always && ok"),
            ("ok && always", "ok || always"),
            ("ok && (always || ok)", "ok && always || ok"),
            ("(1 + 2) * 3 == 7", "1 + 2 * 3 == 7"),
            ("1 - (2 - 3) == 0", "1 - 2 - 3 == 0"),
            ("1", "1.0"),
            ("1", "1u"),
            ("'1'", "1"),
            ("1.0 / 0.0", "1.0 / -0.0"),
            ("vars.A", "vars.B"),
            ("has(vars.A)", "vars.A"),
            ("size(vars.A)", "vars.A.size()"),
            (
                "scans.a.all(j, j.id == '')",
                "scans.a.exists(j, j.id == '')",
            ),
            ("[1, 2]", "[1]"),
            ("{'a': 1}", "{'b': 1}"),
        ] {
            assert!(!is_same(one, other), "{one} | {other}");
        }
    }
}
