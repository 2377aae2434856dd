//! The values that the expressions of a job read, frozen when a runner claimed it.

use maud::{Markup, html};
use serde_json::Value;
use wire::{Job, JobContext};

use crate::links;
use crate::list::{card, empty};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{at, count, short_id};

/// Values at a greater depth are shown as JSON instead of a tree.
const DEEPEST: usize = 8;

pub fn job_context(visit: &Visit, job: &Job, context: &JobContext) -> Markup {
    let content = html! {
        (heading("Frozen values", &html! {}, &html! {}))
        p.lead { "What the expressions of the job read, as of " (at(context.frozen_at)) ". Later changes do not affect it." }
        (card("values", "Values", &html! {}, &html! { div.body { (value(&context.context, 0)) } }))
        (card("secrets", "Secrets", &html! { (count(context.secrets.len() as u64, "secret", "secrets")) }, &html! {
            @if context.secrets.is_empty() {
                (empty(&html! { p { "The job names no secret." } }))
            } @else {
                dl.pairs { @for (name, version) in &context.secrets { div { dt { code { (name) } } dd { "version " (version) } } } }
            }
        }))
    };
    let workflow = links::workflow_name(&job.workflow);
    Shell::new(visit, "Frozen values", Some(Menu::Jobs))
        .under([
            Crumb::new(&job.scan, links::scan(&workflow, &job.scan)),
            Crumb::new(short_id(job.id), links::job(job.id)),
        ])
        .page(&content)
}

fn value(shown: &Value, depth: usize) -> Markup {
    match shown {
        Value::Object(members) if depth < DEEPEST && !members.is_empty() => html! {
            @for (name, member) in members { (entry(name, member, depth)) }
        },
        Value::Array(items) if depth < DEEPEST && !items.is_empty() => html! {
            @for (place, item) in items.iter().enumerate() { (entry(&place.to_string(), item, depth)) }
        },
        other => html! { code.text { (other) } },
    }
}

fn entry(name: &str, member: &Value, depth: usize) -> Markup {
    let size = match member {
        Value::Object(members) => members.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if size > 0 && depth + 1 < DEEPEST {
        html! {
            details open[depth == 0 && size <= 20] {
                summary { code { (name) } " " span.muted { (count(size as u64, "entry", "entries")) } }
                div.branch { (value(member, depth + 1)) }
            }
        }
    } else {
        html! { p { code { (name) } " " (value(member, depth + 1)) } }
    }
}
