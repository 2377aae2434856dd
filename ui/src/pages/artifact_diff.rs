//! How an artifact differs from that of another job.

use maud::{Markup, html};
use wire::{ArtifactDiff, FileChange};

use crate::links;
use crate::list::{card, empty, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{bytes, condition, count, grouped, icon, job_link, short_id};

pub fn artifact_diff(visit: &Visit, diff: &ArtifactDiff) -> Markup {
    let from = diff.from.to_string();
    let path = format!("{}/diff", links::artifact(diff.to, &diff.artifact));
    let content = html! {
        (heading(&diff.artifact, &html! { @if diff.same { span.tag { "the same" } } }, &html! {}))
        p.lead {
            "From job " (job_link(diff.from)) " to job " (job_link(diff.to)) ": "
            b { (grouped(diff.added)) } " added, " b { (grouped(diff.removed)) } " removed, "
            b { (grouped(diff.changed)) } " changed, " (grouped(diff.unchanged)) " the same."
        }
        (card("files", "Files that differ", &html! { (count(diff.files.len() as u64, "file", "files")) " shown" }, &html! {
            @if diff.files.is_empty() {
                (empty(&html! { p { "Names and contents of all files are the same." } }))
            } @else {
                (table("Files that differ", &["file", "change", "before", "now"], &html! {
                    @for file in &diff.files { (row(file)) }
                }))
            }
        }))
        (more(&path, &[("against", &from)], diff.next_cursor.as_deref()))
    };
    Shell::new(visit, "Difference", Some(Menu::Artifacts))
        .under([
            Crumb::new(short_id(diff.to), links::job(diff.to)),
            Crumb::new(
                &diff.artifact,
                links::artifact_entries(diff.to, &diff.artifact),
            ),
        ])
        .page(&content)
}

fn row(file: &FileChange) -> Markup {
    let change = match (file.from_size, file.to_size) {
        (None, _) => condition("succeeded", "added"),
        (_, None) => condition("failed", "removed"),
        (Some(_), Some(_)) => {
            html! { span.state.scheduled { (icon("changed")) span { "changed" } } }
        }
    };
    let size = |size: Option<u64>| html! { @if let Some(size) = size { (bytes(size)) } };
    html! {
        tr {
            td.wide { code { (file.name) } }
            td { (change) }
            td.num { (size(file.from_size)) }
            td.num { (size(file.to_size)) }
        }
    }
}
