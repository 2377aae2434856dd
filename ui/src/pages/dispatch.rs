//! The form that starts a job of a scan.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wire::{Explanation, Input, ScanInput, ScanStatus};

use crate::form::{Field, Most, Refused};
use crate::list::card;
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{condition, short_id};
use crate::{form, links};

/// The longest text of an input.
const TEXT_LIMIT: Most = Most::Characters(65_535);

pub struct Dispatch<'a> {
    pub scan: &'a ScanStatus,
    /// The inputs of an earlier job, which fill the form.
    pub earlier: Option<(uuid::Uuid, &'a BTreeMap<String, Input>)>,
    /// Why a job would have to wait for a runner.
    pub waits: Option<&'a Explanation>,
    pub refused: &'a Refused,
}

pub fn dispatch(visit: &Visit, page: &Dispatch<'_>) -> Markup {
    let scan = &page.scan.scan;
    let workflow = links::workflow_name(&page.scan.workflow);
    let inputs = scan.inputs.as_deref().unwrap_or_default();
    let title = format!("Dispatch {}", scan.name);
    let members: Vec<String> = inputs.iter().map(|input| member(&input.key)).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let content = html! {
        (heading(&title, &html! {}, &html! {}))
        @if let Some((id, _)) = page.earlier {
            p { "The inputs are those of job " a.mono href=(links::job(id)) title=(id) { (short_id(id)) } "." }
        }
        @if let Some(waits) = page.waits {
            div.banner role="note" { p { (condition("scheduled", "A job would wait")) ": " (waits.message) "." } }
        }
        (page.refused.summary(&members))
        (card("inputs", "Inputs", &html! { (inputs.len()) }, &html! {
            div.body.fields {
                (form::post(visit, "dispatch", &links::dispatch(&workflow, &scan.name), &html! {
                    @if inputs.is_empty() { p { "The scan has no inputs." } }
                    @for input in inputs { (field(input, page)) }
                    div.actions {
                        button.button.first type="submit" { "Start the job" }
                        a.button href=(links::scan(&workflow, &scan.name)) { "Back" }
                    }
                }))
            }
        }))
    };
    Shell::new(visit, &title, Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(&workflow, links::workflow(&workflow)),
            Crumb::new(&scan.name, links::scan(&workflow, &scan.name)),
        ])
        .page(&content)
}

/// The name that problems use for an input.
fn member(key: &str) -> String {
    format!("inputs.{key}")
}

fn field(input: &ScanInput, page: &Dispatch<'_>) -> Markup {
    let earlier = page.earlier.and_then(|(_, inputs)| inputs.get(&input.key));
    let value = match earlier {
        Some(Input::Text(text)) => text.clone(),
        Some(Input::Bool(on)) => on.to_string(),
        None => input.default.clone(),
    };
    // Fields of inputs begin alike, so that no input is mistaken for the idempotency key.
    let member = member(&input.key);
    let field = Field::new(&member, &input.key);
    if input.kind == "bool" {
        return field.switch(value == "true", page.refused);
    }
    // Empty is a value, so the browser does not ask for a text where it is required.
    let hint = if input.required {
        "Required. An empty field sends the empty text."
    } else {
        "An empty field sends the empty text."
    };
    field.hint(hint).text(&value, TEXT_LIMIT, page.refused)
}
