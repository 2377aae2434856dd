//! The projects, whose vars and secrets scans read.

use maud::{Markup, html};
use wire::{Page, Project};

use crate::links;
use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading};
use crate::words::count;

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
