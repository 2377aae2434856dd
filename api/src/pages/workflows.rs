//! The workflows, one workflow, and its revisions.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use maud::Markup;
use model::{JobState, Scope};
use ui::chart::{self, Bar, Cause, Lane};
use ui::links;
use ui::pages::{self, Lanes, RevisionPage, ScanPast, WorkflowPage, WorkflowRow};
use uuid::Uuid;
use warp::reply::Response;
use wire::{JobLine, LedgerRecord, ScanStatus, Workflow};

use super::charts;
use super::frame::Frame;
use super::jobs::is_of_the_workflow;
use super::overview::sources;
use crate::failure::Failure;
use crate::handlers::revisions::{self, RevisionsQuery};
use crate::handlers::{scans, workflows};
use crate::limits::PAGE;
use crate::page::Window;

const NEWEST: usize = 10;

pub(super) async fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let query = &frame.request.query;
    let mut window = frame.window()?;
    window.limit = PAGE;
    let found = workflows::list(frame.user, workflows::with_retired(query)?, &window);
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
    let (state, sources) = (frame.query("state"), sources(frame).items);
    let next = found.next_cursor.as_deref();
    Ok(frame.page(pages::workflows(&frame.visit, &rows, state, &sources, next)))
}

fn running(frame: &Frame<'_>) -> HashMap<Uuid, u64> {
    let mut running = HashMap::new();
    if frame.may(Scope::JobRead) {
        frame.user.read(|seen| {
            for job in seen.jobs() {
                if matches!(job.state, JobState::Running { .. }) {
                    *running.entry(job.workflow.id.uuid()).or_default() += 1;
                }
            }
        });
    }
    running
}

fn next_slots(frame: &Frame<'_>) -> HashMap<Uuid, DateTime<Utc>> {
    frame.user.read(|seen| {
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
            // The workflow was changed while the page was made.
            Err(failure) if is_of_the_workflow(&failure) => {}
            Err(failure) => return Err(failure),
        }
    }
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(line.created_at));
    Ok(charts::mini_bars(&charts::bars(frame, &lines)))
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let workflow = workflows::show(frame.user, frame.parameter(0))?;
    let name = format!("{}/{}", workflow.source, workflow.name);
    let scans = match scans::list(frame.user, Some(&name), &Window::first(PAGE)).await {
        Ok(scans) => scans.items,
        // The page shows why the revision cannot be read.
        Err(failure) if is_of_the_workflow(&failure) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let revisions = revisions::all(frame.user, &name).await?;
    let revisions = revisions::list(frame.user, revisions, &RevisionsQuery::first(NEWEST)).await?;
    let is_week = frame.query("lanes") == "week";
    let most = charts::lane_jobs(scans.len());
    let mut pasts = Vec::with_capacity(scans.len());
    for (place, scan) in scans.iter().enumerate() {
        pasts.push(match place < charts::MOST_HISTORIES {
            true => Past::load(frame, &name, scan, most).await?,
            false => Past::default(),
        });
    }
    let bars: Vec<Vec<Bar>> = pasts.iter().map(|past| past.bars.clone()).collect();
    let row = |bars: &Vec<Bar>| ScanPast {
        bars: charts::mini_bars(bars),
        usual: chart::usual_seconds(bars).and_then(TimeDelta::try_seconds),
    };
    let feed = scans.iter().zip(&pasts);
    let feed: Vec<pages::Past<'_>> = feed
        .map(|(status, past)| pages::Past {
            scan: &status.scan.name,
            ledger: &past.ledger,
            jobs: &past.jobs,
        })
        .collect();
    let has_run = bars.iter().any(|bars| !bars.is_empty());
    // A focus on a removed scan has no effect.
    let focus = frame.query("focus");
    let focus = scans
        .iter()
        .map(|status| status.scan.name.as_str())
        .find(|name| *name == focus);
    let page = WorkflowPage {
        workflow: &workflow,
        scans: &scans,
        revisions: &revisions.items,
        graph: charts::graph(frame, &name, &scans, &bars, focus),
        focus,
        lanes: has_run.then(|| Lanes {
            chart: lanes(frame, &name, &scans, &pasts, is_week),
            is_week,
            cut: cut(frame, &pasts, most, is_week),
        }),
        pasts: bars.iter().map(row).collect(),
        feed: &feed,
    };
    Ok(frame.page(pages::workflow(&frame.visit, &page)))
}

