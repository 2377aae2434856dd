//! An expression as a tree of its parts, each with its value and what it read.

use maud::{Markup, html};
use serde_json::Value;
use uuid::Uuid;
use wire::{Clause, Evaluation};

use crate::words::{count, job_link};

/// The deepest part that is shown. The language allows fewer, so this only keeps a page finite.
const DEEPEST: usize = 64;

pub(super) fn evaluation(evaluation: &Evaluation) -> Markup {
    part(&evaluation.clause, 0)
}

fn part(clause: &Clause, depth: usize) -> Markup {
    html! {
        div.clause {
            p { (value(clause)) " " code { (clause.text) } }
            @if let Some(error) = &clause.error { p.note { (error) } }
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

/// The ids in expressions are text.
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
