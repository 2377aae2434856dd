//! Finds groups of scans that can wake each other: the strongly connected components of a graph. An edge leads from a scan to
//! each scan whose expression is evaluated after its success.

use std::collections::HashMap;

use super::Expression;

/// The groups among scans, which are given by name and `on.expr`. A group is a list of at least two indexes, in order.
pub(crate) fn groups(scans: &[(&str, Option<&Expression>)]) -> Vec<Vec<usize>> {
    let graph = Graph::of(scans);
    let mut order = Vec::with_capacity(scans.len());
    let mut seen = vec![false; graph.wakes.len()];
    for start in 0..graph.wakes.len() {
        visit(&graph.wakes, start, &mut seen, &mut order);
    }
    // Kosaraju: the second searches go against the edges, in the reverse order of the first search. Each finds one component.
    let mut groups = Vec::new();
    let mut seen = vec![false; graph.woken_by.len()];
    for start in order.into_iter().rev() {
        let mut found = Vec::new();
        visit(&graph.woken_by, start, &mut seen, &mut found);
        found.retain(|at| *at < scans.len());
        if found.len() > 1 {
            found.sort_unstable();
            groups.push(found);
        }
    }
    groups.sort_unstable();
    groups
}

/// Edges in both directions. The last node means "any other scan": each scan leads to it, and it leads to each scan that any
/// other scan wakes. Without it, a file of such scans would have an edge for each pair of scans. A path from a scan through this
/// node back to the same scan is not an edge, and does not connect two scans.
struct Graph {
    wakes: Vec<Vec<usize>>,
    woken_by: Vec<Vec<usize>>,
}

impl Graph {
    fn of(scans: &[(&str, Option<&Expression>)]) -> Self {
        let any = scans.len();
        let mut graph = Self {
            wakes: vec![Vec::new(); any + 1],
            woken_by: vec![Vec::new(); any + 1],
        };
        let places: HashMap<&str, usize> = scans
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (*name, at))
            .collect();
        for (at, (_, expr)) in scans.iter().enumerate() {
            graph.connect(at, any);
            let Some(references) = expr.map(Expression::references) else {
                continue;
            };
            if references.is_woken_by_any() {
                graph.connect(any, at);
                continue;
            }
            let named = references.scans.iter();
            for other in named.filter_map(|name| places.get(name.as_str())) {
                if *other != at {
                    graph.connect(*other, at);
                }
            }
        }
        graph
    }

    fn connect(&mut self, from: usize, to: usize) {
        if let (Some(wakes), Some(woken_by)) = (self.wakes.get_mut(from), self.woken_by.get_mut(to))
        {
            wakes.push(to);
            woken_by.push(from);
        }
    }
}

/// Searches depth first from a node. Adds the found nodes, each after the nodes that it leads to.
fn visit(edges: &[Vec<usize>], start: usize, seen: &mut [bool], found: &mut Vec<usize>) {
    let mut enter = |at: usize| {
        seen.get_mut(at)
            .is_some_and(|it| !std::mem::replace(it, true))
    };
    if !enter(start) {
        return;
    }
    let mut path = vec![(start, 0)];
    while let Some((at, next)) = path.last_mut() {
        match edges.get(*at).and_then(|edges| edges.get(*next)) {
            Some(to) => {
                *next += 1;
                if enter(*to) {
                    path.push((*to, 0));
                }
            }
            None => {
                found.push(*at);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::expression::Site;

    type Find = fn(&[(&str, Option<&Expression>)]) -> Vec<Vec<usize>>;

    /// Scans, and the groups among them.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

    /// The groups of scans, given by name and expression; an empty text means no expression.
    pub(in crate::expression) fn named(scans: &[(&str, &str)], find: Find) -> Vec<String> {
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
        let names = |group: Vec<usize>| {
            let names: Vec<_> = group.into_iter().map(|at| scans[at].0).collect();
            names.join(" ")
        };
        find(&scans).into_iter().map(names).collect()
    }

    #[test]
    fn scans_that_can_wake_each_other_are_a_group() {
        let (a, b, c) = (
            "scans.a.is_available()",
            "scans['b'].has_diff()",
            "size(scans.c) > 3",
        );
        let of_two = format!("{a} || {b}");
        let cases: [Case<'_>; 11] = [
            (&[("a", ""), ("b", a), ("c", b)], &[]),
            (&[("a", b), ("b", a)], &["a b"]),
            (&[("a", b), ("b", a), ("c", a)], &["a b"]),
            (&[("c", b), ("a", c), ("b", a)], &["c a b"]),
            (
                &[("a", b), ("b", a), ("x", c), ("c", "scans.x[0].id != ''")],
                &["a b", "x c"],
            ),
            // Two cycles through one scan.
            (&[("a", b), ("b", &of_two), ("c", b), ("d", a)], &["a b"]),
            (
                &[
                    ("a", "scans.b.has_diff() || scans.c.has_diff()"),
                    ("b", a),
                    ("c", a),
                ],
                &["a b c"],
            ),
            // The success of any other scan wakes an expression without names, but its own success does not.
            (&[("a", ""), ("b", "true")], &[]),
            (
                &[("a", ""), ("b", "true"), ("c", "vars.X == '1'")],
                &["b c"],
            ),
            (&[("a", ""), ("b", "true"), ("c", b), ("d", "")], &["b c"]),
            (
                &[("a", ""), ("b", "scans[vars.X].is_available()"), ("c", b)],
                &["b c"],
            ),
        ];
        for (scans, expected) in cases {
            assert_eq!(named(scans, groups), expected, "{scans:?}");
        }
    }

    /// Compares with a search: two scans are in the same group exactly if they wake each other, directly or through others.
    #[test]
    fn the_groups_are_those_that_a_search_from_every_scan_finds() {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..200 {
            let count = next(6) + 2;
            let names: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
            let texts: Vec<String> = (0..count)
                .map(|at| match next(4) {
                    0 => String::new(),
                    1 => "true".to_owned(),
                    // Its own name and another one.
                    _ => format!(
                        "scans.s{at}.has_diff() || scans.s{}.has_diff()",
                        next(count)
                    ),
                })
                .collect();
            let scans: Vec<(&str, &str)> = names
                .iter()
                .zip(&texts)
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect();
            let wakes = |from: usize, to: usize| {
                from != to
                    && !texts[to].is_empty()
                    && (texts[to] == "true" || texts[to].contains(&format!("scans.s{from}.")))
            };
            let pairs = || (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
            let mut reaches: BTreeSet<(usize, usize)> = BTreeSet::new();
            for _ in 0..count {
                let known = reaches.clone();
                reaches.extend(pairs().filter(|(from, to)| {
                    let through = |over| known.contains(&(*from, over)) && wakes(over, *to);
                    wakes(*from, *to) || (0..count).any(through)
                }));
            }
            let found = named(&scans, groups);
            for (from, to) in pairs().filter(|(from, to)| from != to) {
                let both = reaches.contains(&(from, to)) && reaches.contains(&(to, from));
                let is_in =
                    |group: &String, at: usize| group.split(' ').any(|name| name == names[at]);
                let together = found
                    .iter()
                    .any(|group| is_in(group, from) && is_in(group, to));
                assert_eq!(together, both, "{scans:?} {found:?}");
            }
        }
    }
}
