//! The frame of every page: head, menu, breadcrumb, finder, the notice of a lost connection, and the live region that
//! announces changes of state.

mod dialogs;
mod problem;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, html};
use uuid::Uuid;
use wire::Scope;

pub use problem::problem_page;

use crate::sprite::sprite;
use crate::words::icon;
use crate::{assets, form, links, topics};

/// Who requests a page, when, and from which daemon.
#[derive(Debug, Clone)]
pub struct Visit {
    /// `None` before sign-in.
    pub viewer: Option<Viewer>,
    /// The daemon's version.
    pub version: String,
    pub theme: Theme,
    pub now: DateTime<Utc>,
    pub counts: Counts,
    /// True if the page is the response to a form, so its address cannot be loaded again.
    pub answers_form: bool,
    /// A new random id, from which the idempotency keys of the page's forms are made.
    pub form_key: Uuid,
}

impl Visit {
    /// True if the viewer has this scope in at least one project. Pages hide links and actions that the viewer may not use.
    pub fn may(&self, scope: Scope) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.may(scope))
    }

    /// True if the viewer has this scope in the project with this name.
    pub fn may_in(&self, project: &str, scope: Scope) -> bool {
        let viewer = self.viewer.as_ref();
        viewer.is_some_and(|viewer| viewer.may_in(project, scope))
    }

    /// The idempotency key of one form. It starts with the page's key, so two renderings of a page can be compared
    /// without their keys.
    pub(crate) fn key_of(&self, form: &str) -> String {
        format!("{}-{}", self.form_key.simple(), name_of(form))
    }
}

/// The numbers in the menu and beside the bell, counting only what the viewer may see. A zero is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Active workflows.
    pub workflows: usize,
    /// Unfinished jobs.
    pub jobs: usize,
    /// Connected runners.
    pub runners: usize,
    /// Open conditions that nobody has acknowledged or silenced.
    pub conditions: usize,
}

/// A short, deterministic hash of a form's name.
pub(crate) fn name_of(form: &str) -> String {
    let mut name = Uuid::new_v5(&Uuid::NAMESPACE_URL, form.as_bytes())
        .simple()
        .to_string();
    name.truncate(16);
    name
}

/// The user who is signed in.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub name: String,
    /// What the viewer may do in at least one project.
    pub scopes: Vec<Scope>,
    /// What the viewer may do in each project, by its name. `None`: the scopes count in all projects.
    pub roles: Option<BTreeMap<String, Vec<Scope>>>,
}

impl Viewer {
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    fn may_in(&self, project: &str, scope: Scope) -> bool {
        match &self.roles {
            None => self.may(scope),
            Some(roles) => roles
                .get(project)
                .is_some_and(|scopes| scopes.contains(&scope)),
        }
    }

    fn scope_names(&self) -> Vec<&'static str> {
        self.scopes.iter().map(|scope| scope.as_str()).collect()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// The setting of the operating system.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Menu {
    Overview,
    Workflows,
    Jobs,
    Runners,
    Sources,
    Notifications,
    Artifacts,
    Blobs,
    Variables,
    Tokens,
    Users,
    Audit,
    Settings,
    About,
}

/// The groups of the menu: their titles and entries.
const GROUPS: &[(&str, &[Menu])] = {
    use Menu::*;
    &[
        (
            "",
            &[Overview, Workflows, Jobs, Runners, Sources, Notifications],
        ),
        ("Data", &[Artifacts, Blobs, Variables]),
        ("You", &[Tokens, Users, Audit, Settings, About]),
    ]
};

