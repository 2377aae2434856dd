//! Finds how many jobs of a scan's history an expression can read, from its form. `is_available`, `has_diff`, `has_failed`,
//! `has_news`, `processed` and `size` read no job. `last_success` reads one job, and `scans.X[3]` reads the four newest jobs. All
//! other forms may read all jobs.

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::references::{Reach, References};
use super::tree::{children, literal_text};

/// Methods that read a scan's summary and no jobs.
const SUMMARIES: [&str; 6] = [
    "has_diff",
    "has_failed",
    "has_news",
    "is_available",
    "processed",
    "size",
];

/// The method that reads the newest success.
const SUCCESS: &str = "last_success";

/// Records the reach of a whole expression. Recursive; the size of the tree was limited earlier.
pub(super) fn note(node: &IdedExpr, references: &mut References) {
    if let Some(scan) = scan_of(node) {
        return references.reach(scan, Reach::All);
    }
    match &node.expr {
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            let arguments = call.target.iter().map(AsRef::as_ref).chain(&call.args);
            let is_summary = SUMMARIES.contains(&name);
            match (name, call.args.as_slice()) {
                (operators::INDEX, [history, position]) if scan_of(history).is_some() => {
                    let reach = constant(position).map_or(Reach::All, |at| Reach::Newest(at + 1));
                    if let Some(scan) = scan_of(history) {
                        references.reach(scan, reach);
                    }
                    note(position, references);
                }
                (SUCCESS, []) if call.target.as_deref().and_then(scan_of).is_some() => {
                    if let Some(scan) = call.target.as_deref().and_then(scan_of) {
                        references.reach(scan, Reach::Success);
                    }
                }
                _ => arguments
                    .filter(|argument| !(is_summary && scan_of(argument).is_some()))
                    .for_each(|argument| note(argument, references)),
            }
        }
        expr => children(expr)
            .into_iter()
            .for_each(|part| note(part, references)),
    }
}

/// The scan in `scans.X` or `scans["X"]`.
pub(super) fn scan_of(node: &IdedExpr) -> Option<&str> {
    let is_scans = |node: &IdedExpr| match &node.expr {
        Expr::Ident(name) => name.strip_prefix('.').unwrap_or(name) == "scans",
        _ => false,
    };
    match &node.expr {
        Expr::Select(select) => is_scans(&select.operand).then_some(select.field.as_str()),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::INDEX, [scans, name]) if is_scans(scans) => literal_text(name),
            _ => None,
        },
        _ => None,
    }
}

fn constant(node: &IdedExpr) -> Option<usize> {
    match &node.expr {
        Expr::Literal(LiteralValue::Int(position)) => usize::try_from(*position.inner()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Expression, Site};

    #[test]
    fn only_what_reads_jobs_reaches_into_a_history() {
        for (source, expected) in [
            ("scans.a.is_available() && scans.b.has_diff('x')", vec![]),
            ("size(scans.a) > 3 || scans['a'].size() == 0", vec![]),
            (
                "scans.a[0].state == 'failed'",
                vec![("a", Reach::Newest(1))],
            ),
            (
                "scans.a[0].id == '' || scans.a[4].id == ''",
                vec![("a", Reach::Newest(5))],
            ),
            (
                "scans.a.size() > 0 && scans['b'].filter(j, j.state == 'failed').size() > 1",
                vec![("b", Reach::All)],
            ),
            (
                "scans.a.exists(j, j.id == scans.b[0].id) || scans.b[0].id == 'x'",
                vec![("a", Reach::All), ("b", Reach::Newest(1))],
            ),
            (
                "scans.a[size(scans.a) - 1].id == 'x'",
                vec![("a", Reach::All)],
            ),
            ("[scans.a][0][0].id == 'x'", vec![("a", Reach::All)]),
            (
                "scans.a.has_news('x') && scans.a.processed().id != ''",
                vec![],
            ),
            (
                "scans.a.last_success().id == scans['a'].last_success().id",
                vec![("a", Reach::Success)],
            ),
            (
                "scans.a.last_success().id == scans.a[1].id",
                vec![("a", Reach::All)],
            ),
        ] {
            let expression = Expression::parse(source, Site::Trigger).unwrap();
            let found: Vec<(&str, Reach)> = expression
                .references()
                .jobs
                .iter()
                .map(|(scan, reach)| (scan.as_str(), *reach))
                .collect();
            assert_eq!(found, expected, "{source}");
        }
    }
}
