//! The form that starts a job of a scan.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wire::{Input, MissingName, Page, Project, Runner, Scan, ScanInput, ScanStatus};

use super::suspension::no_dispatch;
use crate::form::{Field, Limit, Refused};
use crate::list::card;
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{condition, count, short_id};
use crate::{form, links, topics};

/// The longest text that an input may have.
const TEXT_LIMIT: Limit = Limit::Characters(65_535);

pub struct Dispatch<'a> {
    pub scan: &'a ScanStatus,
    /// An earlier job and its inputs, which fill the form.
    pub earlier: Option<(uuid::Uuid, &'a BTreeMap<String, Input>)>,
    /// None if the viewer may not see runners.
    pub runners: Option<&'a Page<Runner>>,
    /// The project of the scan, with its missing vars and secrets; none if the viewer may not see it.
    pub project: Option<&'a Project>,
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
        (region("runner", &[topics::RUNNERS, topics::JOBS, &topics::workflow(page.scan.workflow.id)], &outlook(page, &workflow)))
        (page.refused.summary(&members))
        (card("inputs", "Inputs", &html! { (inputs.len()) }, &html! {
            div.body.fields {
                (form::post(visit, "dispatch", &links::dispatch(&workflow, &scan.name), &html! {
                    @if inputs.is_empty() { p { "The scan has no inputs." } }
                    @for input in inputs { (field(input, page)) }
                    div.actions {
                        button.button.first[page.scan.suspended.is_none()] type="submit" { "Start the job" }
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

/// Says whether the job could run, and where.
fn outlook(page: &Dispatch<'_>, workflow: &str) -> Markup {
    let scan = &page.scan.scan;
    if let Some(suspension) = &page.scan.suspended {
        return no_dispatch(suspension, workflow, &scan.name);
    }
    let Some(project) = page.project else {
        return taker(scan, page.runners);
    };
    let is_used = |missing: &&MissingName| {
        let mut uses = missing.used_by.iter();
        uses.any(|used| used.workflow == workflow && used.scan == scan.name)
    };
    let of = |kind, all: &[MissingName]| -> Vec<(&'static str, String)> {
        let used = all.iter().filter(is_used);
        used.map(|missing| (kind, missing.name.clone())).collect()
    };
    let vars = of("the var", &project.missing_vars);
    let missing = [vars, of("the secret", &project.missing_secrets)].concat();
    if missing.is_empty() {
        return taker(scan, page.runners);
    }
    html! {
        div.banner.bad role="note" {
            p {
                (condition("failed", "The job would fail")) ": "
                @for (place, (kind, name)) in missing.iter().enumerate() {
                    @if place > 0 { ", " }
                    (kind) " " code { (name) }
                }
                @if missing.len() == 1 { " is not set in " } @else { " are not set in " }
                a href=(links::project(&project.name)) { (project.name) } "."
            }
        }
    }
}

/// The most runners to name.
const NAMED: usize = 3;

/// The runners that could take the job, or why it would wait.
fn taker(scan: &Scan, runners: Option<&Page<Runner>>) -> Markup {
    let Some(runners) = runners else {
        return html! {};
    };
    let connected: Vec<&Runner> = runners.items.iter().filter(|it| it.connected).collect();
    let has_labels = |runner: &&Runner| {
        let mut wanted = scan.runs_on.iter();
        wanted.all(|it| runner.labels.contains(it))
            && !(runner.exclusive && scan.runs_on.is_empty())
    };
    let fitting: Vec<&Runner> = connected.iter().copied().filter(has_labels).collect();
    let is_free = |runner: &&Runner| runner.taken < u64::from(runner.capacity);
    let free: Vec<&Runner> = fitting.iter().copied().filter(is_free).collect();
    let waits = |why: Markup| html! { div.banner role="note" { p { (condition("scheduled", "The job would wait")) ": " (why) "." } } };
    if !free.is_empty() {
        return html! { p { (condition("succeeded", "Ready")) ": " (names(&free)) " would take the job." } };
    }
    // There are more runners than this page knows.
    if runners.next_cursor.is_some() {
        return html! {};
    }
    if !fitting.is_empty() {
        return waits(html! { "no slot is free on " (names(&fitting)) });
    }
    match (runners.items.len(), connected.len()) {
        (0, _) => waits(html! { "no runner of this project is registered" }),
        (1, 0) => waits(html! { "the only registered runner is not connected" }),
        (_, 0) => waits(html! { "no registered runner is connected" }),
        (_, _) if scan.runs_on.is_empty() => waits(html! {
            "the connected runners take only scans whose " code { "runs_on" } " names one of their labels"
        }),
        (_, _) => waits(html! {
            "no connected runner has " @if scan.runs_on.len() == 1 { "the label " } @else { "all of the labels " }
            @for (place, label) in scan.runs_on.iter().enumerate() {
                @if place > 0 { ", " }
                code { (label) }
            }
        }),
    }
}

fn names(runners: &[&Runner]) -> Markup {
    html! {
        @for (place, runner) in runners.iter().take(NAMED).enumerate() {
            @if place > 0 { " or " }
            a href=(links::runner(runner.id)) { (runner.name) }
        }
        @if runners.len() > NAMED { " or " (count((runners.len() - NAMED) as u64, "other", "others")) }
    }
}

/// The name of an input in problems.
fn member(key: &str) -> String {
    format!("inputs.{key}")
}

fn field(input: &ScanInput, page: &Dispatch<'_>) -> Markup {
    let earlier = page.earlier.and_then(|(_, inputs)| inputs.get(&input.key));
    let value = earlier.map_or_else(|| input.default.clone(), Input::to_string);
    // The prefix of input fields keeps them apart from the idempotency key.
    let member = member(&input.key);
    let description = input.description.as_deref().filter(|text| !text.is_empty());
    let hint = |behaviour: &str| match description {
        Some(text) if behaviour.is_empty() => text.to_owned(),
        Some(text) if text.ends_with(char::is_alphanumeric) => format!("{text}. {behaviour}"),
        Some(text) => format!("{text} {behaviour}"),
        None => behaviour.to_owned(),
    };
    let described = hint("");
    let field = Field::new(&member, &input.key).hint(&described);
    if input.kind == "bool" {
        return field.switch(value == "true", page.refused);
    }
    if input.kind == "number" {
        if input.required {
            return field.required().number(&value, page.refused);
        }
        let hint = hint(&format!("Empty is the default, {}.", input.default));
        return field.hint(&hint).number(&value, page.refused);
    }
    if input.kind == "choice" {
        // The option of an earlier job may no longer exist.
        let known = input.options.contains(&value);
        let value = if known { &value } else { &input.default };
        let same = |option: &String| (option.clone(), option.clone());
        let options: Vec<_> = input.options.iter().map(same).collect();
        return field.select(&options, value, page.refused);
    }
    // The empty text is a value, so the browser must not refuse it.
    let hint = hint("An empty field sends the empty text.");
    let field = field.hint(&hint);
    let field = match input.required {
        true => field.marked(),
        false => field,
    };
    field.text(&value, TEXT_LIMIT, page.refused)
}