impl Menu {
    /// The keys of its shortcut, one after the other.
    const fn keys(self) -> Option<&'static str> {
        match self {
            Self::Overview => Some("go"),
            Self::Workflows => Some("gw"),
            Self::Jobs => Some("gj"),
            Self::Runners => Some("gr"),
            Self::Sources => Some("gs"),
            _ => None,
        }
    }

    /// The number beside its label, and what it counts.
    const fn count(self, counts: Counts) -> Option<(usize, &'static str)> {
        match self {
            Self::Workflows => Some((counts.workflows, "active")),
            Self::Jobs => Some((counts.jobs, "unfinished")),
            Self::Runners => Some((counts.runners, "connected")),
            _ => None,
        }
    }

    /// Label, icon, address, and the scope that its page needs.
    const fn entry(self) -> (&'static str, &'static str, &'static str, Option<Scope>) {
        use Scope::{
            Admin, BlobRead, JobRead, NotifyRead, ProjectRead, RunnerRead, TokenWrite, WorkflowRead,
        };
        match self {
            Self::Overview => ("Overview", "home", links::OVERVIEW, None),
            Self::Workflows => ("Workflows", "flow", links::WORKFLOWS, Some(WorkflowRead)),
            Self::Jobs => ("Jobs", "jobs", links::JOBS, Some(JobRead)),
            Self::Runners => ("Runners", "runner", links::RUNNERS, Some(RunnerRead)),
            Self::Sources => ("Sources", "source", links::SOURCES, Some(ProjectRead)),
            Self::Notifications => (
                "Notifications",
                "bell",
                links::NOTIFICATIONS,
                Some(NotifyRead),
            ),
            Self::Artifacts => ("Artifacts", "sheet", links::ARTIFACTS, Some(WorkflowRead)),
            Self::Blobs => ("Blobs", "box", links::BLOBS, Some(BlobRead)),
            Self::Variables => (
                "Vars and secrets",
                "vars",
                links::PROJECTS,
                Some(ProjectRead),
            ),
            Self::Tokens => ("Tokens", "key", links::TOKENS, Some(TokenWrite)),
            Self::Users => ("Users", "user", links::USERS, Some(Admin)),
            Self::Audit => ("Audit", "list", links::AUDIT, Some(Admin)),
            Self::Settings => ("Settings", "gear", links::SETTINGS, None),
            Self::About => ("About", "info", links::ABOUT, None),
        }
    }
}

/// A link to a page above the current one.
#[derive(Debug, Clone)]
pub struct Crumb {
    pub label: String,
    pub link: String,
}

impl Crumb {
    pub fn new(label: impl Into<String>, link: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            link: link.into(),
        }
    }
}

/// A page without its main content.
#[derive(Debug, Clone)]
pub struct Shell<'a> {
    pub visit: &'a Visit,
    pub title: &'a str,
    /// The last part of the breadcrumb, if it differs from the title.
    pub here: Option<&'a str>,
    /// The pages above this one, outermost first.
    pub breadcrumb: Vec<Crumb>,
    pub active: Option<Menu>,
    /// True if the page fills the window, so that the log scrolls instead of the page.
    pub fills_window: bool,
}

impl<'a> Shell<'a> {
    pub const fn new(visit: &'a Visit, title: &'a str, active: Option<Menu>) -> Self {
        Self {
            visit,
            title,
            here: None,
            breadcrumb: Vec::new(),
            active,
            fills_window: false,
        }
    }

    #[must_use]
    pub fn under(mut self, crumbs: impl IntoIterator<Item = Crumb>) -> Self {
        self.breadcrumb.extend(crumbs);
        self
    }

