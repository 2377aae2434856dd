//! The runners, and their registration.

use http::StatusCode;
use http::header::HOST;
use maud::Markup;
use model::Scope;
use ui::chart::{self, Bar, Lane};
use ui::links;
use ui::pages::{self, RunnerPage};
use warp::reply::Response;
use wire::{CreateRegistration, Job, Page, Registration, Runner};

use super::charts;
use super::frame::Frame;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::jobs::{self, JobsQuery};
use crate::handlers::runners;
use crate::idempotency::Attempt;
use crate::limits::PAGE;
use crate::page::Window;

const LISTED: usize = 20;

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    Ok(frame.page(page(frame, &frame.window()?, None)))
}

fn page(frame: &Frame<'_>, window: &Window, registration: Option<&Registration>) -> Markup {
    let found = runners::list(frame.user, window);
    let page = pages::Runners {
        slots: found.items.iter().map(slots).collect(),
        runners: &found,
        registration,
        server: &server(frame),
    };
    pages::runners(&frame.visit, &page)
}

fn slots(runner: &Runner) -> Markup {
    let taken = usize::try_from(runner.taken).unwrap_or(usize::MAX);
    chart::slots(taken, runner.capacity as usize)
}

/// The address of the daemon, as the browser sees it.
pub(super) fn server(frame: &Frame<'_>) -> String {
    let arrival = &frame.request.arrival;
    let scheme = match arrival.peer.is_https {
        true => "https",
        false => "http",
    };
    let host = frame.request.header(HOST).unwrap_or("localhost");
    format!("{scheme}://{host}{}", arrival.base)
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let runner = runners::show(frame.user, frame.parameter(0)).await?;
    let past = match frame.may(Scope::JobRead) {
        true => {
            let mut query = JobsQuery::first(PAGE);
            query.filter.runner = Some(runner.name.clone());
            jobs::list(frame.user, query).await?
        }
        false => Page::all(Vec::new()),
    };
    let page = RunnerPage {
        slots: slots(&runner),
        lanes: lanes(frame, &runner, &past.items),
        lanes_cut: charts::cut(frame, &past),
        may_manage: frame.may(Scope::RunnerWrite) && runners::may_manage(frame.user, &runner),
        runner: &runner,
        past: past.items.get(..LISTED).unwrap_or(&past.items),
        has_more: past.next_cursor.is_some(),
    };
    Ok(frame.page(pages::runner(&frame.visit, &page)))
}

fn lanes(frame: &Frame<'_>, runner: &Runner, jobs: &[Job]) -> Markup {
    let bars = jobs.iter().map(|job| Bar::of_job(job, frame.visit.now));
    let lane = Lane {
        name: runner.name.clone(),
        href: links::runner(runner.id),
        bars: bars.collect(),
        empty_slots: Vec::new(),
    };
    charts::lanes(frame, &[lane], &[], charts::day())
}

/// Makes a registration. Only this answer has its token, so the answer is the page itself.
pub(super) async fn register(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    frame.need(Scope::RunnerRead)?;
    let asked = CreateRegistration {
        projects: words(typed, "projects"),
        labels: words(typed, "labels"),
    };
    let attempt = Attempt::of_form(typed.key(), &asked)?;
    let made = runners::make_registration(frame.user, asked, &attempt).await?;
    let page = page(frame, &frame.window()?, Some(&made));
    Ok(frame.html(StatusCode::OK, page))
}

/// The words of a text field. None if there are none.
fn words(typed: &Typed, field: &str) -> Option<Vec<String>> {
    let words = typed.text(field).split_whitespace().map(str::to_owned);
    Some(words.collect::<Vec<_>>()).filter(|words| !words.is_empty())
}

pub(super) async fn limit(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let projects = words(typed, "projects").unwrap_or_default();
    let runner = runners::limit(frame.user, frame.parameter(0), &projects).await?;
    Ok(frame.done(Scope::RunnerRead, &links::runner(runner.uuid())))
}

pub(super) async fn remove(frame: &Frame<'_>) -> Result<Response, Failure> {
    runners::delete(frame.user, frame.parameter(0)).await?;
    Ok(frame.done(Scope::RunnerRead, links::RUNNERS))
}
