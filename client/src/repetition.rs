//! Whether and when to repeat a call.

use crate::{Backoff, Error, limits};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Once, because a repeat could execute the call twice.
    Once,
    /// A few times within a short time.
    Call,
    /// For as long as a restart of the daemon takes.
    Wait,
}

impl Patience {
    const fn attempts(self) -> u32 {
        match self {
            Self::Once => 1,
            Self::Call => limits::CALL_ATTEMPTS,
            Self::Wait => limits::WAIT_ATTEMPTS,
        }
    }
}

/// The attempts of one call since its last success.
#[derive(Debug)]
pub(crate) struct Repetition {
    patience: Patience,
    backoff: Backoff,
}

impl Repetition {
    pub(crate) const fn new(patience: Patience) -> Self {
        Self {
            patience,
            backoff: Backoff::new(limits::FIRST_PAUSE, limits::LONGEST_PAUSE),
        }
    }

    /// Changes the allowed number of attempts.
    pub(crate) const fn be(&mut self, patience: Patience) {
        self.patience = patience;
    }

    pub(crate) const fn succeeded(&mut self) {
        self.backoff.succeeded();
    }

    /// Waits before the next attempt. Returns the given error if another attempt cannot help or none is left.
    pub(crate) async fn pause_after(&mut self, error: Error) -> Result<(), Error> {
        let pause = self.backoff.failed();
        let attempts = if error.is_harmless() {
            self.patience.attempts().max(limits::LATER_ATTEMPTS)
        } else {
            self.patience.attempts()
        };
        if !error.is_repeatable() || self.backoff.failures() >= attempts {
            return Err(error);
        }
        tokio::time::sleep(pause.max(error.retry_after().unwrap_or_default())).await;
        Ok(())
    }
}
