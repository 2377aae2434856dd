//! The registered runners, and one runner.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{Job, Page, Registration, Runner, RunnerJob, Scope};

use super::jobs::job_table;
use super::overview::lanes_cut;
use crate::form::{self, Field, Refused};
use crate::list::{card, empty, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{
    ago, at, condition, copied_id, copy_button, count, job_link, running_for, state,
};
use crate::{links, topics};

pub struct Runners<'a> {
    pub runners: &'a Page<Runner>,
    /// The slot bars of each runner, in the same order.
    pub slots: Vec<Markup>,
    /// A new registration. Only the response to its form shows it.
    pub registration: Option<&'a Registration>,
    /// The address of the daemon, for the command that registers a runner.
    pub server: &'a str,
}

pub fn runners(visit: &Visit, page: &Runners<'_>) -> Markup {
    let runners = &page.runners.items;
    let connected = runners.iter().filter(|runner| runner.connected).count();
    let actions = html! {
        @if visit.may(Scope::RunnerWrite) {
            (form::disclosed(visit, links::REGISTRATIONS, "Register a runner",
                "Makes a token with which one runner registers.", &html! {
                    (projects_field("register", "Names, separated by spaces. Empty: all in which you may register runners.", ""))
                    (Field::new("labels", "Labels").of("register")
                        .hint("Separated by spaces. Empty: the runner chooses its labels.")
                        .input("text", "", &Refused::default()))
                }))
        }
    };
    let heads = [
        "runner", "state", "projects", "labels", "slots", "jobs now", "version",
    ];
    let content = html! {
        (heading("Runners", &html! {}, &actions))
        @if let Some(registration) = page.registration { (registered(registration, page.server)) }
        (region("runners", &[topics::RUNNERS, topics::JOBS], &html! {
            @if runners.is_empty() {
                (empty(&html! {
                    p { "No runner of your projects is registered, so jobs wait. A runner is a program that executes them on its machine." }
                }))
            } @else {
                (card("runners", "Registered", &html! { (connected) " of " (runners.len()) " connected" }, &html! {
                    (table("Runners", &heads, &html! {
                        @for (place, runner) in runners.iter().enumerate() {
                            (row(visit, runner, page.slots.get(place)))
                        }
                    }))
                }))
            }
        }))
        (more(links::RUNNERS, &[], page.runners.next_cursor.as_deref()))
    };
    Shell::new(visit, "Runners", Some(Menu::Runners)).page(&content)
}

fn registered(registration: &Registration, server: &str) -> Markup {
    let command = format!(
        "SERVICE_REGISTRATION_TOKEN={} everscan-runner configure --url {server} && everscan-runner run",
        registration.token
    );
    html! {
        (card("registration", "A new registration", &html! { "ends " (at(registration.expires_at)) }, &html! {
            div.body {
                p { "Run this on the runner's machine. The token is shown once and can register one runner of "
                    @match registration.projects.as_deref() {
                        None => "all projects",
                        Some([one]) => { "the project " b { (one) } },
                        Some(several) => { "the projects " (several.join(", ")) },
                    } "." }
                pre.once { code { (command) } }
                p { (copy_button(&command, "Copy the command")) }
            }
        }))
    }
}

fn row(visit: &Visit, runner: &Runner, slots: Option<&Markup>) -> Markup {
    html! {
        tr {
            td { a href=(links::runner(runner.id)) data-find="runner" { (runner.name) } }
            td { (heard(runner, visit.now)) }
            td { (projects(runner)) }
            td { (labels(runner)) }
            td {
                @if let Some(slots) = slots { (slots) " " }
                (runner.taken) " of " (runner.capacity)
            }
            td {
                @for (place, job) in runner.running.iter().enumerate() {
                    @if place > 0 { ", " }
                    (job_link(*job))
                }
            }
            td { (runner.version) @if runner.version != visit.version { " " span.tag { "daemon: " (visit.version) } } }
        }
    }
}

fn projects(runner: &Runner) -> Markup {
    let Some(projects) = &runner.projects else {
        return html! { "all" };
    };
    html! {
        (projects.join(", "))
        @if runner.has_other_projects { " " span.muted { "and others" } }
    }
}

fn projects_field(form: &str, hint: &str, value: &str) -> Markup {
    let field = Field::new("projects", "Projects").of(form).hint(hint);
    field.input("text", value, &Refused::default())
}

/// What the projects of a runner mean for its jobs.
fn separation(runner: &Runner) -> Markup {
    let is_shared = match &runner.projects {
        None => true,
        Some(projects) => projects.len() > 1 || runner.has_other_projects,
    };
    html! {
        @if is_shared {
            p.muted {
                @if runner.projects.is_none() { "It serves all projects, also future ones. " }
                "Jobs of its projects are not separated: a step can read files and secrets of jobs beside it, and the runner's session."
            }
        }
    }
}

