//! What a callback server hears. All of it was written by strangers: it is text here, never markup and never a link.

use maud::{Markup, html};
use wire::{Callback, CallbackToken, Interaction, InteractionRequest, Page, Scope};

use super::variables::Variables;
use crate::form::{self, Field, Limit, Refused};
use crate::list::{card, empty, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, at, bytes, count, hits};
use crate::{links, topics};

/// Bytes in a line of a dump.
const DUMPED: usize = 16;

/// The filters of the feed, as typed.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    pub tag: String,
    pub job: String,
    pub kind: String,
    pub address: String,
    pub payload: String,
    pub text: String,
}

impl Heard {
    fn parameters(&self) -> [(&str, &str); 6] {
        [
            ("tag", &self.tag),
            ("job", &self.job),
            ("type", &self.kind),
            ("address", &self.address),
            ("payload", &self.payload),
            ("text", &self.text),
        ]
    }

    fn is_set(&self) -> bool {
        self.parameters().iter().any(|(_, value)| !value.is_empty())
    }
}

pub struct CallbackPage<'a> {
    pub callback: &'a Callback,
    pub filter: &'a Heard,
    pub interactions: &'a Page<Interaction>,
    /// True unless this is the first page.
    pub is_later: bool,
    /// Names with a tag.
    pub tokens: &'a [CallbackToken],
    /// The fixed answers and what is ignored, as JSON.
    pub rules: &'a str,
    pub refused: &'a Refused,
}

/// The callback servers of a project, as a part of its page. Nothing without one, unless the reader may create one.
pub(crate) fn callbacks(visit: &Visit, page: &Variables<'_>) -> Markup {
    let (project, callbacks) = (&page.project.name, page.callbacks);
    let sees = visit.may_in(project, Scope::CallbackRead);
    let creates = page.has_callbacks && visit.may_in(project, Scope::CallbackWrite);
    html! {
        @if creates || !callbacks.is_empty() {
            (card("callbacks", "Callback servers", &html! { (callbacks.len()) }, &html! {
                @if callbacks.is_empty() {
                    (empty(&html! { p { "There are no callback servers. One has names to plant in targets, and records who uses them." } }))
                } @else {
                    (table("Callback servers", &["name", "plant", "interactions", "size"], &html! {
                        @for callback in callbacks {
                            tr {
                                td { @if sees { a href=(links::callback(&callback.id)) { (callback.name) } } @else { (callback.name) } }
                                td.wide { @for name in &callback.names { code { (name) } " " } }
                                td.num { (callback.interactions) }
                                td.num { (bytes(callback.bytes)) }
                            }
                        }
                    }))
                }
                @if creates {
                    div.body.fields {
                        h3 { "Create a callback server" }
                        (page.refused_callback.summary(&["name"]))
                        (form::post(visit, "callback", &links::create_callback(project), &html! {
                            (Field::new("name", "Name").of("callback").required().hint("Interactions are kept for 30 days.").input("text", "", page.refused_callback))
                            button.button type="submit" { "Create" }
                        }))
                    }
                }
            }))
        }
    }
}

pub fn callback(visit: &Visit, page: &CallbackPage<'_>) -> Markup {
    let callback = page.callback;
    let items = &page.interactions.items;
    let topic = topics::callback(&callback.id);
    let address = links::callback(&callback.id);
    let content = html! {
        (heading(&callback.name, &html! { span.tag { "callback server" } }, &html! {
            @if visit.may_in(&callback.project, Scope::CallbackWrite) {
                (form::guarded(visit, &links::delete_callback(&callback.id), "Delete", "Its names are not answered any more, and its interactions are removed."))
            }
        }))
        @if callback.full {
            div.banner.bad role="note" { p { "A limit is reached: this server goes on to answer, and records nothing more." } }
        }
        (filters(page, &address))
        div.region #interactions data-live=[(!page.is_later).then_some(&topic)] {
            (about(callback))
            @if items.is_empty() {
                (empty(&html! {
                    @if page.interactions.next_cursor.is_some() { p { "Nothing matches so far. The next page continues with older interactions." } }
                    @else if page.filter.is_set() || page.is_later { p { "Nothing matches. " a href=(address) { "Show all" } "." } }
                    @else { p { "Nobody has used its names yet." } }
                }))
            } @else {
                (card("heard", "Newest first", &html! { (hits(items.len(), page.interactions.next_cursor.is_some())) }, &html! {
                    (table("Interactions", &["number", "heard", "type", "from", "what", "answer", "where"], &html! {
                        @for it in items { (row(visit, callback, it)) }
                    }))
                }))
            }
        }
        (more(&address, &page.filter.parameters(), page.interactions.next_cursor.as_deref()))
        (names(visit, page))
        (rules(visit, page))
    };
    Shell::new(visit, &callback.name, Some(Menu::Variables))
        .under(crumbs(callback))
        .page(&content)
}

