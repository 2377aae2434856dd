//! The workflows, one workflow, and its revisions.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use maud::Markup;
use model::{JobState, Scope};
use ui::chart::{Bar, Lane};
use ui::links;
use ui::pages::{self, RevisionPage, WorkflowPage, WorkflowRow};
use uuid::Uuid;
use warp::reply::Response;
use wire::{JobLine, ScanStatus, Workflow};

use super::charts;
use super::frame::Frame;
use super::jobs::is_of_the_workflow;
use crate::failure::Failure;
use crate::handlers::{revisions, scans, workflows};

/// Revisions on the page of a workflow.
const NEWEST: &str = "10";
/// Scans on the page of a workflow: a page of `/v0`.
const SCANS: &str = "200";

pub(super) async fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let query = [("limit", SCANS), ("cursor", frame.query("cursor"))];
    let found = workflows::load_list(frame.me, &frame.request.asking(&[], &query))?;
    let (running, next) = (running(frame), next_slots(frame));
    let mut rows = Vec::with_capacity(found.items.len());
    let mut left = charts::MOST_HISTORIES;
    for workflow in &found.items {
        rows.push(WorkflowRow {
            running: running.get(&workflow.id).copied().unwrap_or(0),
            next: next.get(&workflow.id).copied(),
            history: history(frame, workflow, &mut left).await?,
            workflow,
        });
    }
    Ok(frame.page(pages::workflows(&frame.visit, &rows)))
}

/// How many jobs of each workflow are running.
fn running(frame: &Frame<'_>) -> HashMap<Uuid, u64> {
    let mut running = HashMap::new();
    if frame.may(Scope::JobRead) {
        frame.me.read(|seen| {
            for job in seen.jobs() {
                if matches!(job.state, JobState::Running { .. }) {
                    *running.entry(job.workflow.id.uuid()).or_default() += 1;
                }
            }
        });
    }
    running
}

/// The next slot of each workflow.
fn next_slots(frame: &Frame<'_>) -> HashMap<Uuid, DateTime<Utc>> {
    frame.me.read(|seen| {
        let mut next = HashMap::new();
        for slot in seen.next_slots() {
            let id = slot.workflow.record.id.uuid();
            next.entry(id).or_insert(slot.at);
        }
        next
    })
}

/// The bars of the last jobs of all scans of a workflow.
async fn history(
    frame: &Frame<'_>,
    workflow: &Workflow,
    left: &mut usize,
) -> Result<Markup, Failure> {
    let name = format!("{}/{}", workflow.source, workflow.name);
    let mut lines: Vec<JobLine> = Vec::new();
    for scan in &workflow.scans {
        let Some(fewer) = left.checked_sub(1) else {
            break;
        };
        *left = fewer;
        match charts::history(frame, &name, &scan.name, charts::ROW_BARS).await {
            Ok(found) => lines.extend(found),
            // It was changed while the page was made.
            Err(failure) if is_of_the_workflow(&failure) => {}
            Err(failure) => return Err(failure),
        }
    }
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(line.created_at));
    Ok(charts::mini_bars(&charts::bars(frame, &lines)))
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let workflow = workflows::load(frame.me, frame.parameter(0))?;
    let name = format!("{}/{}", workflow.source, workflow.name);
    let query = [("workflow", name.as_str()), ("limit", SCANS)];
    let scans = match scans::load_list(frame.me, &frame.request.asking(&[], &query)).await {
        Ok(scans) => scans.items,
        // The page says why it cannot be read.
        Err(failure) if is_of_the_workflow(&failure) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let newest = frame.request.asking(&[&name], &[("limit", NEWEST)]);
    let revisions = revisions::load_list(frame.me, &newest).await?;
    let mut bars = Vec::with_capacity(scans.len());
    for (place, scan) in scans.iter().enumerate() {
        let most = match place < charts::MOST_HISTORIES {
            true => charts::LANE_BARS,
            false => 0,
        };
        bars.push(bars_of(frame, &name, scan, most).await?);
    }
    let page = WorkflowPage {
        workflow: &workflow,
        scans: &scans,
        revisions: &revisions.items,
        graph: charts::graph(frame, &name, &scans, &bars),
        lanes: lanes(frame, &name, &scans, &bars),
        histories: bars.iter().map(|bars| charts::mini_bars(bars)).collect(),
    };
    Ok(frame.page(pages::workflow(&frame.visit, &page)))
}

/// The jobs of a scan, oldest first, with the newest one that is not over.
async fn bars_of(
    frame: &Frame<'_>,
    workflow: &str,
    status: &ScanStatus,
    most: usize,
) -> Result<Vec<Bar>, Failure> {
    if most == 0 || !frame.may(Scope::JobRead) {
        return Ok(Vec::new());
    }
    let lines = match charts::history(frame, workflow, &status.scan.name, most).await {
        Ok(lines) => lines,
        Err(failure) if is_of_the_workflow(&failure) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let mut bars = charts::bars(frame, &lines);
    let newest = status.last_job.as_ref();
    bars.extend(
        newest
            .filter(|job| job.finished_at.is_none())
            .map(|job| Bar::of_line(job, frame.visit.now)),
    );
    Ok(bars)
}

fn lanes(frame: &Frame<'_>, workflow: &str, scans: &[ScanStatus], bars: &[Vec<Bar>]) -> Markup {
    let lanes = scans.iter().zip(bars).map(|(status, bars)| Lane {
        name: status.scan.name.clone(),
        href: links::scan(workflow, &status.scan.name),
        bars: bars.clone(),
        empty_slots: Vec::new(),
    });
    charts::lanes(frame, &lanes.collect::<Vec<_>>())
}

pub(super) async fn revisions(frame: &Frame<'_>) -> Result<Response, Failure> {
    let name = name(frame)?;
    let query = [("cursor", frame.query("cursor"))];
    let found = revisions::load_list(frame.me, &frame.request.asking(&[&name], &query)).await?;
    Ok(frame.page(pages::revisions(&frame.visit, &name, &found)))
}

pub(super) async fn revision(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (name, number) = (name(frame)?, frame.parameter(1));
    let asked = frame.request.asking(&[&name, number], &[]);
    let revision = revisions::load_show(frame.me, &asked).await?;
    let diff = match frame.query("against") {
        "" => None,
        against => {
            let asked = frame.request.asking(&[&name, number], &[("from", against)]);
            Some(revisions::load_diff(frame.me, &asked).await?)
        }
    };
    let page = RevisionPage {
        workflow: &name,
        revision: &revision,
        diff: diff.as_ref(),
    };
    Ok(frame.page(pages::revision(&frame.visit, &page)))
}

/// The whole name of the workflow in the path, which may be given by a part of it or by its id.
fn name(frame: &Frame<'_>) -> Result<String, Failure> {
    frame.me.read(|seen| {
        let record = workflows::find(seen, frame.parameter(0))?;
        Ok(workflows::full_name(record))
    })
}