pub(super) fn labels(runner: &Runner) -> Markup {
    html! {
        @if runner.labels.is_empty() { span.muted { "none" } }
        @for label in &runner.labels { span.tag { (label) } " " }
        @if runner.exclusive { span.muted { "only these" } }
    }
}

/// The connection of a runner, and when it was last heard.
pub(super) fn heard(runner: &Runner, now: DateTime<Utc>) -> Markup {
    html! {
        (if runner.connected { condition("succeeded", "connected") } else { condition("failed", "not connected") })
        " "
        span.muted {
            @match runner.heard_at {
                Some(heard) => { "heard " (ago(heard, now)) }
                None => { "not heard since the daemon started" }
            }
        }
    }
}

pub(super) fn taken(runner: &Runner) -> String {
    format!(
        "{} of {}",
        runner.taken,
        count(u64::from(runner.capacity), "slot", "slots")
    )
}

pub struct RunnerPage<'a> {
    pub runner: &'a Runner,
    /// True if the viewer may limit and remove it.
    pub may_manage: bool,
    /// Its newest jobs.
    pub past: &'a [Job],
    /// True if it may have executed other jobs.
    pub has_more: bool,
    pub slots: Markup,
    /// Its jobs in the last day.
    pub lanes: Markup,
    /// If the lanes do not show all jobs: the number that they show.
    pub lanes_cut: Option<u64>,
}

pub fn runner(visit: &Visit, page: &RunnerPage<'_>) -> Markup {
    let runner = page.runner;
    let own = runner.projects.as_deref().unwrap_or_default().join(" ");
    let topic = topics::runner(runner.id);
    let actions = html! {
        @if page.may_manage {
            (form::disclosed(visit, &links::limit_runner(runner.id), "Limit",
                "It takes only jobs of these projects. Running jobs continue.",
                &projects_field("limit", "Names, separated by spaces.", &own)))
            (form::guarded(visit, &links::remove_runner(runner.id), "Remove",
                "Its session ends. Jobs that it runs fail, unless they may be retried."))
        }
    };
    let content = html! {
        (heading(&runner.name, &copied_id(runner.id), &actions))
        (region("state", &[&topic, topics::JOBS], &html! {
            (facts(&[
                ("state", heard(runner, visit.now)),
                ("slots", html! { (page.slots) " " (taken(runner)) }),
                ("projects", html! { (projects(runner)) (separation(runner)) }),
                ("labels", labels(runner)),
                ("version", html! { (runner.version) }),
                ("capabilities", html! { (runner.capabilities.join(", ")) }),
                ("registered", at(runner.registered_at)),
            ]))
            @if runner.gives_its_own_token() {
                p.note {
                    "The program of this runner gives steps the " code { "SERVICE_TOKEN" } " of its own environment, if it has one, "
                    "instead of a token of their job. Update it."
                }
            }
            (card("jobs", "Jobs that take its slots", &html! { (runner.jobs.len()) }, &html! {
                @if runner.jobs.is_empty() {
                    (empty(&html! { p { "No job that you may see takes a slot." } }))
                } @else {
                    (table("Jobs that take slots", &["state", "scan", "workflow", "runs", "job"], &html! {
                        @for job in &runner.jobs { (job_row(visit, job)) }
                    }))
                }
            }))
        }))
        @if visit.may(Scope::JobRead) {
            (region("lanes", &[topics::JOBS], &lanes(page)))
            (card("past", "Last jobs", &html! {
                a href=(links::with_query(links::JOBS, &[("runner", &runner.name)])) { "all" }
            }, &html! {
                @if page.past.is_empty() {
                    (empty(&html! { p {
                        @if page.has_more { "It did not run any of the newest jobs." }
                        @else { "It ran no job that is still stored." }
                    } }))
                } @else {
                    (job_table(visit, page.past))
                }
            }))
        }
    };
    Shell::new(visit, &runner.name, Some(Menu::Runners))
        .under([Crumb::new("Runners", links::RUNNERS)])
        .page(&content)
}

fn lanes(page: &RunnerPage<'_>) -> Markup {
    if page.lanes.0.is_empty() {
        return html! {};
    }
    let content = html! { (page.lanes) (lanes_cut(page.lanes_cut)) };
    card("lanes", "Busy in the last 24 hours", &html! {}, &content)
}

fn job_row(visit: &Visit, job: &RunnerJob) -> Markup {
    let workflow = links::workflow_name(&job.workflow);
    html! {
        tr {
            td { (state(job.state)) @if job.state.is_terminal() { " " span.muted { "and still holds its slot" } } }
            td { a href=(links::job(job.id)) { (job.scan) } }
            td { a.quiet href=(links::workflow(&workflow)) { (workflow) } }
            td.num { @if let Some(started) = job.started_at { (running_for(started, visit.now)) } }
            td { (job_link(job.id)) }
        }
    }
}
