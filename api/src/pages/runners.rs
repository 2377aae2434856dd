//! The runners, and their registration.

use http::StatusCode;
use http::header::HOST;
use maud::Markup;
use model::Scope;
use ui::chart::{self, Bar, Lane};
use ui::links;
use ui::pages::{self, RunnerPage};
use warp::reply::Response;
use wire::{Job, Page, Registration, Runner};

use super::charts;
use super::frame::{Frame, html};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{jobs, runners};

/// Jobs of a runner that are looked at: a page of `/v0`.
const JOBS: &str = "200";
/// Those of them that are listed.
const LISTED: usize = 20;

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    Ok(frame.page(page(frame, frame.query("cursor"), None)?))
}

fn page(
    frame: &Frame<'_>,
    cursor: &str,
    registration: Option<&Registration>,
) -> Result<Markup, Failure> {
    let request = frame.request.asking(&[], &[("cursor", cursor)]);
    let found = runners::load_list(frame.me, &request)?;
    let page = pages::Runners {
        slots: found.items.iter().map(slots).collect(),
        runners: &found,
        registration,
        server: &server(frame),
    };
    Ok(pages::runners(&frame.visit, &page))
}

fn slots(runner: &Runner) -> Markup {
    let taken = usize::try_from(runner.taken).unwrap_or(usize::MAX);
    chart::slots(taken, runner.capacity as usize)
}

/// The address at which the browser has reached the daemon.
pub(super) fn server(frame: &Frame<'_>) -> String {
    let scheme = match frame.request.arrival.peer.is_https {
        true => "https",
        false => "http",
    };
    format!(
        "{scheme}://{}",
        frame.request.header(HOST).unwrap_or("localhost")
    )
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let runner = runners::load_show(frame.me, frame.request).await?;
    let past = match frame.may(Scope::JobRead) {
        true => {
            let query = [("runner", runner.name.as_str()), ("limit", JOBS)];
            let request = frame.request.asking(&[], &query);
            jobs::load_list(frame.me, &request).await?
        }
        false => Page::all(Vec::new()),
    };
    let page = RunnerPage {
        slots: slots(&runner),
        lanes: lanes(frame, &runner, &past.items),
        lanes_cut: charts::cut(frame, &past),
        runner: &runner,
        past: past.items.get(..LISTED).unwrap_or(&past.items),
        has_more: past.next_cursor.is_some(),
    };
    Ok(frame.page(pages::runner(&frame.visit, &page)))
}

/// When the runner was busy.
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

/// Makes a registration. Its token is in this answer alone, so the answer is the page itself.
pub(super) async fn register(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    frame.need(Scope::RunnerRead)?;
    let nothing = serde_json::json!({});
    let request = frame.request.telling(&[], &nothing, typed.key())?;
    let made = runners::make_registration(frame.me, request).await?;
    let page = page(frame, "", Some(&made))?;
    Ok(html(StatusCode::OK, page.into_string()))
}

pub(super) async fn remove(frame: &Frame<'_>) -> Result<Response, Failure> {
    runners::delete(frame.me, frame.request).await?;
    Ok(frame.done(Scope::RunnerRead, links::RUNNERS))
}
