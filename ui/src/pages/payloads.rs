//! Payload groups, and an editor that shows what becomes of placeholders. Bodies are text here, never markup.

use maud::{Markup, html};
use wire::{Callback, Payload, PayloadGroup, PayloadGroupDetail, Scope};

use super::callbacks::{readable, visible};
use crate::form::{Field, Limit, Refused};
use crate::list::{card, empty, facts, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, bytes, count};
use crate::{form, links};

/// The fields of the editor.
const FIELDS: [&str; 3] = ["payload", "text", "version"];

/// The most bytes of a text in the editor.
pub const EDITED_BYTES: u64 = 256 * 1024;

/// A part of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Previewed {
    Text(String),
    /// The value of a placeholder.
    Filled(String),
    /// A placeholder without a value.
    Open(String),
}

/// What the editor has.
#[derive(Debug, Default)]
pub struct Draft<'a> {
    pub text: &'a str,
    pub preview: &'a [Previewed],
    pub refused: Refused,
}

/// The payload groups of a project, as a part of its page. Nothing without one.
pub(crate) fn payload_groups(groups: &[PayloadGroup]) -> Markup {
    html! {
        @if !groups.is_empty() {
            (card("payload-groups", "Payload groups", &html! { (groups.len()) }, &html! {
                (table("Payload groups", &["name", "payloads", "size"], &html! {
                    @for group in groups {
                        tr {
                            td { a href=(links::payload_group(group.id)) { (group.name) } }
                            td.num { (group.payloads) }
                            td.num { (bytes(group.bytes)) }
                        }
                    }
                }))
            }))
        }
    }
}

pub fn payload_group(visit: &Visit, detail: &PayloadGroupDetail, callbacks: &[Callback]) -> Markup {
    let group = &detail.group;
    let content = html! {
        (heading(&group.name, &html! { span.tag { "payload group" } }, &html! {}))
        (facts(&[
            ("Payloads", html! { (count(group.payloads, "payload", "payloads")) }),
            ("Size", html! { (bytes(group.bytes)) }),
            ("Created", html! { (ago(group.created_at, visit.now)) " by " (group.created_by) }),
            ("Hits", hits(visit, group, &group.name, callbacks)),
            ("Served", html! { @if group.serve { "by callback servers, to whoever asks, at " code { "/-/" (group.name) "/NAME" } } @else { "no" } }),
        ]))
        (card("variables", "Variables", &html! { (group.variables.len()) }, &html! {
            @if group.variables.is_empty() {
                (empty(&html! { p { "There are none: payloads are rendered as they are." } }))
            } @else {
                (table("Variables", &["name", "placeholder", "default"], &html! {
                    @for variable in &group.variables {
                        tr {
                            td { code { (variable.name) } }
                            td { code.text { (variable.placeholder.as_deref().unwrap_or_default()) } }
                            td.wide { @match &variable.default { Some(text) => code.text { (text) }, None => span.muted { "none" } } }
                        }
                    }
                }))
            }
        }))
        (card("payloads", "Payloads", &html! { (detail.payloads.len()) }, &html! {
            @if detail.payloads.is_empty() {
                (empty(&html! { p { "There are no payloads yet." } }))
            } @else {
                (table("Payloads", &["name", "version", "size", "type", "changed"], &html! {
                    @for payload in &detail.payloads {
                        tr {
                            td { a href=(links::payload(group.id, &payload.name, None)) { (payload.name) } }
                            td.num { (payload.version) }
                            td.num { (bytes(payload.size)) }
                            td { code { (payload.media_type) } }
                            td { (ago(payload.updated_at, visit.now)) " by " (payload.updated_by) }
                        }
                    }
                }))
            }
        }))
        (editor(visit, group, None, &Draft::default()))
    };
    Shell::new(visit, &group.name, Some(Menu::Variables))
        .under(crumbs(group))
        .page(&content)
}

/// Where hits of rendered payloads are: each callback server of the project.
fn hits(visit: &Visit, group: &PayloadGroup, of: &str, callbacks: &[Callback]) -> Markup {
    let sees = visit.may_in(&group.project, Scope::CallbackRead);
    html! {
        @if sees && !callbacks.is_empty() {
            @for callback in callbacks {
                a href=(links::with_query(&links::callback(&callback.id), &[("payload", of)])) { "on " (callback.name) } " "
            }
        } @else {
            span.muted { "no callback server that you may see" }
        }
    }
}

pub struct PayloadPage<'a> {
    pub group: &'a PayloadGroup,
    pub payload: &'a Payload,
    /// The shown version, and its body.
    pub version: u64,
    pub body: &'a [u8],
    /// The callback servers of the project.
    pub callbacks: &'a [Callback],
}

