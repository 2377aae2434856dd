//! Retries: a failed or lost job gets another attempt after a pause, if its scan has a `retry`.
//!
//! A job is one attempt, so a retry is another job, with the trigger and the inputs of the job that it retries. Jobs
//! and their retries form a chain with at most one unfinished job.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use workflow::limits::RETRY_PAUSE;
use workflow::{Retry, Scan};

use crate::job::{Job, JobState};
use crate::{JobId, Reason, Timestamp};

/// The job that a retry retries, and the position of the retry in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryOf {
    /// The previous job of the chain. It may have been removed in the meantime.
    pub job: JobId,
    /// Its position in the chain. The first job has position 1.
    pub attempt: u32,
    /// The most jobs that the chain may have.
    pub attempts: u32,
}

/// The retry that a job gets if it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextAttempt {
    /// The position of the retry in the chain.
    pub attempt: u32,
    /// The most jobs that the chain may have.
    pub attempts: u32,
    /// The time from the end of the job to the earliest start of the retry.
    pub pause: TimeDelta,
}

impl Job {
    /// The position of the job in its chain, from 1.
    pub fn attempt(&self) -> u32 {
        self.retry_of.map_or(1, |retry| retry.attempt)
    }

    /// The retry that this job gets if it fails. `scan` is from the revision that it runs.
    pub fn next_attempt(&self, scan: &Scan) -> Option<NextAttempt> {
        let Retry { attempts, backoff } = scan.retry?;
        let attempt = self.attempt();
        let attempts = u32::from(attempts) + 1;
        (attempt < attempts).then(|| NextAttempt {
            attempt: attempt + 1,
            attempts,
            pause: pause(backoff, attempt),
        })
    }

    /// The reason why the job may not start yet: `not_before` is later than `time`, which is the world's time.
    pub fn waits_for_its_time(&self, time: Timestamp) -> Option<Reason> {
        let at = self.not_before.filter(|at| *at > time)?;
        let reason = match self.retry_of {
            Some(retry) => Reason::RetryDue {
                at,
                attempt: retry.attempt,
                attempts: retry.attempts,
            },
            None => Reason::CyclePause { at },
        };
        matches!(self.state, JobState::Scheduled).then_some(reason)
    }
}

/// The pause after an attempt, counted from 1. It doubles with each attempt, up to an hour.
fn pause(backoff: TimeDelta, attempt: u32) -> TimeDelta {
    let doubled = 1_i32.checked_shl(attempt.saturating_sub(1));
    let pause = doubled.and_then(|factor| backoff.checked_mul(factor));
    pause.map_or(RETRY_PAUSE, |pause| pause.min(RETRY_PAUSE))
}

impl Reason {
    /// The same reason for people: its times are converted to the wall clock, which is `ahead` of the world's time.
    #[must_use]
    pub fn by_clock(self, ahead: TimeDelta) -> Self {
        let by_clock = |at: Timestamp| at.checked_add_signed(ahead).unwrap_or(at);
        match self {
            Self::RetryDue {
                at,
                attempt,
                attempts,
            } => Self::RetryDue {
                at: by_clock(at),
                attempt,
                attempts,
            },
            Self::CyclePause { at } => Self::CyclePause { at: by_clock(at) },
            reason => reason,
        }
    }

    /// True if a job that ended for this reason is retried: it failed, took too long, or its runner was lost.
    pub const fn is_retried(&self) -> bool {
        match self {
            Self::StepFailed { .. }
            | Self::ArtifactFailed { .. }
            | Self::EnvFailed { .. }
            | Self::SetupFailed { .. }
            | Self::CheckoutFailed { .. }
            | Self::RunnerStopped { .. }
            | Self::RunnerLost
            | Self::TimedOut => true,
            // The job succeeded, is no longer wanted, or was ended by a person, its session or a restore.
            Self::CancelledByUser
            | Self::SessionExpired
            | Self::Restored
            | Self::Replaced { .. }
            | Self::Suspended { .. }
            | Self::Retired
            | Self::SourceDropped
            | Self::ExpressionFalse
            | Self::ExpressionFailed { .. }
            | Self::StepsSucceeded => false,
            // No job ends for these reasons.
            Self::Dispatched
            | Self::Rerun { .. }
            | Self::Retry { .. }
            | Self::RetryDue { .. }
            | Self::CyclePause { .. }
            | Self::SlotDue { .. }
            | Self::ExpressionTrue
            | Self::CallbackHeard { .. }
            | Self::OwnCallbacks
            | Self::Overlap { .. }
            | Self::SlotsMissed
            | Self::ClockSetBack { .. }
            | Self::Claimed
            | Self::Expired
            | Self::DeletedByUser
            | Self::Pruned
            | Self::NoRunner
            | Self::NoRunnerConnected { .. }
            | Self::NoRunnerFits { .. }
            | Self::RunnersBusy { .. }
            | Self::RunnersExclusive { .. }
            | Self::RunnersTooOld { .. }
            | Self::NotFetched { .. }
            | Self::Fetched
            | Self::FetchFailed { .. }
            | Self::CredentialsRefused { .. }
            | Self::EmptyRepository
            | Self::NeverFetched
            | Self::FolderMissing { .. }
            | Self::NoWorkflows { .. }
            | Self::FolderUnreadable { .. }
            | Self::RemovalHeld { .. }
            | Self::FilesValid
            | Self::FilesInvalid { .. }
            | Self::TipActive
            | Self::ApplyFailed { .. }
            | Self::TipPartlyActive { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_an_hour() {
        let seconds = TimeDelta::seconds;
        let pauses: Vec<i64> = (1..=10)
            .map(|attempt| pause(seconds(10), attempt).num_seconds())
            .collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]);
        assert_eq!(pause(seconds(1), 100), RETRY_PAUSE);
        assert_eq!(pause(TimeDelta::hours(4), 1), RETRY_PAUSE);
        assert_eq!(pause(TimeDelta::MAX, 2), RETRY_PAUSE);
    }
}
