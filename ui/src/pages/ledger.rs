//! The ledger of a scan, and the expressions in it as trees of parts, each with its value and the jobs that it read.

use maud::{Markup, html};
use serde_json::Value;
use uuid::Uuid;
use wire::{Clause, Evaluation, LedgerCause, LedgerOutcome, LedgerRecord, Scan};

use crate::list::{empty, table};
use crate::words::{at, cause, condition, count, job_link, outcome_of, with_code};

pub(super) fn ledger(scan: &Scan, records: &[LedgerRecord]) -> Markup {
    html! {
        @if records.is_empty() {
            (empty(&html! { p { (nothing_yet(scan)) } }))
        } @else {
            (table("Ledger", &["time", "outcome", "because of", "the expression said", "what came of it"], &html! {
                @for record in records { (row(record)) }
            }))
        }
    }
}

/// Why a ledger is empty.
const fn nothing_yet(scan: &Scan) -> &'static str {
    match (&scan.cron, &scan.expr) {
        (None, None) if scan.callback.is_some() => "No interaction has come yet.",
        (Some(_), Some(_)) => "Its schedule and its expression have not been evaluated yet.",
        (Some(_), None) => "Its schedule has not been evaluated yet.",
        (None, Some(_)) => "Its expression has not been evaluated yet.",
        (None, None) => "It is only started by hand, so nothing is evaluated.",
    }
}

fn row(record: &LedgerRecord) -> Markup {
    let (shape, word) = match &record.outcome {
        LedgerOutcome::Made { .. } => ("succeeded", "made"),
        LedgerOutcome::NotMade { .. } => ("skipped", "no job"),
        LedgerOutcome::Skipped { .. } => ("cancelled", "skipped"),
    };
    html! {
        tr.repeats[matches!(record.cause, LedgerCause::Repeats { .. })] {
            td { (at(record.at)) }
            td { (condition(shape, word)) }
            td.wide { (cause(record)) }
            td.wide {
                @if let Some(read) = &record.evaluation {
                    details {
                        summary { (what_decided(read)) }
                        (evaluation(read))
                    }
                }
            }
            td.wide { (outcome_of(record)) }
        }
    }
}

/// The greatest depth to show. The language allows less; this only bounds the page.
const DEEPEST: usize = 64;

pub(super) fn evaluation(evaluation: &Evaluation) -> Markup {
    part(&evaluation.clause, 0)
}

/// The most parts to name in one line.
const NAMED: usize = 2;

/// The parts that decided the value of an expression, in one line.
pub(super) fn what_decided(evaluation: &Evaluation) -> Markup {
    let mut parts = Vec::new();
    decisive(&evaluation.clause, 0, &mut parts);
    html! {
        @for (place, part) in parts.iter().take(NAMED).enumerate() {
            @if place > 0 { ", " }
            (value(part)) " " code { (part.text) }
        }
        @if parts.len() > NAMED { " and " (count((parts.len() - NAMED) as u64, "more part", "more parts")) }
    }
}

/// Finds the leaves that decided the value of a clause.
fn decisive<'c>(clause: &'c Clause, depth: usize, found: &mut Vec<&'c Clause>) {
    let is_evaluated = |part: &&Clause| part.value.is_some() || part.error.is_some();
    let has_decided = |part: &&Clause| match clause.text.as_str() {
        // The value did not depend on the other parts.
        "&&" | "||" if clause.error.is_none() => part.value == clause.value,
        _ if clause.error.is_some() => part.error.is_some(),
        _ => true,
    };
    let parts = clause.parts.iter().filter(is_evaluated);
    let mut parts = parts.filter(has_decided).peekable();
    if depth == DEEPEST || parts.peek().is_none() {
        return found.push(clause);
    }
    for part in parts {
        decisive(part, depth + 1, found);
    }
}

fn part(clause: &Clause, depth: usize) -> Markup {
    html! {
        div.clause {
            p { (value(clause)) " " code { (clause.text) } }
            @if let Some(error) = &clause.error { p.note { (with_code(error)) } }
            @if !clause.jobs.is_empty() {
                p.read {
                    "read "
                    @for (scan, jobs) in &clause.jobs {
                        code { (scan) } ": "
                        @for (place, job) in jobs.iter().enumerate() {
                            @if place > 0 { ", " }
                            (linked(job))
                        }
                        " "
                    }
                    @if clause.more_jobs > 0 { "and " (count(clause.more_jobs, "more job", "more jobs")) }
                }
            }
            @if depth < DEEPEST { @for inner in &clause.parts { (part(inner, depth + 1)) } }
        }
    }
}

/// Ids in expressions are text.
fn linked(id: &str) -> Markup {
    match Uuid::parse_str(id) {
        Ok(id) => job_link(id),
        Err(_) => html! { code { (id) } },
    }
}

fn value(clause: &Clause) -> Markup {
    match (&clause.value, &clause.error) {
        (_, Some(_)) => html! { span.value.error { "error" } },
        (Some(Value::Bool(value)), None) => {
            let class = if *value { "true" } else { "false" };
            html! { span.value.(class) { (value) } }
        }
        (Some(other), None) => html! { span.value { (other) } },
        (None, None) => {
            html! { span.value title="The other parts had decided" { "not evaluated" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(text: &str, value: Option<bool>, parts: Vec<Clause>) -> Clause {
        Clause {
            text: text.to_owned(),
            value: value.map(Value::Bool),
            error: None,
            jobs: std::collections::BTreeMap::new(),
            more_jobs: 0,
            parts,
        }
    }

    fn decided(whole: &Clause) -> Vec<&str> {
        let mut found = Vec::new();
        decisive(whole, 0, &mut found);
        found.iter().map(|part| part.text.as_str()).collect()
    }

    #[test]
    fn only_the_parts_that_decided_are_named() {
        let leaf = |text, value| clause(text, Some(value), Vec::new());
        let both = |symbol, value, parts| clause(symbol, Some(value), parts);
        let unread = || clause("c", None, Vec::new());
        let yes = both("&&", true, vec![leaf("a", true), leaf("b", true)]);
        assert_eq!(decided(&yes), ["a", "b"]);
        let no = both("&&", false, vec![leaf("a", true), leaf("b", false)]);
        assert_eq!(decided(&no), ["b"]);
        let early = both("||", true, vec![leaf("a", true), unread()]);
        assert_eq!(decided(&early), ["a"]);
        let inner = both("!", false, vec![leaf("b", true)]);
        let nested = both("&&", false, vec![leaf("a", true), inner]);
        assert_eq!(decided(&nested), ["b"]);
        assert_eq!(decided(&leaf("a", false)), ["a"]);
        let failed = Clause {
            error: Some("no such key".to_owned()),
            ..clause("d", None, Vec::new())
        };
        let broken = Clause {
            error: failed.error.clone(),
            ..clause("&&", None, vec![leaf("a", true), failed])
        };
        assert_eq!(decided(&broken), ["d"]);
    }
}
