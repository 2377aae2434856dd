//! The list of workflows, by source and folder.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wire::{Source, Workflow};

use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{condition, count, in_future, with_code};
use crate::{links, topics, words};

/// A workflow with the jobs in its row.
pub struct WorkflowRow<'a> {
    pub workflow: &'a Workflow,
    pub running: u64,
    /// The next slot of all its schedules.
    pub next: Option<chrono::DateTime<chrono::Utc>>,
    /// The bars of its last jobs.
    pub history: Markup,
}

/// The filter that adds retired workflows.
const ALL: &str = "all";

/// A minimal workflow file.
pub const EXAMPLE: &str = "scans:
  hello:
    on:
      dispatch: {}
    steps:
      - run: echo hello
";

/// `state` is the filter of the list, `sources` the sources that the viewer may see, and `next` the cursor of the
/// next page.
pub fn workflows(
    visit: &Visit,
    rows: &[WorkflowRow<'_>],
    state: &str,
    sources: &[Source],
    next: Option<&str>,
) -> Markup {
    let mut folders: BTreeMap<(&str, &str), Vec<&WorkflowRow<'_>>> = BTreeMap::new();
    for row in rows {
        let folder = row
            .workflow
            .name
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        folders
            .entry((&row.workflow.source, folder))
            .or_default()
            .push(row);
    }
    let content = html! {
        (heading("Workflows", &html! {}, &html! {}))
        nav.chips aria-label="States" {
            @for (of, label) in [("", "active"), (ALL, "with retired ones")] {
                a.chip href=(links::with_query(links::WORKFLOWS, &[("state", of)])) aria-current=[(of == state).then_some("true")] { (label) }
            }
        }
        (region("workflows", &[topics::SCANS, topics::SOURCES], &html! {
            (never_valid(sources))
            @if rows.is_empty() { (empty_list()) }
            @for (place, ((source, folder), rows)) in folders.iter().enumerate() {
                (group(visit, place, source, folder, rows))
            }
        }))
        (more(links::WORKFLOWS, &[("state", state)], next))
    };
    Shell::new(visit, "Workflows", Some(Menu::Workflows)).page(&content)
}

/// Files that were never valid. They have no row.
fn never_valid(sources: &[Source]) -> Markup {
    let files = sources.iter().flat_map(|source| {
        let files = source.stale_files.iter();
        files.map(move |file| (source, file))
    });
    let files: Vec<_> = files
        .filter(|(_, file)| file.last_good.is_none() && file.file != words::SETTINGS_FILE)
        .collect();
    html! {
        @if !files.is_empty() {
            div.banner.bad role="note" {
                p { b { "Never valid, so these workflows do not run:" } }
                ul.plain {
                    @for (source, file) in files {
                        li {
                            code { (file.file) } " of " a href=(links::source(&source.name)) { (source.name) }
                            @if let Some(first) = file.diagnostics.first() { ": " (with_code(&first.message)) }
                        }
                    }
                }
            }
        }
    }
}

fn empty_list() -> Markup {
    empty(&html! {
        p { "No workflow is active. Push a file such as this to " code { "workflows/hello.yaml" } " of a source:" }
        pre tabindex="0" role="group" aria-label="Example" { code { (EXAMPLE) } }
        p { (words::copy_button(EXAMPLE, "Copy the example")) }
        p { a href=(links::SOURCES) { "Sources" } " lists the repositories that the daemon follows." }
    })
}

fn group(
    visit: &Visit,
    place: usize,
    source: &str,
    folder: &str,
    rows: &[&WorkflowRow<'_>],
) -> Markup {
    let title = if folder.is_empty() {
        source.to_owned()
    } else {
        format!("{source} / {folder}")
    };
    let heads = ["workflow", "scans", "state", "running", "next", "last jobs"];
    card(
        &format!("group-{place}"),
        &title,
        &html! { (count(rows.len() as u64, "workflow", "workflows")) },
        &html! {
            (table(&format!("Workflows of {title}"), &heads, &html! {
                @for row in rows { (workflow_row(visit, row)) }
            }))
        },
    )
}

fn workflow_row(visit: &Visit, row: &WorkflowRow<'_>) -> Markup {
    let workflow = row.workflow;
    let name = format!("{}/{}", workflow.source, workflow.name);
    let base = workflow
        .name
        .rsplit_once('/')
        .map_or(&*workflow.name, |(_, base)| base);
    html! {
        tr {
            td.long {
                a href=(links::workflow(&name)) data-find="workflow" data-name=(name) { (base) }
                @if let Some(title) = &workflow.title { p.small.muted { (title) } }
            }
            td {
                @for (place, scan) in workflow.scans.iter().enumerate() {
                    @if place > 0 { ", " }
                    a.quiet href=(links::scan(&name, &scan.name)) data-find="scan" data-name={ (name) " · " (scan.name) } { (scan.name) }
                    @if workflow.suspended_scans.contains(&scan.name) { " " span.tag { "suspended" } }
                }
            }
            td { (workflow_state(workflow)) }
            td.num { @if row.running > 0 { (row.running) } }
            td { @if let Some(next) = row.next { (in_future(next, visit.now)) } }
            td { (row.history) }
        }
    }
}

/// The state of a workflow in one word.
pub(super) fn workflow_state(workflow: &Workflow) -> Markup {
    match (workflow.state.as_str(), &workflow.stale) {
        ("active", _) if workflow.suspended.is_some() => condition("skipped", "suspended"),
        ("active", None) => condition("succeeded", "active"),
        ("active", Some(_)) => condition("scheduled", "stale file"),
        ("retired", _) => condition("cancelled", "retired"),
        ("unreadable", _) => condition("failed", "unreadable"),
        (other, _) => condition("skipped", other),
    }
}
