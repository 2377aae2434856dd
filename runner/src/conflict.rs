//! Another process that works under this runner's name. Neither can work while they take turns, so the one that the
//! daemon refuses says so once and asks again with growing pauses: the other may be gone, or may be this runner's own
//! predecessor on a machine that was started again.

use std::time::Duration;

use client::{Backoff, Error};
use wire::ErrorCode;

use crate::limits;

/// What is known of such a process.
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

    /// Whether the daemon refuses because of another process.
    pub(crate) fn is_cause_of(error: &Error) -> bool {
        matches!(
            error.code(),
            Some(ErrorCode::RunnerInUse | ErrorCode::PollReplaced)
        )
    }

    /// Takes note of a refusal and gives the pause before the next attempt.
    pub(crate) fn goes_on(&mut self, name: &str) -> Duration {
        let pause = self.backoff.failed();
        if self.backoff.failures() == 1 {
            tracing::error!(
                name,
                "another process works under the name of this runner; this one waits until that one has ended or was \
                 not heard for two minutes. Was the runner's folder copied? Then register a runner of its own here \
                 with `everscan-runner configure --name NAME`"
            );
        } else {
            tracing::debug!(name, ?pause, "another process still works under this name");
        }
        pause
    }

    /// The daemon takes this process for the runner.
    pub(crate) fn is_over(&mut self, name: &str) {
        if self.backoff.failures() > 0 {
            tracing::info!(name, "no other process works under this name any more");
        }
        self.backoff.succeeded();
    }
}
