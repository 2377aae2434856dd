//! `/v0/scans`, `/v0/schedule`, and the history of one scan below `/v0/workflows/{workflow}/scans/{scan}`.

use model::retention::Position;
use model::{
    ActiveWorkflow, Job, JobId, ScanKey, Scope, Seen, Upcoming, WorkflowStatus, propose, upcoming,
};
use wire::{Page, ScanStatus};
use workflow::{Scan, ScanName};

use super::workflows;
use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::request::Query;
use crate::visible::{Shown, Visible};

/// Finished jobs from which expectations are proposed.
const PROPOSED_FROM: usize = 50;

/// The status of a scan, and its newest job if that job's record is on disk.
struct Found {
    status: ScanStatus,
    settled: Option<JobId>,
}

/// The scans of all active workflows, or of one, by source, workflow and name.
pub(crate) async fn list(
    user: &Visible,
    workflow: Option<&str>,
    window: &Window,
) -> Result<Page<ScanStatus>, Failure> {
    let workflows = user.find(|seen| active(seen, workflow))?;
    // Sort before the world is read: sorting thousands of names would lock the world for too long.
    let scans = workflows.iter().flat_map(|workflow| {
        let scans = workflow.revision.definition.scans();
        scans.map(move |scan| (workflow, scan))
    });
    let page = window.cut(
        scans,
        |(workflow, scan)| format!("{}:{}", workflows::full_name(&workflow.record), scan.name),
        |found| *found,
    );
    let found = user.find(|seen| {
        let scans = page.items.iter();
        Ok(scans
            .map(|(workflow, scan)| stands(seen, workflow, scan))
            .collect::<Vec<_>>())
    })?;
    let settled = found.map(|scans| scans.iter().map(|scan| scan.settled).collect());
    let last_jobs = user.finished_jobs(&settled).await?;
    let items = found.iter().zip(last_jobs);
    let items = items.map(|(scan, settled)| scan.with(settled));
    Ok(Page {
        items: items.collect(),
        next_cursor: page.next_cursor,
        damaged: Vec::new(),
    })
}

pub(crate) async fn show(
    user: &Visible,
    workflow: &str,
    name: &str,
) -> Result<ScanStatus, Failure> {
    let found = user.find(|seen| {
        let workflow = workflows::find_readable(seen, workflow)?;
        match workflow.revision.definition.scan(name) {
            Some(scan) => Ok(stands(seen, &workflow, scan)),
            None => Err(Failure::not_found("scan", name)
                .names(Scope::WorkflowRead, workflows::scans_of(&workflow))),
        }
    })?;
    let last_job = user
        .finished_jobs(&found.map(|scan| vec![scan.settled]))
        .await?;
    let last_job = last_job.into_iter().next().flatten();
    let mut status = found.with(last_job);
    if user.rights().scopes.allow(Scope::JobRead) {
        let past = user
            .history(&super::why::key(user, workflow, name)?, None, PROPOSED_FROM)
            .await?;
        let proposed = propose(&past.lines);
        status.proposed = proposed.as_ref().map(convert::scans::expectations);
    }
    Ok(status)
}

fn stands(seen: Seen<'_>, workflow: &ActiveWorkflow, scan: &Scan) -> Found {
    let status = convert::scans::status(seen, workflow, scan);
    let head = seen.head(&key(workflow, &scan.name));
    let unfinished = status.last_job.as_ref().map(|line| line.id);
    let is_newest = |latest: &JobId| unfinished.is_none_or(|id| id < latest.uuid());
    Found {
        settled: head.map(|head| head.latest_job).filter(is_newest),
        status,
    }
}

impl Found {
    fn with(&self, settled: Option<Job>) -> ScanStatus {
        let mut status = self.status.clone();
        if let Some(job) = settled {
            status.last_job = Some(convert::scans::job_line(&job));
        }
        status
    }
}

pub(crate) struct FilePage {
    before: Option<Position>,
    limit: usize,
}

impl FilePage {
    pub(crate) const fn first(limit: usize) -> Self {
        let before = None;
        Self { before, limit }
    }

    pub(crate) fn of(query: &Query, most: usize) -> Result<Self, Failure> {
        let limit = query.limit_of(most)?;
        let Some(text) = query.get("cursor") else {
            return Ok(Self::first(limit));
        };
        let before = text.split_once('-').and_then(|(page, at)| {
            let (page, at) = (page.parse().ok()?, at.parse().ok()?);
            Some(Position { page, at })
        });
        match before {
            Some(_) => Ok(Self { before, limit }),
            None => Err(Failure::invalid("cursor", "is not from this list")),
        }
    }
}