    pub fn page(&self, content: &Markup) -> Markup {
        let signed_in = self.visit.viewer.is_some();
        html! {
            (DOCTYPE)
            html lang="en" data-theme=(self.visit.theme.as_str()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Everscan" }
                    link rel="icon" href=(assets::link("icon.svg")) type="image/svg+xml";
                    link rel="stylesheet" href=(assets::link("everscan.css"));
                    // Runs before the first paint, so that the page never appears in the wrong theme.
                    script src=(assets::link("theme.js")) {}
                    script type="module" src=(assets::link("main.js")) {}
                }
                body.bare[!signed_in] data-base=(links::OVERVIEW) data-stream=[signed_in.then_some(links::LIVE)]
                    data-answer=[self.visit.answers_form.then_some("yes")] {
                    (sprite())
                    a.skip href="#main" { "Skip to content" }
                    @if signed_in { (self.rail()) }
                    div.page {
                        @if signed_in { (self.top()) }
                        p #connection role="status" hidden {}
                        main #main.fill[self.fills_window] tabindex="-1" { (content) }
                    }
                    div #announcements.visually-hidden role="status" aria-live="polite" {}
                    @if signed_in { (dialogs::finder()) (dialogs::shortcuts()) }
                }
            }
        }
    }

    fn rail(&self) -> Markup {
        let may = |entry: &Menu| entry.entry().3.is_none_or(|scope| self.visit.may(scope));
        html! {
            nav.rail aria-label="Everscan" {
                a.brand href=(links::OVERVIEW) aria-label="Everscan, overview" {
                    svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" {
                        circle cx="10" cy="10" r="8.5" {}
                        path d="M10 10V1.5A8.5 8.5 0 0 1 18.5 10z" {}
                    }
                    span { "Everscan" }
                }
                @for (name, entries) in GROUPS {
                    @if !name.is_empty() { p.group { (name) } }
                    @for entry in entries.iter().filter(|entry| may(entry)) {
                        @let (label, drawing, link, _) = entry.entry();
                        a.item href=(link) data-key=[entry.keys()] aria-current=[(self.active == Some(*entry)).then_some("page")] {
                            (icon(drawing)) span.label { (label) }
                            @if let Some((number, what)) = entry.count(self.visit.counts) {
                                // Updated together with any other region.
                                span.count id={ "count-" (drawing) } data-live="" title=(what) {
                                    @if number > 0 { (number) span.visually-hidden { " " (what) } }
                                }
                            }
                        }
                    }
                }
                div.foot {
                    @if let Some(viewer) = &self.visit.viewer {
                        p title={ "Scopes: " (viewer.scope_names().join(", ")) } { (viewer.name) }
                    }
                    (form::post(self.visit, "sign out", links::LOGOUT, &html! {
                        button.plain type="submit" { "Sign out" }
                    }))
                    p { span.pulse aria-hidden="true" {} (self.visit.version) }
                }
            }
        }
    }

    fn top(&self) -> Markup {
        html! {
            header.top {
                nav.crumbs aria-label="Breadcrumb" {
                    ol {
                        @for crumb in &self.breadcrumb {
                            li { a href=(crumb.link) { (crumb.label) } }
                        }
                        li { span aria-current="page" { (self.here.unwrap_or(self.title)) } }
                    }
                }
                // Without scripts this is a link to the list of jobs, which has a search.
                a.find href=(links::JOBS) data-opens="finder" {
                    (icon("search")) span { "Go to scan, job, runner…" } kbd { "Ctrl K" }
                }
                @if self.visit.may(Scope::WorkflowRead) { (self.bell()) }
            }
        }
    }

    /// The number of conditions that need the reader, with a link to their list.
    fn bell(&self) -> Markup {
        let open = self.visit.counts.conditions;
        html! {
            a #bell.button.small.danger[open > 0] href={ (links::OVERVIEW) "#needs" } title="Needs you" data-live=(topics::CONDITIONS) {
                (icon("bell"))
                @if open > 0 { (open) }
                span.visually-hidden { " " (if open == 1 { "open condition" } else { "open conditions" }) }
            }
        }
    }
}

/// A part of a page that is updated when one of the topics changes. An empty region stays in the page, hidden, so that
/// later content has a place.
pub fn region(id: &str, topics: &[&str], content: &Markup) -> Markup {
    html! {
        div.region id=(id) data-live=(topics.join(" ")) hidden[content.0.is_empty()] { (content) }
    }
}

/// The only first-level heading of a page, with labels beside it and the page's actions.
pub(crate) fn heading(title: &str, labels: &Markup, actions: &Markup) -> Markup {
    html! {
        div.head {
            h1 { (title) }
            (labels)
            @if !actions.0.is_empty() { div.actions { (actions) } }
        }
    }
}
