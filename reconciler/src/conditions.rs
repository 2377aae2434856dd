//! Opens and closes the conditions that time or a measurement causes. All others are part of the commit that causes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::condition::{Condition, Problem, Subject};
use model::decide::{Look, Measure};
use model::{Reason, ScanKey, Timestamp, World};
use state::{Room, State, SubmitError};
use tokio::time::{Instant, sleep_until};

use crate::handle::Handle;
use crate::limits::{
    CERTIFICATE_EXPIRES_SOON, CONDITION_CHECK, CONDITION_REST, DAMAGE_LINES, SILENCE, STUCK_AFTER,
};

/// Looks at subjects when their time has come, and at the instance, runners, waiting jobs and histories every minute. The
/// first check waits until runners had time to return, so that a restart ends no condition that goes on.
pub(crate) async fn keep_conditions(handle: Handle) {
    let state = handle.state();
    let mut changes = state.changed();
    let mut check_at = Instant::now() + SILENCE;
    read_damaged(&handle).await;
    loop {
        let done = keep(&handle, &mut check_at).await;
        let rest = match done {
            Ok(()) => {
                let now = handle.now();
                let next = state.read(|world| world.next_condition(now));
                let next = next.and_then(|at| (at - now).to_std().ok());
                next.map_or(check_at, |next| check_at.min(Instant::now() + next))
            }
            Err(error) => {
                tracing::warn!(%error, "conditions cannot be recorded; this is retried");
                Instant::now() + CONDITION_REST
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = sleep_until(rest) => {}
        }
    }
}

/// Reads the histories that were damaged before this start: until they are read, nobody knows whether they still are.
async fn read_damaged(handle: &Handle) {
    let is_damaged = |open: &&Arc<Condition>| open.problem == Problem::HistoryDamaged;
    let scans: Vec<ScanKey> = handle.state().read(|world| {
        let damaged = world.conditions().filter(is_damaged);
        damaged
            .filter_map(|open| match &open.subject {
                Subject::Scan { workflow, scan } => Some(ScanKey::new(*workflow, scan)),
                _ => None,
            })
            .collect()
    });
    for scan in scans {
        let mut before = None;
        while let Ok(page) = handle.state().history(&scan, before, DAMAGE_LINES).await {
            before = page.next;
            if before.is_none() || !page.damaged.is_empty() {
                break;
            }
        }
    }
}

async fn keep(handle: &Handle, check_at: &mut Instant) -> Result<(), SubmitError> {
    let state = handle.state();
    let now = handle.now();
    let mut result = Ok(());
    for subject in state.read(|world| world.conditions_due(now)) {
        // An error at one subject must not keep the others waiting.
        let looked = state.submit(Look { subject }).await;
        result = result.and(looked);
    }
    if *check_at <= Instant::now() {
        // From the look on, however long the records take.
        let next = Instant::now() + CONDITION_CHECK;
        for subject in state.read(|world| opened_by_wrong_clock(world, now)) {
            state.submit(Look { subject }).await?;
        }
        for report in measured(handle) {
            submit(state, report).await?;
        }
        *check_at = next;
    }
    result
}

/// What a clock that was set back has opened may not be so.
fn opened_by_wrong_clock(world: &World, now: Timestamp) -> BTreeSet<Subject> {
    let open = world.conditions().filter(|open| open.since > now);
    open.map(|open| open.subject.clone()).collect()
}

async fn submit(state: &State, report: Measure) -> Result<(), SubmitError> {
    if state.read(|world| report.is_news(world)) {
        while state.submit(report.clone()).await? {}
    }
    Ok(())
}

/// What the instance, runners, waiting jobs and histories say now, and an empty report for what was wrong before.
fn measured(handle: &Handle) -> Vec<Measure> {
    let mut found = BTreeMap::from([(Subject::Instance, of_instance(handle))]);
    let stuck = stuck(handle);
    handle.state().read(|world| {
        for open in world.conditions() {
            let is_ours = matches!(
                open.problem,
                Problem::Stuck { .. } | Problem::RunnerLost | Problem::HistoryDamaged
            );
            if is_ours {
                found.entry(open.subject.clone()).or_default();
            }
        }
        for runner in world.runners().map(|runner| runner.id) {
            let subject = Subject::Runner { runner };
            // A lost runner is lost until it is heard, also after a time in which nobody could be heard.
            let was_lost = world.conditions_of(&subject).next().is_some();
            let runners = handle.runners();
            if runners.is_lost(runner) || (was_lost && !runners.is_connected(runner)) {
                found.entry(subject).or_default().push(Problem::RunnerLost);
            }
        }
    });
    let damaged = handle.state().damaged_histories().into_iter();
    let damaged = damaged.map(|scan| (scan, Problem::HistoryDamaged));
    for (scan, problem) in stuck.into_iter().chain(damaged) {
        found.entry(Subject::from(&scan)).or_default().push(problem);
    }
    let report = |(subject, problems)| Measure { subject, problems };
    found.into_iter().map(report).collect()
}

/// What is wrong with the disk, the certificate and the backups.
fn of_instance(handle: &Handle) -> Vec<Problem> {
    let (state, now) = (handle.state(), handle.now());
    let upkeep = &handle.settings().upkeep;
    let mut problems = Vec::new();
    if state.room() != Room::Enough {
        problems.push(Problem::DiskLow);
    }
    let expires = upkeep.certificate_expires();
    if let Some(at) = expires.filter(|at| *at - now <= CERTIFICATE_EXPIRES_SOON) {
        problems.push(Problem::CertificateExpires { at });
    }
    problems.extend(of_callback_certificate(handle, now));
    if let Some(within) = upkeep.backup_within {
        let newest = state.newest_backup();
        if newest.is_none_or(|newest| now - newest > within) {
            problems.push(Problem::BackupOld { newest });
        }
    }
    problems
}

/// Whether HTTPS of callback servers has no certificate, or will soon have none.
fn of_callback_certificate(handle: &Handle, now: Timestamp) -> Option<Problem> {
    let expires = handle.settings().upkeep.callback_certificate.as_ref()?;
    let at = *expires.borrow();
    let authority = handle.callbacks()?.authority.as_ref();
    let reason = handle.state().read(|world| {
        let issued = world.callback_certificate();
        let issued = issued.filter(|it| Some(&it.asked.directory) == authority)?;
        Some(issued.failure.as_ref()?.reason.clone())
    });
    let is_soon = at.is_none_or(|at| at - now <= CERTIFICATE_EXPIRES_SOON);
    let is_known = at.is_some() || reason.is_some();
    (is_soon && is_known).then_some(Problem::CallbackCertificate { at, reason })
}

/// The oldest waiting job of each scan that no runner can take, if it has waited for a minute.
fn stuck(handle: &Handle) -> Vec<(ScanKey, Problem)> {
    let before = handle.now() - STUCK_AFTER;
    let oldest = handle.state().read(|world| {
        let mut oldest = BTreeMap::new();
        for job in world
            .jobs()
            .filter(|job| job.state.run().is_none() && job.created_at <= before)
        {
            oldest.entry(job.scan_key()).or_insert_with(|| job.clone());
        }
        oldest
    });
    let stuck = oldest.into_iter().filter_map(|(scan, job)| {
        match handle.why_waiting(&job)? {
            reason @ (Reason::NoRunner
            | Reason::NoRunnerFits { .. }
            | Reason::RunnersTooOld { .. }
            | Reason::RunnersExclusive { .. }) => {
                let job = job.id;
                Some((scan, Problem::Stuck { job, reason }))
            }
            // Without runners nobody knows better than before.
            Reason::NoRunnerConnected { .. } => handle.state().read(|world| {
                let subject = Subject::from(&scan);
                let open = world.conditions_of(&subject).find(|open| {
                    let is_stuck = matches!(open.problem, Problem::Stuck { .. });
                    is_stuck && open.problem.job() == Some(job.id)
                })?;
                Some((scan.clone(), open.problem.clone()))
            }),
            _ => None,
        }
    });
    stuck.collect()
}

#[cfg(test)]
mod tests;
