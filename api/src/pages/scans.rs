//! One scan, and the form that starts a job of it.

use std::collections::BTreeMap;

use http::StatusCode;
use model::Scope;
use serde_json::Value;
use ui::form::Refused;
use ui::pages::{self, Dispatch, ScanPage};
use ui::{chart, graph, links};
use uuid::Uuid;
use warp::reply::Response;
use wire::{DispatchRequest, Input, Page, Project, Runner, ScanStatus};

use super::charts;
use super::frame::Frame;
use super::html::see_other;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::scans::{self, FilePage};
use crate::handlers::{dispatch, jobs, projects, runners, why, workflows};
use crate::idempotency::Attempt;
use crate::limits::{DEFAULT_PAGE, PAGE};
use crate::page::Window;

const SLOTS: usize = 10;

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (user, workflow, scan) = (frame.user, frame.parameter(0), frame.parameter(1));
    let found = why::find(user, workflow, scan)?;
    let why = why::why(user, &found, None, DEFAULT_PAGE).await?;
    if let Some(heir) = &why.renamed_to {
        return Ok(see_other(&links::scan(workflow, heir)));
    }
    let status = scans::show(user, workflow, scan).await?;
    let history = charts::history_page(frame, workflow, scan, PAGE).await?;
    let page = FilePage::of(&frame.request.query, PAGE)?;
    let ledger = scans::ledger(user, &found.map(|(_, key)| key.clone()), &page).await?;
    let slots = scans::schedule(user, Some(workflow), Some(scan), SLOTS)?;
    let bars = charts::bars(frame, &history.items);
    let page = ScanPage {
        status: &status,
        why: &why,
        history: &history,
        ledger: &ledger,
        slots: &slots.items,
        bars: match bars.is_empty() {
            true => maud::Markup::default(),
            false => chart::outcomes(&bars, charts::clock(frame)),
        },
        has_neighbours: has_neighbours(frame)?,
    };
    Ok(frame.page(pages::scan(&frame.visit, &page)))
}

fn has_neighbours(frame: &Frame<'_>) -> Result<bool, Failure> {
    let workflow = workflows::show(frame.user, frame.parameter(0))?;
    let edges = graph::edges(&workflow.scans);
    Ok(graph::has_neighbours(frame.parameter(1), &edges))
}

pub(super) async fn dispatch_form(frame: &Frame<'_>) -> Result<Response, Failure> {
    let status = status_for_dispatch(frame).await?;
    let earlier = earlier(frame, &status).await?;
    let (runners, project) = (runners(frame, &status), project(frame, &status)?);
    let page = Dispatch {
        scan: &status,
        earlier: earlier.as_ref().map(|(id, inputs)| (*id, inputs)),
        runners: runners.as_ref(),
        project: project.as_ref(),
        refused: &Refused::default(),
    };
    Ok(frame.page(pages::dispatch(&frame.visit, &page)))
}

/// The scan with its inputs. A token that may only start jobs does not see the inputs.
async fn status_for_dispatch(frame: &Frame<'_>) -> Result<ScanStatus, Failure> {
    frame.need(Scope::WorkflowRead)?;
    scans::show(frame.user, frame.parameter(0), frame.parameter(1)).await
}

async fn earlier(
    frame: &Frame<'_>,
    status: &ScanStatus,
) -> Result<Option<(Uuid, BTreeMap<String, Input>)>, Failure> {
    let named = frame.query("job");
    if named.is_empty() {
        return Ok(None);
    }
    frame.need(Scope::JobRead)?;
    let job = frame.user.job_named(named).await?;
    let job = jobs::wire_job(frame.user, &job).await?;
    if job.workflow.id != status.workflow.id || job.scan != status.scan.name {
        return Err(Failure::invalid("job", "must be a job of this scan"));
    }
    Ok(Some((job.id, job.inputs)))
}

pub(super) async fn dispatch(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let status = status_for_dispatch(frame).await?;
    let declared = status.scan.inputs.as_deref().unwrap_or_default();
    let mut inputs = BTreeMap::new();
    let mut fields = Vec::new();
    for input in declared {
        let field = format!("inputs.{}", input.key);
        // An empty number field means the default.
        let is_left_out =
            |value: &&str| value.is_empty() && input.kind == "number" && !input.required;
        if let Some(value) = typed.get(&field).filter(|value| !is_left_out(value)) {
            let is_switch = input.kind == "bool" && matches!(value, "true" | "false");
            let value = match is_switch {
                true => Value::Bool(value == "true"),
                false => Value::String(value.to_owned()),
            };
            inputs.insert(input.key.clone(), value);
        }
        fields.push(field);
    }
    // A field that the scan no longer declares is refused, and not silently ignored.
    for name in typed.names() {
        let Some(key) = name.strip_prefix("inputs.") else {
            continue;
        };
        if !fields.iter().any(|field| field == name) {
            inputs.insert(key.to_owned(), Value::from(typed.text(name)));
        }
    }
    let (workflow, scan) = (frame.parameter(0), frame.parameter(1));
    let asked = DispatchRequest { inputs };
    let attempt = Attempt::of_form(typed.key(), &asked)?;
    let id = frame
        .user
        .find(|seen| Ok(workflows::find(seen, workflow)?.id))?;
    match dispatch::start(frame.user, &id, scan, &asked, &attempt).await {
        Ok(job) if frame.may(Scope::JobRead) => Ok(see_other(&links::job(job.id.uuid()))),
        Ok(_) => Ok(see_other(&links::scan(workflow, scan))),
        Err(failure) => {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            let (code, refused) = frame.refused(failure, typed, &fields)?;
            again(frame, code, &status, &refused)
        }
    }
}

fn again(
    frame: &Frame<'_>,
    code: StatusCode,
    scan: &ScanStatus,
    refused: &Refused,
) -> Result<Response, Failure> {
    let (runners, project) = (runners(frame, scan), project(frame, scan)?);
    let page = Dispatch {
        scan,
        earlier: None,
        runners: runners.as_ref(),
        project: project.as_ref(),
        refused,
    };
    let page = pages::dispatch(&frame.visit, &page);
    Ok(frame.html(code, page))
}

fn project(frame: &Frame<'_>, scan: &ScanStatus) -> Result<Option<Project>, Failure> {
    if !frame.may(Scope::ProjectRead) {
        return Ok(None);
    }
    projects::show(frame.user, &scan.workflow.source).map(Some)
}

/// The runners that take jobs of the scan's project.
fn runners(frame: &Frame<'_>, scan: &ScanStatus) -> Option<Page<Runner>> {
    let serves = |runner: &Runner| {
        let projects = runner.projects.as_ref();
        projects.is_none_or(|projects| projects.contains(&scan.workflow.source))
    };
    let mut page = frame
        .may(Scope::RunnerRead)
        .then(|| runners::list(frame.user, &Window::first(PAGE)))?;
    page.items.retain(serves);
    Some(page)
}
