//! Whether and when a call goes out again.

use crate::{Backoff, Error, limits};

/// How often a call goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Once: a repetition could do the thing twice.
    Once,
    /// A few times within moments.
    Call,
    /// As long as a restart of the daemon takes.
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

    /// Changes how many attempts there are.
    pub(crate) const fn be(&mut self, patience: Patience) {
        self.patience = patience;
    }

    pub(crate) const fn succeeded(&mut self) {
        self.backoff.succeeded();
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The given error, when another attempt cannot help or the attempts are used up.
    pub(crate) async fn pause_after(&mut self, error: Error) -> Result<(), Error> {
        let pause = self.backoff.failed();
        if !error.is_repeatable() || self.backoff.failures() >= self.patience.attempts() {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
