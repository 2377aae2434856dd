//! Charts of jobs, from the lists of jobs and the histories.

use chrono::{DateTime, Offset, TimeDelta, Utc};
use maud::{Markup, html};
use model::Scope;
use ui::chart::{self, Bar, Cause, Clock, Lane, Window};
use ui::graph::{self, Node};
use ui::links;
use ui::words::{ago_text, between};
use wire::{
    Job, JobLine, JobState, LedgerCause, LedgerOutcome, LedgerRecord, Page, Scan, ScanStatus,
    Trigger,
};

use super::frame::Frame;
use crate::failure::Failure;
use crate::handlers::scans::{self, FilePage};
use crate::handlers::why;
use crate::limits::{HISTORY_PAGE, PAGE};

pub(super) const ROW_BARS: usize = 20;
/// Jobs from which the usual time of a scan is calculated.
pub(super) const USUAL_OF: usize = 50;
/// Scans whose histories are read for one page. Each is a read of a file, and nobody compares more.
pub(super) const MOST_HISTORIES: usize = 100;
/// Jobs in the lanes of a workflow: bars for 500 jobs of each scan, and counts for some older jobs.
const LANE_JOBS: usize = 20_000;
/// The number of jobs of each scan in lanes. With many scans it is smaller, so that the page stays quick.
pub(super) fn lane_jobs(scans: usize) -> usize {
    (LANE_JOBS / scans.max(1)).clamp(100, HISTORY_PAGE)
}

pub(super) fn day() -> TimeDelta {
    TimeDelta::hours(24)
}

pub(super) fn week() -> TimeDelta {
    TimeDelta::days(7)
}

pub(super) fn clock(frame: &Frame<'_>) -> Clock {
    Clock {
        now: frame.visit.now,
        // The daemon does not know its readers' time zones.
        offset: Utc.fix(),
    }
}

/// The finished jobs of a scan, newest first. Empty for a reader who may not see jobs.
pub(super) async fn history(
    frame: &Frame<'_>,
    workflow: &str,
    scan: &str,
    limit: usize,
) -> Result<Vec<JobLine>, Failure> {
    Ok(history_page(frame, workflow, scan, limit).await?.items)
}

/// The same, with the damaged lines.
pub(super) async fn history_page(
    frame: &Frame<'_>,
    workflow: &str,
    scan: &str,
    limit: usize,
) -> Result<Page<JobLine>, Failure> {
    if !frame.may(Scope::JobRead) {
        return Ok(Page::all(Vec::new()));
    }
    let scan = why::key(frame.user, workflow, scan)?;
    scans::history(frame.user, &scan, &FilePage::first(limit)).await
}

pub(super) async fn ledger(
    frame: &Frame<'_>,
    workflow: &str,
    scan: &str,
) -> Result<Vec<LedgerRecord>, Failure> {
    let scan = why::key(frame.user, workflow, scan)?;
    let page = FilePage::first(PAGE);
    Ok(scans::ledger(frame.user, &scan, &page).await?.items)
}

/// Slots of a schedule that made no job.
pub(super) fn empty_slots(ledger: &[LedgerRecord]) -> Vec<DateTime<Utc>> {
    let slots = ledger
        .iter()
        .filter_map(|record| match (&record.cause, &record.outcome) {
            (LedgerCause::Slots { last, .. }, LedgerOutcome::NotMade { .. }) => Some(*last),
            _ => None,
        });
    slots.collect()
}

pub(super) fn bars(frame: &Frame<'_>, lines: &[JobLine]) -> Vec<Bar> {
    let lines = lines.iter().rev();
    lines
        .map(|line| Bar::of_line(line, frame.visit.now))
        .collect()
}

/// Small bars of the newest jobs; empty without jobs.
pub(super) fn mini_bars(bars: &[Bar]) -> Markup {
    if bars.is_empty() {
        return html! {};
    }
    let newest = bars.get(bars.len().saturating_sub(ROW_BARS)..);
    chart::mini_bars(newest.unwrap_or_default())
}

pub(super) fn progress(frame: &Frame<'_>, job: &Job, bars: &[Bar]) -> Markup {
    let (Some(started), JobState::Running) = (job.started_at, job.state) else {
        return html! {};
    };
    let elapsed = frame.visit.now.signed_duration_since(started).num_seconds();
    let usual = chart::usual_seconds(bars);
    chart::progress(started.timestamp_millis(), elapsed, usual)
}

/// Lanes with arrows from causes to effects; empty without jobs.
pub(super) fn lanes(
    frame: &Frame<'_>,
    all: &[Lane],
    causes: &[Cause],
    length: TimeDelta,
) -> Markup {
    let window = Window::before(frame.visit.now, length);
    let is_shown = |bar: &Bar| bar.end >= window.from;
    if !all.iter().any(|lane| lane.bars.iter().any(is_shown)) {
        return html! {};
    }
    chart::lanes(all, causes, window, clock(frame))
}

/// The number of jobs in the lanes of the last day, if the lanes may omit jobs.
pub(super) fn cut(frame: &Frame<'_>, jobs: &Page<Job>) -> Option<u64> {
    let from = frame.visit.now - day();
    let oldest = jobs.items.last()?;
    let is_in_it = oldest.finished_at.is_none_or(|end| end > from);
    (jobs.next_cursor.is_some() && is_in_it).then_some(jobs.items.len() as u64)
}

/// The graph of a workflow, or of one scan with its neighbours. Empty if no scan depends on another.
pub(super) fn graph(
    frame: &Frame<'_>,
    workflow: &str,
    scans: &[ScanStatus],
    histories: &[Vec<Bar>],
    focus: Option<&str>,
) -> Markup {
    let definitions: Vec<Scan> = scans.iter().map(|status| status.scan.clone()).collect();
    let edges = graph::edges(&definitions);
    if edges.is_empty() {
        return html! {};
    }
    let nodes: Vec<Node> = scans
        .iter()
        .zip(histories)
        .map(|(status, history)| Node {
            name: status.scan.name.clone(),
            href: links::scan(workflow, &status.scan.name),
            lines: lines(frame, status),
            state: status.last_job.as_ref().map(|job| job.state),
            is_suspended: status.suspended.is_some(),
            trigger: trigger(&status.scan),
            history: history.clone(),
        })
        .collect();
    let (nodes, edges) = match focus {
        Some(scan) => graph::neighbours(scan, nodes, edges),
        None => (nodes, edges),
    };
    graph::draw(&nodes, &edges)
}

/// The lines below the name of a scan.
fn lines(frame: &Frame<'_>, status: &ScanStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(cron) = &status.scan.cron {
        let elsewhere = status
            .scan
            .timezone
            .as_deref()
            .filter(|zone| *zone != "UTC");
        lines.push(match elsewhere {
            Some(zone) => format!("{cron} {zone}"),
            None => cron.clone(),
        });
    }
    lines.push(match &status.last_job {
        None => "never ran".to_owned(),
        Some(job) => {
            let (state, now) = (job.state.as_str(), frame.visit.now);
            match job.finished_at {
                Some(end) => format!("{state} {}", ago_text(end, now)),
                None => {
                    let since = job.started_at.unwrap_or(job.created_at);
                    format!("{state} for {}", between(since, now))
                }
            }
        }
    });
    lines
}

fn trigger(scan: &Scan) -> Option<Trigger> {
    if scan.cron.is_some() {
        Some(Trigger::Cron)
    } else if scan.expr.is_some() {
        Some(Trigger::Expr)
    } else if scan.callback.is_some() {
        Some(Trigger::Callback)
    } else {
        scan.inputs.as_ref().map(|_| Trigger::Dispatch)
    }
}
