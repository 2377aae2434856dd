//! Deadlines: silence of runners, the `timeout` of scans, and the lifetime of worker sessions.
//!
//! Silence is measured with a clock that never jumps. The other deadlines are stored in the job's record, in the
//! world's time. A runner ends a job at its `timeout`; if the runner does not, the daemon ends the job later.
//! Offers expire on the board.
//!
//! The world has an index of the stored deadlines. Silence depends on time only, never on a commit, so leases need to
//! be checked only when one may end.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use model::decide::Loss;
use model::limits::{RUNNER_SILENCE, TIMEOUT_END};
use model::{Job, JobId, JobState, RunnerId, Timestamp, World};
use tokio::time::Instant;

use crate::runners::Presence;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) jobs: Vec<(JobId, Loss)>,
    pub(crate) next: Option<Duration>,
}

impl Due {
    fn next_in(&mut self, remaining: Duration) {
        self.next = Some(self.next.map_or(remaining, |next| next.min(remaining)));
    }
}

/// The jobs whose stored deadline has passed, and with `leases` also the jobs of silent runners.
pub(crate) fn due(
    world: &World,
    presence: &Presence,
    time: Timestamp,
    steady: Instant,
    leases: bool,
) -> Due {
    let mut due = Due {
        jobs: Vec::new(),
        next: None,
    };
    let examine = |due: &mut Due, job: &Job| {
        let Some((remaining, loss)) = first_end(world, presence, job, time, steady) else {
            return;
        };
        match left(remaining) {
            Some(remaining) => due.next_in(remaining),
            None => due.jobs.push((job.id, loss)),
        }
    };
    for job in world.ended_by(time) {
        examine(&mut due, job);
    }
    if let Some(remaining) = world.next_end(time).and_then(|end| left(end - time)) {
        due.next_in(remaining);
    }
    if leases {
        for (runner, jobs) in world.busy_runners() {
            if let Some(remaining) = left(lease(world, presence, runner, steady)) {
                due.next_in(remaining);
                continue;
            }
            let has_run = |job: &&Arc<Job>| job.state.run().is_some_and(|run| run.ends_by() > time);
            for job in jobs.filter(has_run) {
                examine(&mut due, job);
            }
        }
    }
    due
}

fn left(remaining: TimeDelta) -> Option<Duration> {
    let remaining = remaining.to_std().ok()?;
    (!remaining.is_zero()).then_some(remaining)
}

/// The time until the silence of a runner loses its jobs.
fn lease(world: &World, presence: &Presence, runner: RunnerId, steady: Instant) -> TimeDelta {
    if world.runner(runner).is_none() {
        return TimeDelta::zero();
    }
    RUNNER_SILENCE - elapsed(presence.lease_from(runner), steady)
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
    let lease = lease(world, presence, run.runner.id, steady);
    let session = run.expires_at - time;
    // After a standstill of the daemon, the runner gets this time again to report the end of the job.
    let deaf = TIMEOUT_END - elapsed(presence.awake_since(), steady);
    let timeout = run.deadline.filter(|deadline| *deadline <= run.expires_at);
    let timeout = timeout.map(|deadline| (deadline + TIMEOUT_END - time).max(deaf).min(session));
    [
        // The timeout comes first, even if the session ends before the runner's time to report is over.
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
