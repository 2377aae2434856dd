//! Finds scans that start each other for ever: their expressions ask for nothing but `is_available()` of each other.

use std::collections::{BTreeSet, HashMap};

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::Expression;
use super::reach::scan_of;
use super::same::parts;

/// The cycles among scans, which are given by their name and `on.expr`. A cycle is a list of places. Only certain ones
/// are found: any other condition may end a cycle.
pub(crate) fn endless(scans: &[(&str, Option<&Expression>)]) -> Vec<Vec<usize>> {
    let places: HashMap<&str, usize> = scans
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (*name, at))
        .collect();
    let mut waits_for: Vec<Vec<usize>> = Vec::with_capacity(scans.len());
    let mut waited_for_by: Vec<Vec<usize>> = vec![Vec::new(); scans.len()];
    for (at, (_, expr)) in scans.iter().enumerate() {
        let names = expr.iter().flat_map(|expr| &expr.references().scans);
        let others: Vec<usize> = names
            .filter_map(|name| places.get(name.as_str()).copied())
            .filter(|other| *other != at)
            .collect();
        for other in &others {
            if let Some(waiting) = waited_for_by.get_mut(*other) {
                waiting.push(at);
            }
        }
        waits_for.push(others);
    }
    let neighbours = |graph: &[Vec<usize>], at: usize| graph.get(at).cloned().unwrap_or_default();
    let mut found: BTreeSet<usize> = (0..scans.len()).collect();
    // A scan that waits for something else drops out, and so do those that wait for it.
    let mut pending: Vec<usize> = (0..scans.len()).collect();
    while let Some(at) = pending.pop() {
        let goes_on = scans.get(at).is_some_and(|(own, expr)| {
            let is_available = |name: &str| {
                name == *own || places.get(name).is_some_and(|place| found.contains(place))
            };
            let waits = neighbours(&waits_for, at);
            waits.iter().any(|other| found.contains(other))
                && expr.is_some_and(|expr| holds(expr.program().expression(), &is_available))
        });
        if !goes_on && found.remove(&at) {
            pending.extend(neighbours(&waited_for_by, at));
        }
    }
    // A scan that only follows a cycle is not in it.
    let mut pending: Vec<usize> = (0..scans.len()).collect();
    while let Some(at) = pending.pop() {
        let keeps_another = neighbours(&waited_for_by, at);
        if !keeps_another.iter().any(|other| found.contains(other)) && found.remove(&at) {
            pending.extend(neighbours(&waits_for, at));
        }
    }
    let mut cycles = Vec::new();
    while let Some(first) = found.pop_first() {
        let (mut cycle, mut pending) = (vec![first], vec![first]);
        while let Some(at) = pending.pop() {
            for other in neighbours(&waits_for, at) {
                if found.remove(&other) {
                    cycle.push(other);
                    pending.push(other);
                }
            }
        }
        cycle.sort_unstable();
        cycles.push(cycle);
    }
    cycles
}

/// Whether the condition certainly holds when these scans are available. Recursive; the depth of the tree was limited
/// before.
fn holds(node: &IdedExpr, is_available: &impl Fn(&str) -> bool) -> bool {
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => *value.inner(),
        Expr::Call(call) => match (call.func_name.as_str(), &call.target) {
            (operators::LOGICAL_AND, _) => parts(node)
                .into_iter()
                .all(|part| holds(part, is_available)),
            (operators::LOGICAL_OR, _) => parts(node)
                .into_iter()
                .any(|part| holds(part, is_available)),
            ("is_available", Some(history)) => scan_of(history).is_some_and(is_available),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Site;

    fn found(scans: &[(&str, &str)]) -> Vec<String> {
        let parsed: Vec<(&str, Option<Expression>)> = scans
            .iter()
            .map(|(name, text)| {
                let expr = (!text.is_empty()).then(|| Expression::parse(text, Site::Trigger));
                (*name, expr.transpose().unwrap())
            })
            .collect();
        let scans: Vec<_> = parsed
            .iter()
            .map(|(name, expr)| (*name, expr.as_ref()))
            .collect();
        let names = |cycle: Vec<usize>| {
            let names: Vec<_> = cycle.into_iter().map(|at| scans[at].0).collect();
            names.join(" ")
        };
        endless(&scans).into_iter().map(names).collect()
    }

    #[test]
    fn only_cycles_that_nothing_ends_are_found() {
        let (a, b) = ("scans.a.is_available()", "scans['b'].is_available()");
        assert_eq!(found(&[("a", b), ("b", a)]), ["a b"]);
        assert_eq!(found(&[("a", b), ("b", a), ("c", a)]), ["a b"]);
        let (c, d) = ("scans.c.is_available()", "scans.d.is_available()");
        let two = [("a", b), ("c", d), ("b", a), ("d", c)];
        assert_eq!(found(&two), ["a b", "c d"]);
        assert_eq!(found(&[("a", b), ("b", c), ("c", a)]), ["a b c"]);
        let either = format!("{b} || {c}");
        assert_eq!(found(&[("a", &either), ("b", a), ("c", "")]), ["a b"]);
        let own = format!("({a} && {b}) && true");
        assert_eq!(found(&[("a", &own), ("b", a)]), ["a b"]);
        for ended in [
            format!("{b} && {c}"),
            format!("{b} && vars.GO == '1'"),
            format!("{b} && scans.b.has_diff()"),
            format!("{b} && scans.b.size() < 10"),
            format!("!{b}"),
            "scans[vars.X].is_available()".to_owned(),
            String::new(),
        ] {
            let none: [&str; 0] = [];
            assert_eq!(
                found(&[("a", &ended), ("b", a), ("c", "")]),
                none,
                "{ended}"
            );
        }
    }
}
