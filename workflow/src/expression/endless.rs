//! Finds scans that start each other forever, because their expressions do not depend on a result.

use std::collections::HashMap;

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::Expression;
use super::groups::groups;
use super::reach::scan_of;
use super::same::parts;
use super::tree::{children, literal_text};

/// Returns the cycles among scans, as lists of indexes. A scan is given by its name and its `on.expr`. A scan is in no
/// cycle if every alternative of its expression depends on a result, or on the success of a scan outside the cycle.
pub(crate) fn endless(scans: &[(&str, Option<&Expression>)]) -> Vec<Vec<usize>> {
    let places: HashMap<&str, usize> = scans
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (*name, at))
        .collect();
    let mut named_by: Vec<Vec<usize>> = vec![Vec::new(); scans.len()];
    for (at, (_, expr)) in scans.iter().enumerate() {
        let names = expr.iter().flat_map(|expr| &expr.references().scans);
        for other in names.filter_map(|name| places.get(name.as_str())) {
            if let Some(named_by) = named_by.get_mut(*other) {
                named_by.push(at);
            }
        }
    }
    let mut remaining = scans.to_vec();
    // Removing a scan may break the cycles of the scans that name it.
    let mut pending: Vec<usize> = (0..scans.len()).collect();
    while let Some(at) = pending.pop() {
        let Some((own, Some(expr))) = remaining.get(at).copied() else {
            continue;
        };
        let is_remaining = |name: &str| {
            let place = places.get(name).and_then(|place| remaining.get(*place));
            place.is_some_and(|(_, expr)| expr.is_some())
        };
        let is_woken = expr.references().is_woken_by_any()
            || expr
                .references()
                .scans
                .iter()
                .any(|name| name != own && is_remaining(name));
        if is_woken && can_be(true, expr.program().expression(), &is_remaining) {
            continue;
        }
        if let Some((_, expr)) = remaining.get_mut(at) {
            *expr = None;
        }
        pending.extend(named_by.get(at).into_iter().flatten());
    }
    groups(&remaining)
}

/// Whether a condition can have this value repeatedly, while no result changes and the scans that `succeeds` accepts succeed
/// repeatedly. An unknown form counts as a result. Recursive; the depth of the tree was limited earlier.
fn can_be(wanted: bool, node: &IdedExpr, succeeds: &impl Fn(&str) -> bool) -> bool {
    if !any_part(node, is_scans) {
        return match &node.expr {
            Expr::Literal(LiteralValue::Boolean(value)) => *value.inner() == wanted,
            // For example, a var keeps its value until a person changes it.
            _ => true,
        };
    }
    let Expr::Call(call) = &node.expr else {
        return wanted && reads_only_success(node);
    };
    let can_be = |wanted: bool, part: &IdedExpr| can_be(wanted, part, succeeds);
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => {
            let mut parts = parts(node).into_iter();
            if (call.func_name == operators::LOGICAL_AND) == wanted {
                parts.all(|part| can_be(wanted, part))
            } else {
                parts.any(|part| can_be(wanted, part))
            }
        }
        (operators::LOGICAL_NOT, [part]) => can_be(!wanted, part),
        (operators::CONDITIONAL, [condition, yes, no]) => {
            (can_be(true, condition) && can_be(wanted, yes))
                || (can_be(false, condition) && can_be(wanted, no))
        }
        ("is_available", _) => {
            let scan = call.target.as_deref().and_then(scan_of);
            wanted && scan.is_none_or(succeeds)
        }
        (operator, [size, bound]) if is_size(size) && !any_part(bound, is_scans) => {
            stays(operator) == Some(wanted)
        }
        (operator, [bound, size]) if is_size(size) && !any_part(bound, is_scans) => {
            mirrored(operator).and_then(stays) == Some(wanted)
        }
        _ => wanted && reads_only_success(node),
    }
}

/// The final value of a comparison of a growing number with a fixed number.
fn stays(operator: &str) -> Option<bool> {
    match operator {
        operators::GREATER | operators::GREATER_EQUALS | operators::NOT_EQUALS => Some(true),
        operators::LESS | operators::LESS_EQUALS | operators::EQUALS => Some(false),
        _ => None,
    }
}

/// The comparison with its sides swapped.
fn mirrored(operator: &str) -> Option<&str> {
    match operator {
        operators::GREATER => Some(operators::LESS),
        operators::GREATER_EQUALS => Some(operators::LESS_EQUALS),
        operators::LESS => Some(operators::GREATER),
        operators::LESS_EQUALS => Some(operators::GREATER_EQUALS),
        operators::EQUALS | operators::NOT_EQUALS => Some(operator),
        _ => None,
    }
}

/// `size` of a scan.
fn is_size(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Call(call) if call.func_name == "size" => {
            let mut given = call.target.iter().map(AsRef::as_ref).chain(&call.args);
            given.any(|scan| scan_of(scan).is_some())
        }
        _ => false,
    }
}

/// Whether a part of a condition depends only on whether jobs have succeeded, and on nothing else about them.
fn reads_only_success(node: &IdedExpr) -> bool {
    !any_part(node, |part| match &part.expr {
        Expr::Select(select) => !is_namespace(&select.operand) && select.field != "state",
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::EQUALS, [one, other]) => ![one, other].into_iter().any(is_succeeded),
            (operators::INDEX, [of, at]) => {
                !is_namespace(of) && literal_text(at).is_some_and(|member| member != "state")
            }
            (
                operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::GREATER
                | operators::GREATER_EQUALS
                // These two are parts of macros such as `filter` and `exists`.
                | operators::ADD
                | operators::CONDITIONAL
                | operators::NOT_STRICTLY_FALSE
                | "size",
                _,
            ) => false,
            (operators::LOGICAL_NOT, [part]) => !matches!(part.expr, Expr::Ident(_)),
            _ => true,
        },
        _ => false,
    })
}

