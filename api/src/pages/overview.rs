//! The overview. Every reader may see it, but each part needs its own scope.

use std::collections::BTreeMap;

use maud::Markup;
use model::{Scope, StateKind};
use ui::chart::{Bar, Lane};
use ui::links;
use ui::pages::{self, Unfinished};
use warp::reply::Response;
use wire::{
    Acknowledge, Job, JobState, OpenCondition, Page, Runner, ScanStatus, Silence, Slot, Source,
};

use super::charts;
use super::frame::Frame;
use super::html::see_other;
use super::runners::server;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::jobs::{self, JobsQuery};
use crate::handlers::{conditions, health, runners, scans, sources};
use crate::limits::PAGE;
use crate::page::Window;

const SLOTS: usize = 10;

pub(super) async fn overview(frame: &Frame<'_>) -> Result<Response, Failure> {
    let health = health::load_health(&frame.service.handle).await?;
    let sources = sources(frame);
    let runners = runners(frame);
    let scans = scans(frame).await?;
    let (sources, runners, scans) = (sources.items, runners.items, scans.items);
    let unfinished = unfinished(frame).await?;
    let slots = slots(frame)?;
    let conditions = conditions(frame);
    let (lanes, lanes_cut) = lanes(frame).await?;
    let page = pages::Overview {
        server: &server(frame),
        health: &health,
        sources: &sources,
        runners: &runners,
        scans: &scans,
        conditions: &conditions.items,
        conditions_cut: conditions.next_cursor.is_some(),
        unfinished: &unfinished,
        counts: counts(frame),
        progress: progress(frame, &unfinished).await,
        slots: &slots,
        lanes,
        lanes_cut,
    };
    Ok(frame.page(pages::overview(&frame.visit, &page)))
}

pub(super) fn sources(frame: &Frame<'_>) -> Page<Source> {
    match frame.may(Scope::ProjectRead) {
        true => sources::list(frame.user, &Window::first(PAGE)),
        false => Page::all(Vec::new()),
    }
}

fn runners(frame: &Frame<'_>) -> Page<Runner> {
    match frame.may(Scope::RunnerRead) {
        true => runners::list(frame.user, &Window::first(PAGE)),
        false => Page::all(Vec::new()),
    }
}

async fn scans(frame: &Frame<'_>) -> Result<Page<ScanStatus>, Failure> {
    match frame.may(Scope::WorkflowRead) {
        true => scans::list(frame.user, None, &Window::first(PAGE)).await,
        false => Ok(Page::all(Vec::new())),
    }
}

fn conditions(frame: &Frame<'_>) -> Page<OpenCondition> {
    match frame.may(Scope::WorkflowRead) {
        true => conditions::list(frame.user, &Window::first(PAGE)),
        false => Page::all(Vec::new()),
    }
}

async fn unfinished(frame: &Frame<'_>) -> Result<Vec<Job>, Failure> {
    let mut all = Vec::new();
    if frame.may(Scope::JobRead) {
        for state in [StateKind::Running, StateKind::Scheduled] {
            let mut query = JobsQuery::first(PAGE);
            query.filter.state = Some(state);
            all.extend(jobs::list(frame.user, query).await?.items);
        }
    }
    Ok(all)
}

/// The numbers of running and waiting jobs, including jobs that are not listed.
fn counts(frame: &Frame<'_>) -> Unfinished {
    let mut counts = Unfinished::default();
    if !frame.may(Scope::JobRead) {
        return counts;
    }
    let (now, steady) = (frame.user.now(), frame.user.steady());
    frame.user.read(|seen| {
        for job in seen.jobs() {
            if job.state.run().is_some() {
                counts.running += 1;
                continue;
            }
            counts.waiting += 1;
            // A retry waits for a runner only after its delay.
            let due = job.not_before.map(|due| due + (now - steady));
            let since = due.unwrap_or(job.created_at).max(job.created_at);
            if since <= now && counts.oldest_wait.is_none_or(|oldest| since < oldest) {
                counts.oldest_wait = Some(since);
            }
        }
    });
    counts
}

fn slots(frame: &Frame<'_>) -> Result<Vec<Slot>, Failure> {
    if !frame.may(Scope::WorkflowRead) {
        return Ok(Vec::new());
    }
    scans::next_slots(frame.user, SLOTS)
}

/// The progress of each running job. The history of a scan is read once for all its jobs.
async fn progress(frame: &Frame<'_>, unfinished: &[Job]) -> Vec<Markup> {
    let mut known: BTreeMap<(String, &str), Vec<Bar>> = BTreeMap::new();
    let mut all = Vec::new();
    for job in unfinished {
        if job.state != JobState::Running {
            continue;
        }
        let key = (links::workflow_name(&job.workflow), job.scan.as_str());
        if !known.contains_key(&key) && known.len() < charts::MOST_HISTORIES {
            // The scan may have been removed while its job runs.
            let lines = charts::history(frame, &key.0, key.1, charts::USUAL_OF).await;
            let bars = charts::bars(frame, &lines.unwrap_or_default());
            known.insert(key.clone(), bars);
        }
        let bars = known.get(&key).map_or(&[][..], Vec::as_slice);
        all.push(charts::progress(frame, job, bars));
    }
    all
}

/// The jobs of the last day, a lane for each workflow, and their number if there may be more.
async fn lanes(frame: &Frame<'_>) -> Result<(Markup, Option<u64>), Failure> {
    if !frame.may(Scope::JobRead) {
        return Ok((Markup::default(), None));
    }
    let mut query = JobsQuery::first(PAGE);
    query.filter.since = Some(frame.visit.now - charts::day());
    let mut lanes: BTreeMap<String, Vec<Bar>> = BTreeMap::new();
    let found = jobs::list(frame.user, query).await?;
    for job in &found.items {
        let lane = lanes
            .entry(links::workflow_name(&job.workflow))
            .or_default();
        lane.push(Bar::of_job(job, frame.visit.now));
    }
    let lanes = lanes.into_iter().map(|(name, bars)| Lane {
        href: links::workflow(&name),
        name,
        bars,
        empty_slots: Vec::new(),
    });
    let lanes: Vec<Lane> = lanes.collect();
    let chart = charts::lanes(frame, &lanes, &[], charts::day());
    Ok((chart, charts::cut(frame, &found)))
}

pub(super) async fn acknowledge(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let id = conditions::changeable(frame.user, frame.request.parameter(0))?;
    let note = typed.get("note").map(str::to_owned);
    conditions::note(frame.user, id, Acknowledge { note }).await?;
    Ok(see_other(links::OVERVIEW))
}

pub(super) async fn silence(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let id = conditions::changeable(frame.user, frame.request.parameter(0))?;
    let seconds = typed.text("seconds");
    let seconds = seconds
        .parse()
        .map_err(|_| Failure::invalid("seconds", "must be a number"))?;
    let silence = Silence {
        seconds: Some(seconds),
    };
    conditions::hush(frame.user, id, silence).await?;
    Ok(see_other(links::OVERVIEW))
}
