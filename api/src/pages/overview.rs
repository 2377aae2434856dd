//! The overview. Every reader may see it, but each part needs its own scope.

use std::collections::BTreeMap;

use http::StatusCode;
use maud::Markup;
use model::{Circle, Reason, Scope, StateKind};
use ui::chart::{Bar, Lane};
use ui::links;
use ui::pages::{self, Failing, Unfinished};
use uuid::Uuid;
use warp::reply::Response;
use wire::{Job, JobLine, JobState, Page, Project, Runner, ScanStatus, Slot, Source};

use super::charts;
use super::frame::Frame;
use super::runners::server;
use crate::convert;
use crate::failure::Failure;
use crate::handlers::jobs::{self, JobsQuery};
use crate::handlers::{health, projects, runners, scans, sources};
use crate::limits::PAGE;
use crate::page::Window;

const SLOTS: usize = 10;

pub(super) async fn overview(frame: &Frame<'_>) -> Result<Response, Failure> {
    let health = health::load_health(&frame.service.handle).await?;
    let sources = sources(frame);
    let runners = runners(frame);
    let scans = scans(frame).await?;
    let is_cut = sources.next_cursor.is_some()
        || runners.next_cursor.is_some()
        || scans.next_cursor.is_some()
        || scans.items.iter().filter(|scan| may_fail(scan)).count() > charts::MOST_HISTORIES;
    let (sources, runners, scans) = (sources.items, runners.items, scans.items);
    let unfinished = unfinished(frame).await?;
    let slots = slots(frame)?;
    let projects = projects(frame, &sources)?;
    let (histories, unreadable) = histories(frame, &scans).await;
    let (lanes, lanes_cut) = lanes(frame).await?;
    let page = pages::Overview {
        server: &server(frame),
        health: &health,
        sources: &sources,
        runners: &runners,
        scans: &scans,
        failing: &failing(&scans, &histories),
        unreadable: &unreadable,
        circles: &circles(frame),
        is_cut,
        unfinished: &unfinished,
        counts: counts(frame),
        progress: progress(frame, &unfinished).await,
        slots: &slots,
        projects: &projects,
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

/// The groups of scans that start each other in a circle. Empty without the scopes.
fn circles(frame: &Frame<'_>) -> Vec<(String, wire::Circle)> {
    if !frame.may(Scope::WorkflowRead) || !frame.may(Scope::JobRead) {
        return Vec::new();
    }
    let named = |circle: &Circle| {
        let workflow = convert::workflow_ref(&circle.workflow);
        (
            links::workflow_name(&workflow),
            convert::why::circle(circle),
        )
    };
    let circles = frame.user.read(|seen| seen.circles());
    circles.iter().map(named).collect()
}

/// Whether a scan may have failed since its last success.
fn may_fail(scan: &ScanStatus) -> bool {
    let newest = scan.last_job.as_ref().map(|job| job.state);
    // A job whose session ended has the state cancelled.
    scan.finished.failed + scan.finished.cancelled > 0 && newest != Some(JobState::Succeeded)
}

/// Whether a person should look into the end of a job: the job failed, or it ran until its session ended.
fn has_failed(job: &JobLine) -> bool {
    let expired = Reason::SessionExpired.code();
    job.state == JobState::Failed || job.reason.as_deref() == Some(expired)
}

/// The newest finished jobs of scans that may have failed since their last success, and the scans with jobs that
/// cannot be read.
async fn histories<'a>(
    frame: &Frame<'_>,
    scans: &'a [ScanStatus],
) -> (Vec<Vec<JobLine>>, Vec<&'a ScanStatus>) {
    let mut left = charts::MOST_HISTORIES;
    let mut all = Vec::with_capacity(scans.len());
    let mut unreadable = Vec::new();
    for scan in scans {
        let is_read = may_fail(scan) && left > 0;
        left -= usize::from(is_read);
        if !is_read {
            all.push(Vec::new());
            continue;
        }
        let workflow = links::workflow_name(&scan.workflow);
        let name = &scan.scan.name;
        let page = charts::history_page(frame, &workflow, name, charts::USUAL_OF).await;
        // The scan may have been removed meanwhile.
        let is_readable = match &page {
            Ok(page) => page.damaged.is_empty(),
            Err(failure) => failure.status() == StatusCode::NOT_FOUND,
        };
        if !is_readable {
            unreadable.push(scan);
        }
        all.push(page.map(|page| page.items).unwrap_or_default());
    }
    (all, unreadable)
}

fn failing<'a>(scans: &'a [ScanStatus], histories: &'a [Vec<JobLine>]) -> Vec<Failing<'a>> {
    let one = |(scan, history): (&'a ScanStatus, &'a Vec<JobLine>)| {
        let (newest, failures) = failures(history)?;
        let mut jobs = history.iter();
        let success = jobs.find(|job| job.state == JobState::Succeeded);
        Some(Failing {
            scan,
            newest,
            failures,
            succeeded_at: success.and_then(|job| job.finished_at),
        })
    };
    scans.iter().zip(histories).filter_map(one).collect()
}

/// The newest failure after the last success that was not retried, and the number of them. `history` is newest
/// first.
fn failures(history: &[JobLine]) -> Option<(&JobLine, u64)> {
    let since = history
        .iter()
        .take_while(|job| job.state != JobState::Succeeded);
    // A retried job is not the end of its chain, except if its retry was stopped.
    let was_stopped = |retry: Uuid| {
        let stopped = [JobState::Cancelled, JobState::Skipped];
        history
            .iter()
            .any(|job| job.id == retry && stopped.contains(&job.state) && !has_failed(job))
    };
    let is_last = |job: &JobLine| job.retried_by.is_none_or(was_stopped);
    let mut failed = since.filter(|job| has_failed(job) && is_last(job));
    let newest = failed.next()?;
    Some((newest, failed.count() as u64 + 1))
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

/// The projects with the names of missing vars and secrets. Each source is a project.
fn projects(frame: &Frame<'_>, sources: &[Source]) -> Result<Vec<Project>, Failure> {
    let projects = sources.iter();
    projects
        .map(|source| projects::show(frame.user, &source.name))
        .collect()
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

#[cfg(test)]
mod tests {
    use wire::Trigger;

    use super::*;

    fn job(id: u128, state: JobState) -> JobLine {
        JobLine {
            id: Uuid::from_u128(id),
            state,
            trigger: Trigger::Cron,
            revision: Uuid::nil(),
            reason: None,
            runner: None,
            retried_by: None,
            causes: Vec::new(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            started_at: None,
            finished_at: None,
            artifacts: BTreeMap::new(),
            bytes: 0,
        }
    }

    #[test]
    fn failures_count_from_the_last_success_on() {
        use JobState::{Cancelled, Failed, Skipped, Succeeded};
        type Newest = Option<(u128, u64)>;
        let cases: [(&[JobState], Newest); 6] = [
            (&[], None),
            (&[Succeeded, Failed], None),
            (&[Cancelled, Skipped], None),
            (&[Failed], Some((0, 1))),
            (
                &[Cancelled, Failed, Skipped, Failed, Succeeded, Failed],
                Some((1, 2)),
            ),
            (&[Failed, Failed], Some((0, 2))),
        ];
        for (states, expected) in cases {
            let numbered = (0..).zip(states.iter().copied());
            let history: Vec<JobLine> = numbered.map(|(id, state)| job(id, state)).collect();
            let found = failures(&history).map(|(newest, count)| (newest.id.as_u128(), count));
            assert_eq!(found, expected, "{states:?}");
        }
    }

    #[test]
    fn only_the_last_job_of_a_chain_of_retries_counts_as_failed() {
        use JobState::{Cancelled, Failed, Scheduled, Skipped, Succeeded};
        let retried = |id, by| JobLine {
            retried_by: Some(Uuid::from_u128(by)),
            ..job(id, Failed)
        };
        let chain = [job(3, Failed), retried(2, 3), retried(1, 2)];
        let found = |history: &[JobLine]| failures(history).map(|(newest, all)| (newest.id, all));
        assert_eq!(found(&chain), Some((Uuid::from_u128(3), 1)));
        assert_eq!(
            found(&[job(3, Scheduled), retried(2, 3), retried(1, 2)]),
            None
        );
        for stopped in [Cancelled, Skipped] {
            let chain = [job(3, stopped), retried(2, 3), retried(1, 2)];
            assert_eq!(found(&chain), Some((Uuid::from_u128(2), 1)), "{stopped:?}");
        }
        assert_eq!(found(&[job(2, Succeeded), retried(1, 2)]), None);
    }

    #[test]
    fn a_job_counts_as_failed_if_its_session_ended_but_not_if_somebody_cancelled_it() {
        let cancelled = |id, reason: Reason| JobLine {
            reason: Some(reason.code().to_owned()),
            ..job(id, JobState::Cancelled)
        };
        let expired = |id| cancelled(id, Reason::SessionExpired);
        let by_user = |id| cancelled(id, Reason::CancelledByUser);
        let retried = JobLine {
            retried_by: Some(Uuid::from_u128(3)),
            ..job(1, JobState::Failed)
        };
        let found =
            |history: &[JobLine]| failures(history).map(|(newest, all)| (newest.id.as_u128(), all));
        assert_eq!(found(&[by_user(3)]), None);
        assert_eq!(found(&[expired(3), by_user(2), expired(1)]), Some((3, 2)));
        assert_eq!(found(&[expired(3), retried.clone()]), Some((3, 1)));
        assert_eq!(found(&[by_user(3), retried]), Some((1, 1)));
    }
}