fn is_succeeded(node: &IdedExpr) -> bool {
    literal_text(node) == Some("succeeded")
}

fn is_namespace(node: &IdedExpr) -> bool {
    let namespaces = [
        "scans", "vars", "secrets", "inputs", "project", "workflow", "revision",
    ];
    name(node).is_some_and(|name| namespaces.contains(&name))
}

fn is_scans(node: &IdedExpr) -> bool {
    name(node) == Some("scans")
}

fn name(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Ident(name) => Some(name.strip_prefix('.').unwrap_or(name)),
        _ => None,
    }
}

/// Whether `is_it` is true for a node or a node below it.
fn any_part(node: &IdedExpr, is_it: impl Fn(&IdedExpr) -> bool) -> bool {
    let mut pending = vec![node];
    while let Some(node) = pending.pop() {
        if is_it(node) {
            return true;
        }
        pending.extend(children(&node.expr));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::groups::tests::named;
    use super::*;

    #[test]
    fn cycles_that_no_result_ends_are_found() {
        let (a, b) = ("scans.a.is_available()", "scans['b'].is_available()");
        let found = |scans: &[(&str, &str)]| named(scans, endless);
        assert_eq!(found(&[("a", b), ("b", a), ("c", a)]), ["a b"]);
        let (c, d) = ("scans.c.is_available()", "scans.d.is_available()");
        let two = [("a", b), ("c", d), ("b", a), ("d", c)];
        assert_eq!(found(&two), ["a b", "c d"]);
        assert_eq!(found(&[("a", b), ("b", c), ("c", a)]), ["a b c"]);
        let either = format!("{b} || {c}");
        assert_eq!(found(&[("a", &either), ("b", a), ("c", "")]), ["a b"]);
        let own = format!("({a} && {b}) && true");
        assert_eq!(found(&[("a", &own), ("b", a)]), ["a b"]);
        // `c` succeeds only if a person starts it.
        let both = format!("{b} && {c}");
        let none: [&str; 0] = [];
        assert_eq!(found(&[("a", &both), ("b", a), ("c", "")]), none);
        assert_eq!(
            found(&[
                ("a", &both),
                ("b", a),
                ("c", "size(scans.d) > 0"),
                ("d", "")
            ]),
            none
        );
        // A scan that depends on a removed scan is removed as well.
        let diff = "scans.c.has_diff()";
        let of_all = format!("{a} && {c}");
        assert_eq!(found(&[("a", b), ("b", &of_all), ("c", b)]), ["a b c"]);
        assert_eq!(
            found(&[("a", b), ("b", &of_all), ("c", "scans.b.has_diff()")]),
            none
        );
        assert_eq!(found(&[("a", b), ("b", diff), ("c", b)]), none);
        // Files that kept a daemon busy forever.
        assert_eq!(
            found(&[("a", ""), ("b", "true"), ("c", "vars.X == '1'")]),
            ["b c"]
        );
        let of_c = "scans.c[0].state == 'succeeded' || scans.a.is_available()";
        assert_eq!(
            found(&[("a", ""), ("b", of_c), ("c", "size(scans.b) >= 0")]),
            ["b c"]
        );
    }

    #[test]
    fn a_condition_repeats_unless_every_alternative_depends_on_a_result() {
        for (expr, expected) in [
            ("true", true),
            ("false", false),
            ("scans.b.is_available()", true),
            ("!scans.b.is_available()", false),
            ("scans.outside.is_available()", false),
            ("scans[vars.X].is_available()", true),
            ("vars.GO == '1' && scans.b.is_available()", true),
            ("scans.b.is_available() && scans.b.has_diff()", false),
            ("scans.b.is_available() || scans.b.has_diff()", true),
            ("!(scans.b.is_available() && scans.b.has_diff())", false),
            ("!(!scans.b.is_available() || !true)", true),
            ("vars.X == '1' ? scans.b.has_diff() : true", true),
            ("vars.X == '1' ? scans.b.has_diff() : false", false),
            ("scans.b.has_diff() ? true : false", false),
            ("size(scans.b) > 3", true),
            ("3 < scans.b.size()", true),
            ("scans.b.size() != 3", true),
            ("!(scans.b.size() < 3)", true),
            ("scans.b.size() < 3", false),
            ("scans.b.size() == 3", false),
            ("3 > size(scans.b)", false),
            ("size(scans.b) % 2 == 0", false),
            ("scans.b[0].state == 'succeeded'", true),
            ("'succeeded' == scans.b[0]['state']", true),
            ("scans.b[0].state == 'failed'", false),
            ("scans.b.exists(j, j.state == 'succeeded')", true),
            ("scans.b.filter(j, j.state == 'succeeded').size() > 0", true),
            (
                "scans.b.filter(j, j.state == 'succeeded').size() < 9",
                false,
            ),
            ("scans.b.exists(j, j.trigger == 'cron')", false),
            ("scans.b[0].trigger == 'cron'", false),
            ("scans.b[0].outputs.go == 'yes'", false),
            ("scans.b[0].artifacts.hosts.size > 0", false),
            ("scans.b[0].id == scans.b[1].id", false),
        ] {
            let expression = Expression::parse(expr, crate::expression::Site::Trigger).unwrap();
            let node = expression.program().expression();
            assert_eq!(can_be(true, node, &|scan| scan == "b"), expected, "{expr}");
        }
    }
}
