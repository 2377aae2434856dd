//! The list of projects, and the vars and secrets of one.

use maud::{Markup, html};
use wire::{
    Callback, KeyState, MissingName, Named, Page, PayloadGroup, Project, ScanName, Scope, Secret,
    Var,
};

use super::callbacks::callbacks;
use super::payloads::payload_groups;
use crate::form::{Field, Limit, Refused};
use crate::list::{card, empty, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, condition, count};
use crate::{form, links};

pub fn projects(visit: &Visit, page: &Page<Project>) -> Markup {
    let content = html! {
        (heading("Vars and secrets", &html! {}, &html! {}))
        @if page.items.is_empty() {
            (empty(&html! { p { "There is no project yet. Each source is one: its workflows share vars and secrets." } }))
        } @else {
            (card("projects", "Projects", &html! { (count(page.items.len() as u64, "project", "projects")) }, &html! {
                (table("Projects", &["project", "vars", "secrets", "source"], &html! {
                    @for project in &page.items {
                        tr {
                            td { a href=(links::project(&project.name)) { (project.name) } }
                            td.num { (project.vars) }
                            td.num { (project.secrets) }
                            td { @if project.configured { "followed" } @else { span.muted { "no longer configured" } } }
                        }
                    }
                }))
            }))
        }
        (more(links::PROJECTS, &[], page.next_cursor.as_deref()))
    };
    Shell::new(visit, "Vars and secrets", Some(Menu::Variables)).page(&content)
}

pub struct Variables<'a> {
    pub project: &'a Project,
    pub vars: &'a [Var],
    pub secrets: &'a [Secret],
    pub callbacks: &'a [Callback],
    /// Whether the daemon answers for callback servers.
    pub has_callbacks: bool,
    /// Empty for readers who may not see them.
    pub payload_groups: &'a [PayloadGroup],
    /// The refused form of a var.
    pub refused_var: &'a Refused,
    /// The refused form of a secret.
    pub refused_secret: &'a Refused,
    /// The refused form of a callback server.
    pub refused_callback: &'a Refused,
}

pub fn variables(visit: &Visit, page: &Variables<'_>) -> Markup {
    let name = &page.project.name;
    let content = html! {
        (heading(name, &html! { span.tag { "project" } }, &html! { a.button href=(links::members(name)) { "Members" } }))
        @if !page.project.configured {
            div.banner role="note" { p { "The configuration no longer names this source. It starts no jobs." } }
        }
        (missing("vars", &page.project.missing_vars))
        (missing("secrets", &page.project.missing_secrets))
        (vars(visit, page))
        (secrets(visit, page))
        (callbacks(visit, page))
        (payload_groups(page.payload_groups))
    };
    Shell::new(visit, name, Some(Menu::Variables))
        .under([Crumb::new("Vars and secrets", links::PROJECTS)])
        .page(&content)
}

fn missing(kind: &str, names: &[MissingName]) -> Markup {
    html! {
        @if !names.is_empty() {
            div.banner.bad role="note" {
                p { b { "Missing " (kind) ". " } "Expressions that read them fail." }
                ul.plain { @for missing in names { li { code { (missing.name) } ", used by " (used_by(&missing.used_by)) } } }
            }
        }
    }
}

fn used_by(scans: &[ScanName]) -> Markup {
    html! {
        @if scans.is_empty() { span.muted { "nothing" } }
        @for (place, scan) in scans.iter().enumerate() {
            @if place > 0 { ", " }
            a href=(links::scan(&scan.workflow, &scan.scan)) { (scan.workflow) " · " (scan.scan) }
        }
    }
}

fn vars(visit: &Visit, page: &Variables<'_>) -> Markup {
    let project = &page.project.name;
    let may = visit.may_in(project, Scope::ProjectWrite);
    html! {
        (card("vars", "Vars", &html! { (page.vars.len()) }, &html! {
            @if page.vars.is_empty() {
                (empty(&html! { p { "There are no vars. Expressions read one as " code { "vars.NAME" } "." } }))
            } @else {
                (table("Vars", &["name", "value", "changed", "used by", ""], &html! {
                    @for var in page.vars {
                        tr {
                            td { code { (var.named.name) } }
                            td.wide { @if var.value.is_empty() { span.muted { "empty" } } @else { code.text { (var.value) } } }
                            td { (changed(visit, &var.named)) }
                            td.wide { (used_by(&var.named.used_by)) }
                            td.end {
                                @if may {
                                    (form::guarded(visit, &links::delete_var(project, &var.named.name), "Delete",
                                        "Expressions that read it will fail."))
                                }
                            }
                        }
                    }
                }))
            }
            @if may {
                div.body.fields {
                    h3 { "Set a var" }
                    (page.refused_var.summary(&["name", "value"]))
                    (form::post(visit, "var", &links::vars(project), &html! {
                        (Field::new("name", "Name").required().input("text", "", page.refused_var))
                        (Field::new("value", "Value").hint("Everybody who may see the project can read it. A var with this name gets the new value.")
                            .text("", Limit::Bytes(65_536), page.refused_var))
                        button.button type="submit" { "Set" }
                    }))
                }
            }
        }))
    }
}

fn changed(visit: &Visit, named: &Named) -> Markup {
    html! { (ago(named.updated_at, visit.now)) " by " (named.updated_by) ", version " (named.version) }
}

fn secrets(visit: &Visit, page: &Variables<'_>) -> Markup {
    let project = &page.project.name;
    let may = visit.may_in(project, Scope::SecretWrite);
    html! {
        (card("secrets", "Secrets", &html! { (page.secrets.len()) }, &html! {
            @if page.secrets.is_empty() {
                (empty(&html! { p { "There are no secrets. Jobs read one as " code { "secrets.NAME" } "; nobody can read it here." } }))
            } @else {
                (table("Secrets", &["name", "changed", "key", "used by", ""], &html! {
                    @for secret in page.secrets {
                        tr {
                            td { code { (secret.named.name) } }
                            td { (changed(visit, &secret.named)) }
                            td { (key(secret)) }
                            td.wide { (used_by(&secret.named.used_by)) }
                            td.end {
                                @if may {
                                    (form::guarded(visit, &links::delete_secret(project, &secret.named.name), "Delete",
                                        "Jobs that use it will fail. Its value cannot be recovered."))
                                }
                            }
                        }
                    }
                }))
            }
            @if may {
                div.body.fields {
                    h3 { "Set a secret" }
                    (page.refused_secret.summary(&["name", "value"]))
                    (form::post(visit, "secret", &links::secrets(project), &html! {
                        (Field::new("name", "Name").of("secret").required().input("text", "", page.refused_secret))
                        (Field::new("value", "Value").of("secret").required().hint("Nobody can read it again. It is masked in logs.").input("password", "", page.refused_secret))
                        button.button type="submit" { "Set" }
                    }))
                }
            }
        }))
    }
}

fn key(secret: &Secret) -> Markup {
    match secret.key_state {
        KeyState::Current => condition("succeeded", "current key"),
        KeyState::Old => condition("scheduled", "old key"),
        KeyState::Missing => condition("failed", "key is missing"),
        KeyState::Other => condition("skipped", "unknown"),
    }
}
