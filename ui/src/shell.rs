//! What is around every page: head, menu, breadcrumb, the finder, the bar that says the daemon is away, and one polite
//! region for changes of state.

mod dialogs;
mod problem;

use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, html};
use uuid::Uuid;

pub use problem::problem_page;

use crate::sprite::sprite;
use crate::words::icon;
use crate::{assets, form, links};

/// Who looks at a page, when, and at which daemon.
#[derive(Debug, Clone)]
pub struct Visit {
    /// None before the sign-in.
    pub viewer: Option<Viewer>,
    /// The daemon's version.
    pub version: String,
    pub theme: Theme,
    pub now: DateTime<Utc>,
    /// What the menu counts.
    pub counts: Counts,
    /// A fresh random id. The idempotency keys of the page's forms are made from it.
    pub form_key: Uuid,
}

impl Visit {
    /// Whether the viewer may do what asks for this scope. Actions and pages that are not allowed are not shown.
    pub fn may(&self, scope: &str) -> bool {
        self.viewer.as_ref().is_some_and(|viewer| viewer.may(scope))
    }

    /// The idempotency key of one form of the page. It begins with the key of the page, so that two pages can be compared
    /// without their keys.
    pub(crate) fn key_of(&self, form: &str) -> String {
        format!("{}-{}", self.form_key.simple(), name_of(form))
    }
}

/// What the menu counts, as far as the viewer may see it. A zero is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that are active.
    pub workflows: usize,
    /// Those that are not over.
    pub jobs: usize,
    /// Those that are connected.
    pub runners: usize,
}

/// A short name for a form, made of a longer one. It is the same whenever the page is made.
pub(crate) fn name_of(form: &str) -> String {
    let mut name = Uuid::new_v5(&Uuid::NAMESPACE_URL, form.as_bytes())
        .simple()
        .to_string();
    name.truncate(16);
    name
}

/// The token behind the session.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub name: String,
    pub scopes: Vec<String>,
}

impl Viewer {
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|has| has == scope || has == "admin")
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the system says.
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

/// An entry of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Menu {
    Overview,
    Workflows,
    Jobs,
    Runners,
    Sources,
    Artifacts,
    Blobs,
    Variables,
    Tokens,
    Audit,
    Settings,
    About,
}

/// The menu in its groups.
const GROUPS: &[(&str, &[Menu])] = &[
    (
        "",
        &[
            Menu::Overview,
            Menu::Workflows,
            Menu::Jobs,
            Menu::Runners,
            Menu::Sources,
        ],
    ),
    ("Data", &[Menu::Artifacts, Menu::Blobs, Menu::Variables]),
    (
        "You",
        &[Menu::Tokens, Menu::Audit, Menu::Settings, Menu::About],
    ),
];

impl Menu {
    /// The keys that lead there, one after the other.
    const fn keys(self) -> Option<&'static str> {
        match self {
            Self::Overview => Some("go"),
            Self::Workflows => Some("gw"),
            Self::Jobs => Some("gj"),
            Self::Runners => Some("gr"),
            Self::Sources => Some("gs"),
            Self::Artifacts
            | Self::Blobs
            | Self::Variables
            | Self::Tokens
            | Self::Audit
            | Self::Settings
            | Self::About => None,
        }
    }

    /// Its count, and what is counted.
    const fn count(self, counts: Counts) -> Option<(usize, &'static str)> {
        match self {
            Self::Workflows => Some((counts.workflows, "active")),
            Self::Jobs => Some((counts.jobs, "not over")),
            Self::Runners => Some((counts.runners, "connected")),
            Self::Overview
            | Self::Sources
            | Self::Artifacts
            | Self::Blobs
            | Self::Variables
            | Self::Tokens
            | Self::Audit
            | Self::Settings
            | Self::About => None,
        }
    }

    /// Label, icon, address and the scope that its page asks for.
    const fn entry(
        self,
    ) -> (
        &'static str,
        &'static str,
        &'static str,
        Option<&'static str>,
    ) {
        match self {
            Self::Overview => ("Overview", "home", links::OVERVIEW, None),
            Self::Workflows => ("Workflows", "flow", links::WORKFLOWS, Some("workflow:read")),
            Self::Jobs => ("Jobs", "jobs", links::JOBS, Some("job:read")),
            Self::Runners => ("Runners", "runner", links::RUNNERS, Some("runner:read")),
            Self::Sources => ("Sources", "source", links::SOURCES, Some("project:read")),
            Self::Artifacts => (
                "Artifacts",
                "sheet",
                links::ARTIFACTS,
                Some("workflow:read"),
            ),
            Self::Blobs => ("Blobs", "box", links::BLOBS, Some("blob:read")),
            Self::Variables => (
                "Vars and secrets",
                "vars",
                links::PROJECTS,
                Some("project:read"),
            ),
            Self::Tokens => ("Tokens", "key", links::TOKENS, Some("token:write")),
            Self::Audit => ("Audit", "list", links::AUDIT, Some("admin")),
            Self::Settings => ("Settings", "gear", links::SETTINGS, None),
            Self::About => ("About", "info", links::ABOUT, None),
        }
    }
}

/// One page above the present one.
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

/// A page without its content.
#[derive(Debug, Clone)]
pub struct Shell<'a> {
    pub visit: &'a Visit,
    pub title: &'a str,
    /// The last part of the breadcrumb, if it is not the title.
    pub here: Option<&'a str>,
    /// The pages above this one, from the outermost.
    pub breadcrumb: Vec<Crumb>,
    pub active: Option<Menu>,
    /// Whether the page fills the window, so that its log scrolls and not the page.
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

    /// The whole page.
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
                    // Runs before the page is drawn, so that the page never appears in the wrong theme first.
                    script src=(assets::link("theme.js")) {}
                    script type="module" src=(assets::link("main.js")) {}
                }
                body.bare[!signed_in] data-stream=[signed_in.then_some(links::LIVE)] {
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
                                // Renewed whenever another part of the page is.
                                span.count id={ "count-" (drawing) } data-live="" title=(what) {
                                    @if number > 0 { (number) span.visually-hidden { " " (what) } }
                                }
                            }
                        }
                    }
                }
                div.foot {
                    @if let Some(viewer) = &self.visit.viewer {
                        p title={ "Scopes: " (viewer.scopes.join(", ")) } { (viewer.name) }
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
                // Without a script it leads to the list of jobs, which can be searched.
                a.find href=(links::JOBS) data-opens="finder" {
                    (icon("search")) span { "Go to scan, job, runner…" } kbd { "Ctrl K" }
                }
            }
        }
    }
}

/// A part of a page that is renewed when one of the topics changes. One without content is there, too: what comes while
/// the page is open has a place.
pub fn region(id: &str, topics: &[&str], content: &Markup) -> Markup {
    html! {
        div.region id=(id) data-live=(topics.join(" ")) hidden[content.0.is_empty()] { (content) }
    }
}

/// The head of a page: its only first-level heading, what stands beside it, and the actions.
pub(crate) fn heading(title: &str, beside: &Markup, actions: &Markup) -> Markup {
    html! {
        div.head {
            h1 { (title) }
            (beside)
            @if !actions.0.is_empty() { div.actions { (actions) } }
        }
    }
}