fn crumbs(callback: &Callback) -> [Crumb; 2] {
    [
        Crumb::new("Vars and secrets", links::PROJECTS),
        Crumb::new(&callback.project, links::project(&callback.project)),
    ]
}

fn about(callback: &Callback) -> Markup {
    facts(&[
        (
            "Plant",
            html! { @for name in &callback.names { code { (name) } " " } },
        ),
        (
            "Interactions",
            html! { (callback.interactions) @if callback.left_out > 0 { ", " (callback.left_out) " left out" }
            @if callback.unknown_tags > 0 { ", " (callback.unknown_tags) " with an unknown tag" } },
        ),
        ("Size", html! { (bytes(callback.bytes)) }),
        ("Names with a tag", html! { (callback.tokens) }),
        (
            "Kept",
            html! { @match callback.keep_days { Some(days) => (count(days.into(), "day", "days")), None => "for ever" } },
        ),
    ])
}

fn filters(page: &CallbackPage<'_>, address: &str) -> Markup {
    let field = |id: &str, name: &str, label: &str, value: &str| {
        html! {
            div.field {
                label for=(id) { (label) }
                input id=(id) name=(name) value=(value) autocomplete="off" spellcheck="false";
            }
        }
    };
    html! {
        form.filters method="get" action=(address) role="search" aria-label="Interactions" {
            div.field {
                label for="filter-type" { "Type" }
                select #filter-type name="type" {
                    option value="" { "any" }
                    @for kind in ["dns", "http"] { option value=(kind) selected[page.filter.kind == kind] { (kind) } }
                }
            }
            (field("filter-tag", "tag", "Tag", &page.filter.tag))
            (field("filter-job", "job", "Job", &page.filter.job))
            (field("filter-address", "address", "Address", &page.filter.address))
            (field("filter-payload", "payload", "Payload", &page.filter.payload))
            (field("filter-text", "text", "Text", &page.filter.text))
            button.button type="submit" { "Filter" }
        }
    }
}

fn row(visit: &Visit, callback: &Callback, it: &Interaction) -> Markup {
    html! {
        tr {
            td.num { a href=(links::interaction(&callback.id, it.number)) { (it.number) } }
            td { (ago(it.at, visit.now)) }
            td { span.tag { (it.request.kind()) } }
            td { code { (it.peer) } }
            td.wide { code.text { (it.request.summary()) } @if it.repeats > 0 { " " span.muted { (it.repeats + 1) " times" } } @if it.left_out > 0 { " " span.muted { (it.left_out) " left out before" } } }
            td { (it.answer) }
            td.wide { (planted(visit, callback, it)) }
        }
    }
}

/// Where the name was planted, with which payload, and by which job.
fn planted(visit: &Visit, callback: &Callback, it: &Interaction) -> Markup {
    html! {
        @match (&it.note, &it.payload, &it.tag) {
            (None, None, Some(tag)) => code { (tag) },
            (None, None, None) => span.muted { "without a tag" },
            (note, payload, _) => {
                @if let Some(note) = note { (note) " " }
                @if let Some(payload) = payload { code.text { (payload.summary()) } }
            }
        }
        @if let Some(job) = &it.job {
            ", job of "
            @if visit.may_in(&callback.project, Scope::JobRead) { a href=(links::job(job.id)) { (job.scan) } } @else { (job.scan) }
        }
    }
}

fn names(visit: &Visit, page: &CallbackPage<'_>) -> Markup {
    let callback = page.callback;
    let may = visit.may_in(&callback.project, Scope::CallbackWrite);
    card(
        "names",
        "Names with a tag",
        &html! { (callback.tokens) },
        &html! {
            @if page.tokens.is_empty() {
                (empty(&html! { p { "There are none. Each has a note of where you planted it." } }))
            } @else {
                (table("Names with a tag", &["name", "note", "answered until", ""], &html! {
                    @for token in page.tokens {
                        tr {
                            td.wide { @for name in &token.names { code { (name) } " " } }
                            td.wide { (token.note) }
                            td { @match token.expires_at { Some(end) => (at(end)), None => "it is ended" } }
                            td.end {
                                @if may {
                                    (form::guarded(visit, &links::end_callback_token(&callback.id, &token.tag), "End", "It is not answered any more. Its interactions stay."))
                                }
                            }
                        }
                    }
                }))
            }
            @if may {
                div.body.fields {
                    h3 { "Make a name" }
                    (page.refused.summary(&["note", "rules"]))
                    (form::post(visit, "token", &links::callback_tokens(&callback.id), &html! {
                        (Field::new("note", "Note").of("token").hint("Where you plant it: each interaction shows this. It is answered for 90 days.").input("text", "", page.refused))
                        button.button type="submit" { "Make" }
                    }))
                }
            }
        },
    )
}