pub fn payload(visit: &Visit, page: &PayloadPage<'_>) -> Markup {
    let PayloadPage {
        group,
        payload,
        version,
        body,
        callbacks,
    } = page;
    let is_newest = *version == payload.version;
    let at = |version| links::payload(group.id, &payload.name, Some(version));
    let text = std::str::from_utf8(body)
        .ok()
        .filter(|text| is_editable(text));
    let may = visit.may_in(&group.project, Scope::PayloadWrite);
    let content = html! {
        (heading(&payload.name, &html! { span.tag { "version " (version) } }, &html! {
            @if *version > 1 { a.button rel="prev" href=(at(version - 1)) { "Older version" } }
            @if !is_newest { a.button rel="next" href=(at(version + 1)) { "Newer version" } }
        }))
        (facts(&[
            ("Type", html! { code { (payload.media_type) } }),
            ("Size", html! { (bytes(body.len() as u64)) }),
            ("Versions", html! { (payload.version) ", " (bytes(payload.bytes)) }),
            ("Changed", html! { (ago(payload.updated_at, visit.now)) " by " (payload.updated_by) }),
            ("Hits", hits(visit, group, &format!("{}/{}", group.name, payload.name), callbacks)),
        ]))
        @match text {
            Some(text) if is_newest && may => (editor(visit, group, Some(payload), &Draft { text, ..Draft::default() })),
            _ => (card("body", "Content", &html! { (bytes(body.len() as u64)) }, &html! {
                div.body { pre tabindex="0" { code { (readable(&body[..body.len().min(EDITED_BYTES as usize)])) } } }
                @if body.len() as u64 > EDITED_BYTES { p.muted { "The rest is not shown." } }
            })),
        }
        @if may {
            (form::guarded(visit, &links::delete_payload(group.id, &payload.name), "Delete", "All its versions are removed."))
        }
    };
    Shell::new(visit, &payload.name, Some(Menu::Variables))
        .under(under_group(group))
        .page(&content)
}

/// The editor after a preview or a refusal. `payload` is none for a new payload.
pub fn edited_payload(
    visit: &Visit,
    group: &PayloadGroup,
    payload: Option<&Payload>,
    draft: &Draft<'_>,
) -> Markup {
    let title = payload.map_or("New payload", |payload| &payload.name);
    let content = html! {
        (heading(title, &html! { span.tag { "not saved" } }, &html! {}))
        (editor(visit, group, payload, draft))
        @if !draft.preview.is_empty() {
            (card("preview", "Preview", &html! {}, &html! {
                div.body { pre tabindex="0" { code {
                    @for piece in draft.preview {
                        @match piece {
                            Previewed::Text(text) => (shown(text)),
                            Previewed::Filled(text) => mark { (shown(text)) },
                            Previewed::Open(text) => mark title="no value" { b { (shown(text)) } },
                        }
                    }
                } } }
            }))
        }
    };
    Shell::new(visit, title, Some(Menu::Variables))
        .under(under_group(group))
        .page(&content)
}

fn editor(
    visit: &Visit,
    group: &PayloadGroup,
    payload: Option<&Payload>,
    draft: &Draft<'_>,
) -> Markup {
    if !visit.may_in(&group.project, Scope::PayloadWrite) {
        return html! {};
    }
    let title = match payload {
        Some(_) => "Edit",
        None => "New payload",
    };
    card(
        "edit",
        title,
        &html! {},
        &html! {
            div.body.fields {
                (draft.refused.summary(&FIELDS))
                (form::post(visit, "payload", &links::payload_group(group.id), &html! {
                    @match payload {
                        Some(payload) => {
                            input type="hidden" name="payload" value=(payload.name);
                            input type="hidden" name="version" value=(draft.refused.value("version", &payload.version.to_string()));
                        }
                        None => (Field::new("payload", "Name").required().hint("Such as `img.svg`.").input("text", "", &draft.refused)),
                    }
                    (Field::new("text", "Text").hint("Placeholders of the variables get their values when it is rendered.")
                        .text(draft.text, Limit::Bytes(EDITED_BYTES), &draft.refused))
                    button.button type="submit" { "Save" }
                    " "
                    button.button type="submit" name="preview" value="true" { "Preview" }
                }))
            }
        },
    )
}

/// Whether a form sends the text back as it is: browsers change line ends, and drop what is no text.
fn is_editable(text: &str) -> bool {
    let is_plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.len() as u64 <= EDITED_BYTES && text.chars().all(is_plain)
}

fn shown(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

fn crumbs(group: &PayloadGroup) -> [Crumb; 2] {
    [
        Crumb::new("Vars and secrets", links::PROJECTS),
        Crumb::new(&group.project, links::project(&group.project)),
    ]
}

fn under_group(group: &PayloadGroup) -> [Crumb; 3] {
    let [first, second] = crumbs(group);
    let own = Crumb::new(&group.name, links::payload_group(group.id));
    [first, second, own]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_would_change_is_not_edited() {
        assert!(is_editable("a\n\tb\u{e9}") && is_editable(""));
        for text in ["a\r\nb", "a\rb", "\0", "\u{1b}[2J"] {
            assert!(!is_editable(text), "{text:?}");
        }
        assert!(!is_editable(&"x".repeat(EDITED_BYTES as usize + 1)));
    }
}
