//! Deadlines: silent runners, the `timeout` of scans, and the lifetime of worker sessions.
//!
//! Silence is measured on a clock that never jumps. The other deadlines are in the job's record, in the world's time. A
//! runner ends a job at its `timeout` by itself; the daemon does so later, in case the runner does not.
//! Offers expire on the board.

use std::time::Duration;

use chrono::TimeDelta;
use model::decide::Loss;
use model::limits::{RUNNER_SILENCE, TIMEOUT_END};
use model::{Job, JobId, JobState, Timestamp, World};
use tokio::time::Instant;

use crate::presence::Presence;

/// The due jobs, and when to check again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Jobs to end now.
    pub(crate) jobs: Vec<(JobId, Loss)>,
    /// The time until the next deadline.
    pub(crate) next: Option<Duration>,
}

/// The earliest of the deadlines that have passed.
pub(crate) fn due(world: &World, presence: &Presence, time: Timestamp, steady: Instant) -> Due {
    let mut due = Due {
        jobs: Vec::new(),
        next: None,
    };
    for job in world.running() {
        let Some((remaining, loss)) = first_end(world, presence, job, time, steady) else {
            continue;
        };
        match remaining.to_std() {
            Ok(remaining) if !remaining.is_zero() => {
                due.next = Some(due.next.map_or(remaining, |next| next.min(remaining)));
            }
            Ok(_) | Err(_) => due.jobs.push((job.id, loss)),
        }
    }
    due
}

/// The next deadline of a running job, and the time until then.
fn first_end(
    world: &World,
    presence: &Presence,
    job: &Job,
    time: Timestamp,
    steady: Instant,
) -> Option<(TimeDelta, Loss)> {
    let JobState::Running { run } = &job.state else {
        return None;
    };
    let lease = if world.runner(run.runner.id).is_some() {
        RUNNER_SILENCE - elapsed(presence.lease_from(run.runner.id), steady)
    } else {
        TimeDelta::zero()
    };
    let session = run.expires_at - time;
    // Its runner has as long to say how the job ended when the daemon could not hear it before.
    let deaf = TIMEOUT_END - elapsed(presence.awake_since(), steady);
    let timeout = run.deadline.filter(|deadline| *deadline <= run.expires_at);
    let timeout = timeout.map(|deadline| (deadline + TIMEOUT_END - time).max(deaf).min(session));
    [
        // It has come first, also if the session ends before the runner has had its time.
        timeout.map(|timeout| (timeout, Loss::TimedOut)),
        Some((session, Loss::SessionExpired)),
        Some((lease, Loss::RunnerLost)),
    ]
    .into_iter()
    .flatten()
    .min_by_key(|(remaining, _)| *remaining)
}

fn elapsed(since: Instant, now: Instant) -> TimeDelta {
    TimeDelta::from_std(now.duration_since(since)).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests;
