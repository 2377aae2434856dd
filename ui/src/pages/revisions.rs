//! The revisions of a workflow.

use maud::{Markup, html};
use wire::{Page, Revision};

use crate::links;
use crate::list::{card, damaged, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, hits, short_commit};

/// `workflow` is `source/name`.
pub fn revisions(visit: &Visit, workflow: &str, page: &Page<Revision>) -> Markup {
    let path = links::revisions(workflow);
    let heads = ["revision", "commit", "activated", "digest of the file", ""];
    let side = html! { (hits(page.items.len(), page.next_cursor.is_some())) };
    let content = html! {
        (heading("Revisions", &html! { span.tag { (workflow) } }, &html! {}))
        (damaged(&page.damaged))
        (card("revisions", "Newest first", &side, &html! {
            (table("Revisions", &heads, &html! {
                @for revision in &page.items { (row(visit, workflow, revision)) }
            }))
        }))
        (more(&path, &[], page.next_cursor.as_deref()))
    };
    Shell::new(visit, "Revisions", Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(workflow, links::workflow(workflow)),
        ])
        .page(&content)
}

fn row(visit: &Visit, workflow: &str, revision: &Revision) -> Markup {
    let before = revision.number.saturating_sub(1);
    let against = before.to_string();
    html! {
        tr {
            td { a href=(links::revision(workflow, revision.number)) { (revision.number) } }
            td { (short_commit(&revision.commit)) }
            td { @if let Some(since) = revision.activated_at { (ago(since, visit.now)) } @else { "cannot be read" } }
            td { @if let Some(digest) = &revision.sha256 { code.cut title=(digest) { (digest) } } }
            td.end {
                @if before > 0 {
                    a.button.small href=(links::with_query(&links::revision(workflow, revision.number), &[("against", &against)])) {
                        "Compare with " (before)
                    }
                }
            }
        }
    }
}
