//! The audit log.

use maud::{Markup, html};
use wire::{AuditRecord, Page};

use crate::links;
use crate::list::{card, damaged, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading};
use crate::words::{at, hits};

pub struct Audit<'a> {
    pub records: &'a Page<AuditRecord>,
    /// The name of the token whose changes are shown; empty for all.
    pub token: &'a str,
}

pub fn audit(visit: &Visit, page: &Audit<'_>) -> Markup {
    let records = &page.records.items;
    let side = html! { (hits(records.len(), page.records.next_cursor.is_some())) };
    let content = html! {
        (heading("Audit", &html! {}, &html! {}))
        form.filters method="get" action=(links::AUDIT) role="search" aria-label="Audit" {
            div.field {
                label for="filter-token" { "Token" }
                input #filter-token name="token" value=(page.token) autocomplete="off" spellcheck="false";
            }
            button.button type="submit" { "Filter" }
        }
        (damaged(&page.records.damaged))
        (card("audit", "Who changed what", &side, &html! {
            @if records.is_empty() {
                (empty(&html! { p { @if page.token.is_empty() { "Nobody has changed anything yet." } @else { "This token has changed nothing." } } }))
            } @else {
                (table("Audit", &["time", "token", "from", "with", "request", "request id"], &html! {
                    @for record in records { (row(record)) }
                }))
            }
        }))
        (more(links::AUDIT, &[("token", page.token)], page.records.next_cursor.as_deref()))
    };
    Shell::new(visit, "Audit", Some(Menu::Audit)).page(&content)
}

fn row(record: &AuditRecord) -> Markup {
    html! {
        tr {
            td { (at(record.at)) }
            td title=(record.token.id) { (record.token.name) }
            td { (record.address) }
            td { @match record.session { Some(session) => span title=(session) { "browser" }, None => "token" } }
            td.wide { code { (record.method) " " (record.path) } }
            td { code.cut title=(record.request_id) { (record.request_id) } }
        }
    }
}
