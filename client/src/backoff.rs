//! Pauses between the repetitions of a call.

use std::time::Duration;

use uuid::Uuid;

use crate::{Error, limits};

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

/// Counts the failures of one call since its last success.
#[derive(Debug)]
pub(crate) struct Backoff {
    patience: Patience,
    failures: u32,
}

impl Backoff {
    pub(crate) const fn new(patience: Patience) -> Self {
        Self {
            patience,
            failures: 0,
        }
    }

    /// Changes how many attempts there are.
    pub(crate) const fn be(&mut self, patience: Patience) {
        self.patience = patience;
    }

    pub(crate) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The given error, when another attempt cannot help or the attempts are used up.
    pub(crate) async fn pause_after(&mut self, error: Error) -> Result<(), Error> {
        self.failures += 1;
        if !error.is_repeatable() || self.failures >= self.patience.attempts() {
            return Err(error);
        }
        // The random bits of a version 4 id are the only randomness needed here.
        let [random, ..] = Uuid::new_v4().into_bytes();
        tokio::time::sleep(pause(self.failures, random)).await;
        Ok(())
    }
}

/// The pause after so many failures: doubled each time, bounded, and drawn from its upper half, so that many clients
/// of a restarted daemon do not come at once.
fn pause(failures: u32, random: u8) -> Duration {
    let doubled = limits::FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let half = doubled.min(limits::LONGEST_PAUSE) / 2;
    half + half * u32::from(random) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        assert_eq!(pause(1, 0), limits::FIRST_PAUSE / 2);
        assert_eq!(pause(1, 255), limits::FIRST_PAUSE);
        assert_eq!(pause(3, 255), limits::FIRST_PAUSE * 4);
        assert_eq!(pause(1_000, 255), limits::LONGEST_PAUSE);
    }
}