fn cursor(place: Position) -> String {
    format!("{}-{}", place.page, place.at)
}

/// The lines of a scan's finished jobs, by the time of their end, newest first.
pub(crate) async fn history(
    user: &Visible,
    scan: &Shown<ScanKey>,
    page: &FilePage,
) -> Result<Page<wire::JobLine>, Failure> {
    let _turn = user.list_turn().await;
    let page = user.history(scan, page.before, page.limit).await?;
    Ok(Page {
        items: page
            .lines
            .into_iter()
            .map(convert::scans::history_line)
            .collect(),
        next_cursor: page.next.map(cursor),
        damaged: convert::damaged(page.damaged),
    })
}

/// The records of a scan's ledger, newest first.
pub(crate) async fn ledger(
    user: &Visible,
    scan: &Shown<ScanKey>,
    page: &FilePage,
) -> Result<Page<wire::LedgerRecord>, Failure> {
    let page = user.ledger(scan, page.before, page.limit).await?;
    Ok(Page {
        items: page.records.into_iter().map(convert::why::record).collect(),
        next_cursor: page.next.map(cursor),
        damaged: convert::damaged(page.damaged),
    })
}

/// The next slots of all schedules, of a workflow, or of scans with one name. The list never ends, so it has no cursor.
pub(crate) fn schedule(
    user: &Visible,
    workflow: Option<&str>,
    scan: Option<&str>,
    limit: usize,
) -> Result<Page<wire::Slot>, Failure> {
    let first = user.find(|seen| {
        if workflow.is_none() && scan.is_none() {
            // The first `limit` slots belong to the `limit` schedules that are due next.
            Ok(seen.next_slots().take(limit).collect())
        } else {
            next_slots_of(seen, workflow, scan)
        }
    })?;
    let slots = upcoming(first.to_vec(), user.now(), limit);
    let items = slots.iter().filter_map(convert::scans::slot).collect();
    Ok(Page::<wire::Slot>::all(items))
}

/// The next slots of all schedules. Each schedule gets its share of `limit`, and at least two, so that a schedule that is
/// often due does not hide the others.
pub(crate) fn next_slots(user: &Visible, limit: usize) -> Result<Vec<wire::Slot>, Failure> {
    // The first `limit` slots belong to the `limit` schedules that are due next.
    let first: Shown<Vec<Upcoming>> =
        user.find(|seen| Ok(seen.next_slots().take(limit).collect()))?;
    let each = limit.div_ceil(first.len().max(1)).max(2);
    let slots = first.iter().cloned();
    let mut slots: Vec<Upcoming> = slots
        .flat_map(|first| upcoming(vec![first], user.now(), each))
        .collect();
    slots.sort_by_key(|slot| slot.at);
    slots.truncate(limit);
    Ok(slots.iter().filter_map(convert::scans::slot).collect())
}

/// The next slot of each schedule of a workflow, or of the scans of one name.
fn next_slots_of(
    seen: Seen<'_>,
    workflow: Option<&str>,
    name: Option<&str>,
) -> Result<Vec<Upcoming>, Failure> {
    let (mut slots, mut is_known) = (Vec::new(), name.is_none());
    for workflow in active(seen, workflow)? {
        let scans = workflow.revision.definition.scans();
        for scan in scans.filter(|scan| name.is_none_or(|name| scan.name.as_str() == name)) {
            is_known = true;
            let key = key(&workflow, &scan.name);
            if seen.suspension(&key).is_some() {
                continue;
            }
            if let Some(at) = seen.next_slot_of(&key) {
                slots.push(Upcoming {
                    at,
                    workflow: workflow.clone(),
                    scan: scan.name.clone(),
                });
            }
        }
    }
    match name {
        Some(name) if !is_known => {
            Err(Failure::not_found("scan", name).hint("`everscan scan list` shows the scans"))
        }
        Some(_) | None => Ok(slots),
    }
}

fn active(seen: Seen<'_>, named: Option<&str>) -> Result<Vec<ActiveWorkflow>, Failure> {
    if let Some(named) = named {
        let workflow = workflows::find_readable(seen, named)?;
        return Ok(vec![workflow]);
    }
    let is_active = |it: &ActiveWorkflow| it.record.status == WorkflowStatus::Active;
    Ok(seen.workflows().filter(is_active).collect())
}

fn key(workflow: &ActiveWorkflow, scan: &ScanName) -> ScanKey {
    ScanKey {
        workflow: workflow.record.id,
        scan: scan.clone(),
    }
}
