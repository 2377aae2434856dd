//! Another process that works under this runner's name. The daemon refuses one of the two processes. The refused process logs
//! this once and retries with growing pauses: the other process may end, or it may be this runner's own earlier process, from
//! before a reboot of the machine.

use std::time::Duration;

use client::{Backoff, Error};
use wire::ErrorCode;

use crate::limits;

/// Whether there is such a process, and when to retry.
#[derive(Debug)]
pub(crate) struct Conflict {
    backoff: Backoff,
}

impl Conflict {
    pub(crate) const fn none() -> Self {
        Self {
            backoff: Backoff::new(limits::FIRST_PAUSE, limits::LONGEST_CONFLICT_PAUSE),
        }
    }

    /// Records whether the daemon refuses this process because of another process.
    pub(crate) fn is_cause_of(error: &Error) -> bool {
        matches!(
            error.code(),
            Some(ErrorCode::RunnerInUse | ErrorCode::PollReplaced)
        )
    }

    pub(crate) fn refused(&mut self, name: &str) -> Duration {
        let pause = self.backoff.failed();
        if self.backoff.failures() == 1 {
            tracing::error!(
                name,
                "another process works under the name of this runner; this process waits until the other one has ended, \
                 or was not heard for two minutes. It may be the last process of this runner, which could not sign off. If the runner's folder was copied, register another runner here \
                 with `everscan-runner configure --name NAME`"
            );
        } else {
            tracing::debug!(name, ?pause, "another process still works under this name");
        }
        pause
    }

    /// The daemon accepts this process as the runner.
    pub(crate) fn resolved(&mut self, name: &str) {
        if self.backoff.failures() > 0 {
            tracing::info!(name, "no other process works under this name any more");
        }
        self.backoff.succeeded();
    }
}
