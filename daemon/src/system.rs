//! The daemon's only sources of time and randomness.

#![expect(
    clippy::disallowed_methods,
    reason = "the daemon's one home of the wall clock"
)]

use chrono::Utc;
use model::{Clock, Entropy, Timestamp};

/// The system's wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Utc::now()
    }
}

/// The system's source of unpredictable bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(
        clippy::expect_used,
        reason = "without randomness every token could be guessed; nothing may go on"
    )]
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system gives random bytes");
    }
}
