//! One scan, and the form that starts a job of it.

use std::collections::BTreeMap;

use http::StatusCode;
use model::Scope;
use serde_json::{Map, Value, json};
use ui::form::Refused;
use ui::pages::{self, Dispatch, ScanPage};
use ui::{chart, graph, links};
use uuid::Uuid;
use warp::reply::Response;
use wire::{Input, Page, Project, Runner, ScanStatus};

use super::charts;
use super::frame::{Frame, html, see_other};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{dispatch, jobs, projects, runners, scans, why, workflows};

/// Jobs in the chart of a scan.
const JOBS: &str = "200";
const SLOTS: &str = "10";
/// Runners that are looked at for who would take a job.
const RUNNERS: &str = "200";

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let path = [frame.parameter(0), frame.parameter(1)];
    let why = why::load_why(frame.me, &frame.request.asking(&path, &[])).await?;
    if let Some(heir) = &why.renamed_to {
        return Ok(see_other(&links::scan(path[0], heir)));
    }
    let status = status(frame).await?;
    let history = match frame.may(Scope::JobRead) {
        true => {
            let request = frame.request.asking(&path, &[("limit", JOBS)]);
            scans::load_history(frame.me, &request).await?
        }
        false => Page::all(Vec::new()),
    };
    let query = [("cursor", frame.query("cursor"))];
    let ledger = scans::load_ledger(frame.me, &frame.request.asking(&path, &query)).await?;
    let query = [("workflow", path[0]), ("scan", path[1]), ("limit", SLOTS)];
    let slots = scans::load_schedule(frame.me, &frame.request.asking(&[], &query))?;
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
    let workflow = workflows::load(frame.me, frame.parameter(0))?;
    let edges = graph::edges(&workflow.scans);
    Ok(graph::has_neighbours(frame.parameter(1), &edges))
}

async fn status(frame: &Frame<'_>) -> Result<ScanStatus, Failure> {
    let path = [frame.parameter(0), frame.parameter(1)];
    scans::load_show(frame.me, &frame.request.asking(&path, &[])).await
}

pub(super) async fn dispatch_form(frame: &Frame<'_>) -> Result<Response, Failure> {
    let status = status_for_dispatch(frame).await?;
    let earlier = earlier(frame, &status).await?;
    let (runners, project) = (runners(frame)?, project(frame, &status)?);
    let page = Dispatch {
        scan: &status,
        earlier: earlier.as_ref().map(|(id, inputs)| (*id, inputs)),
        runners: runners.as_ref(),
        project: project.as_ref(),
        refused: &Refused::default(),
    };
    Ok(frame.page(pages::dispatch(&frame.visit, &page)))
}

/// The scan with its inputs, which a token that may only start jobs does not see.
async fn status_for_dispatch(frame: &Frame<'_>) -> Result<ScanStatus, Failure> {
    frame.need(Scope::WorkflowRead)?;
    status(frame).await
}

/// The inputs of the job that is to run again.
async fn earlier(
    frame: &Frame<'_>,
    status: &ScanStatus,
) -> Result<Option<(Uuid, BTreeMap<String, Input>)>, Failure> {
    let named = frame.query("job");
    if named.is_empty() {
        return Ok(None);
    }
    frame.need(Scope::JobRead)?;
    let job = frame.me.job_named(named).await?;
    let job = jobs::wire_job(frame.me, &job).await?;
    if job.workflow.id != status.workflow.id || job.scan != status.scan.name {
        return Err(Failure::invalid("job", "must be a job of this scan"));
    }
    Ok(Some((job.id, job.inputs)))
}

pub(super) async fn dispatch(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let status = status_for_dispatch(frame).await?;
    let declared = status.scan.inputs.as_deref().unwrap_or_default();
    let mut inputs = Map::new();
    let mut fields = Vec::new();
    for input in declared {
        let field = format!("inputs.{}", input.key);
        // A number that is left empty is the default.
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
    // What the scan does not declare any more is refused, and not left out in silence.
    for name in typed.names() {
        let Some(key) = name.strip_prefix("inputs.") else {
            continue;
        };
        if !fields.iter().any(|field| field == name) {
            inputs.insert(key.to_owned(), json!(typed.text(name)));
        }
    }
    let path = [frame.parameter(0), frame.parameter(1)];
    let body = json!({ "inputs": inputs });
    let request = frame.request.telling(&path, &body, typed.key())?;
    match dispatch::start(frame.me, request).await {
        Ok(job) if frame.may(Scope::JobRead) => Ok(see_other(&links::job(job.id.uuid()))),
        Ok(_) => Ok(see_other(&links::scan(path[0], path[1]))),
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
    let (runners, project) = (runners(frame)?, project(frame, scan)?);
    let page = Dispatch {
        scan,
        earlier: None,
        runners: runners.as_ref(),
        project: project.as_ref(),
        refused,
    };
    let page = pages::dispatch(&frame.visit, &page);
    Ok(html(code, page.into_string()))
}

/// The project of the scan, for those who may see it.
fn project(frame: &Frame<'_>, scan: &ScanStatus) -> Result<Option<Project>, Failure> {
    if !frame.may(Scope::ProjectRead) {
        return Ok(None);
    }
    let request = frame.request.asking(&[&scan.workflow.source], &[]);
    projects::load_show(frame.me, &request).map(Some)
}

/// The runners that may take the job, for those who may see them.
fn runners(frame: &Frame<'_>) -> Result<Option<Page<Runner>>, Failure> {
    if !frame.may(Scope::RunnerRead) {
        return Ok(None);
    }
    let request = frame.request.asking(&[], &[("limit", RUNNERS)]);
    runners::load_list(frame.me, &request).map(Some)
}