fn rules(visit: &Visit, page: &CallbackPage<'_>) -> Markup {
    let callback = page.callback;
    card(
        "rules",
        "Rules",
        &html! {},
        &html! {
            @if visit.may_in(&callback.project, Scope::CallbackWrite) {
                div.body.fields {
                    (form::post(visit, "rules", &links::callback_rules(&callback.id), &html! {
                        (Field::new("rules", "Fixed answers, and what is not recorded")
                            .hint("JSON, as everscan callback rule show --output json prints it.")
                            .text(page.rules, Limit::Bytes(262_144), page.refused))
                        button.button type="submit" { "Set" }
                    }))
                }
            } @else {
                div.body { pre tabindex="0" { code { (page.rules) } } }
            }
        },
    )
}

/// One interaction. `raw` is its raw request.
pub fn interaction(visit: &Visit, callback: &Callback, it: &Interaction, raw: &[u8]) -> Markup {
    let title = format!("Interaction {}", it.number);
    let head = match &it.request {
        InteractionRequest::Dns { .. } => 0,
        InteractionRequest::Http { head_bytes, .. } => usize::try_from(*head_bytes).unwrap_or(0),
    };
    let (head, body) = raw.split_at(head.min(raw.len()));
    let content = html! {
        (heading(&title, &html! { span.tag { (it.request.kind()) } }, &html! {}))
        (facts(&[
            ("Heard", at(it.at)),
            ("From", html! { code { (it.peer) } }),
            ("What", html! { code.text { (it.request.summary()) } }),
            ("Where", planted(visit, callback, it)),
            ("Answer", html! { (it.answer) @if let Some(rule) = &it.rule { ", rule " (rule) } }),
            ("Left out before", html! { (it.left_out) }),
            ("Size", html! { (bytes(it.raw_bytes)) }),
        ]))
        @match &it.request {
            InteractionRequest::Dns { transport, client_subnet, .. } => {
                (facts(&[("Over", html! { (transport) }), ("For", html! { @match client_subnet { Some(subnet) => code { (subnet) }, None => "unknown clients" } })]))
                (part("raw", "Query", body))
            }
            InteractionRequest::Http { truncated, tls, sni, .. } => {
                @if *tls { (facts(&[("Over", html! { "TLS" }), ("Asked for", html! { @match sni { Some(name) => code.text { (name) }, None => "no name" } })])) }
                (part("head", "Head", head))
                @if !body.is_empty() { (part("body", "Body", body)) }
                @if *truncated { p.muted { "The rest of the request was not kept." } }
            }
        }
    };
    let [first, second] = crumbs(callback);
    Shell::new(visit, &title, Some(Menu::Variables))
        .under([
            first,
            second,
            Crumb::new(&callback.name, links::callback(&callback.id)),
        ])
        .page(&content)
}

fn part(id: &str, title: &str, raw: &[u8]) -> Markup {
    card(
        id,
        title,
        &html! { (bytes(raw.len() as u64)) },
        &html! { div.body { pre tabindex="0" { code { (readable(raw)) } } } },
    )
}

/// Text as text, and everything else in hexadecimal. Control characters and those that change the direction of text are replaced.
pub(super) fn readable(raw: &[u8]) -> String {
    match std::str::from_utf8(raw) {
        Ok(text) if !text.contains('\0') => text.lines().map(|line| visible(line) + "\n").collect(),
        Ok(_) | Err(_) => dump(raw),
    }
}

pub(super) fn visible(line: &str) -> String {
    let shown = |c: char| match c {
        '\t' => c,
        _ if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}') =>
        {
            char::REPLACEMENT_CHARACTER
        }
        _ => c,
    };
    line.chars().map(shown).collect()
}

fn dump(raw: &[u8]) -> String {
    let line = |(row, bytes): (usize, &[u8])| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let text: String = bytes.iter().map(shown).collect();
        format!("{:08x}  {:<47}  {text}\n", row * DUMPED, hex.join(" "))
    };
    raw.chunks(DUMPED).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_and_bytes_are_hexadecimal() {
        let text = readable("GET / \u{1b}[2J\u{202e}\r\n\tx".as_bytes());
        assert_eq!(text, "GET / \u{fffd}[2J\u{fffd}\n\tx\n");
        let bytes = readable(b"\0abc\xff");
        assert_eq!(
            bytes,
            format!("00000000  {:<47}  .abc.\n", "00 61 62 63 ff")
        );
    }
}
