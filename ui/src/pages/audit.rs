//! The audit log.

use maud::{Markup, html};
use wire::{AuditRecord, Page};

use crate::links;
use crate::list::{card, damaged, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading};
use crate::words::{at, hits, job_link};

pub struct Audit<'a> {
    pub records: &'a Page<AuditRecord>,
    /// Show only lines of this token, job or runner, by name or id; empty for all.
    pub actor: &'a str,
    /// Show only actions of this kind; empty for all.
    pub kind: &'a str,
    /// All kinds of actions.
    pub kinds: &'a [&'a str],
}

pub fn audit(visit: &Visit, page: &Audit<'_>) -> Markup {
    let records = &page.records.items;
    let side = html! { (hits(records.len(), page.records.next_cursor.is_some())) };
    let content = html! {
        (heading("Audit", &html! {}, &html! {}))
        form.filters method="get" action=(links::AUDIT) role="search" aria-label="Audit" {
            div.field {
                label for="filter-actor" { "Token" }
                input #filter-actor name="actor" value=(page.actor) autocomplete="off" spellcheck="false";
            }
            div.field {
                label for="filter-kind" { "Done" }
                select #filter-kind name="kind" {
                    option value="" { "anything" }
                    @for kind in page.kinds {
                        option value=(kind) selected[*kind == page.kind] { (kind) }
                    }
                }
            }
            button.button type="submit" { "Filter" }
        }
        (damaged(&page.records.damaged))
        (card("audit", "Who did what", &side, &html! {
            @if records.is_empty() {
                (empty(&html! { p { @if page.actor.is_empty() && page.kind.is_empty() { "Nobody has changed anything yet." } @else { "No line matches." } } }))
            } @else {
                (table("Audit", &["time", "token", "from", "with", "done", "request", "request id"], &html! {
                    @for record in records { (row(record)) }
                }))
            }
        }))
        (more(links::AUDIT, &[("actor", page.actor), ("kind", page.kind)], page.records.next_cursor.as_deref()))
    };
    Shell::new(visit, "Audit", Some(Menu::Audit)).page(&content)
}

fn row(record: &AuditRecord) -> Markup {
    html! {
        tr {
            td { (at(record.at)) }
            @match (&record.token, record.job, record.by()) {
                (Some(token), _, Some(by)) => td title=(token.id) { (by) },
                (_, Some(job), _) => td { "job " (job_link(job)) },
                (_, None, Some(by)) => td { (by) },
                (_, None, None) => td { "nobody" },
            }
            td { @match record.address { Some(address) => (address), None => "several addresses" } }
            td { @match (record.session, &record.token) {
                (Some(session), _) => span title=(session) { "session" },
                (None, Some(_)) => "token",
                (None, None) if record.job.is_some() => "step",
                (None, None) => "",
            } }
            td.wide {
                @for action in &record.actions { div { (action) } }
                @if record.more_actions > 0 { div { (record.more_actions) " more" } }
            }
            td.wide { code { (record.method) " " (record.path) } }
            td { code.cut title=(record.request_id) { (record.request_id) } }
        }
    }
}