#[derive(Default)]
struct Past {
    jobs: Vec<JobLine>,
    /// Oldest first, with the newest job if it is unfinished.
    bars: Vec<Bar>,
    ledger: Vec<LedgerRecord>,
}

impl Past {
    async fn load(
        frame: &Frame<'_>,
        workflow: &str,
        status: &ScanStatus,
        most: usize,
    ) -> Result<Self, Failure> {
        let scan = &status.scan.name;
        // The scan may have been removed meanwhile.
        let or_none = |failure| match is_of_the_workflow(&failure) {
            true => Ok(()),
            false => Err(failure),
        };
        let jobs = match charts::history(frame, workflow, scan, most).await {
            Ok(jobs) => jobs,
            Err(failure) => or_none(failure).map(|()| Vec::new())?,
        };
        let ledger = match charts::ledger(frame, workflow, scan).await {
            Ok(ledger) => ledger,
            Err(failure) => or_none(failure).map(|()| Vec::new())?,
        };
        let mut bars = charts::bars(frame, &jobs);
        let newest = status
            .last_job
            .as_ref()
            .filter(|_| frame.may(Scope::JobRead));
        bars.extend(
            newest
                .filter(|job| job.finished_at.is_none())
                .map(|job| Bar::of_line(job, frame.visit.now)),
        );
        Ok(Self { jobs, bars, ledger })
    }
}

fn length(is_week: bool) -> TimeDelta {
    match is_week {
        true => charts::week(),
        false => charts::day(),
    }
}

/// The number of jobs of each scan in the lanes, if the lanes may omit jobs.
fn cut(frame: &Frame<'_>, pasts: &[Past], most: usize, is_week: bool) -> Option<u64> {
    let from = frame.visit.now - length(is_week);
    let is_cut = |past: &Past| {
        let oldest = past.jobs.last().and_then(|job| job.finished_at);
        past.jobs.len() >= most && oldest.is_some_and(|oldest| oldest > from)
    };
    pasts.iter().any(is_cut).then_some(most as u64)
}

fn lanes(
    frame: &Frame<'_>,
    workflow: &str,
    scans: &[ScanStatus],
    pasts: &[Past],
    is_week: bool,
) -> Markup {
    let lanes = scans.iter().zip(pasts).map(|(status, past)| Lane {
        name: status.scan.name.clone(),
        href: links::scan(workflow, &status.scan.name),
        bars: past.bars.clone(),
        empty_slots: charts::empty_slots(&past.ledger),
    });
    let causes: Vec<Cause> = pasts
        .iter()
        .flat_map(|past| chart::causes(&past.ledger))
        .collect();
    charts::lanes(frame, &lanes.collect::<Vec<_>>(), &causes, length(is_week))
}

pub(super) async fn revisions(frame: &Frame<'_>) -> Result<Response, Failure> {
    let name = name(frame)?;
    let all = revisions::all(frame.user, &name).await?;
    let query = RevisionsQuery::of(&frame.request.query)?;
    let found = revisions::list(frame.user, all, &query).await?;
    Ok(frame.page(pages::revisions(&frame.visit, &name, &found)))
}

pub(super) async fn revision(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (name, number) = (name(frame)?, frame.parameter(1));
    let revision = revisions::show(frame.user, &name, number).await?;
    let diff = match frame.query("against") {
        "" => None,
        against => Some(revisions::diff(frame.user, &name, number, Some(against)).await?),
    };
    let page = RevisionPage {
        workflow: &name,
        revision: &revision,
        diff: diff.as_ref(),
    };
    Ok(frame.page(pages::revision(&frame.visit, &page)))
}

fn name(frame: &Frame<'_>) -> Result<String, Failure> {
    frame.user.read(|seen| {
        let record = workflows::find(seen, frame.parameter(0))?;
        Ok(workflows::full_name(record))
    })
}

#[cfg(test)]
mod tests {
    use workflow::TemplatePolicy;

    #[test]
    fn the_example_of_a_first_workflow_is_valid() {
        let parsed = workflow::parse("hello.yaml", ui::pages::EXAMPLE, TemplatePolicy::Warn);
        assert_eq!(parsed.expect("a valid file").warnings, []);
    }
}
