//! Pauses between attempts to reach the daemon. They exist only after failures: nothing that succeeds waits here.

use std::time::Duration;

use uuid::Uuid;

use crate::limits;

/// Counts the failures since the last success.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next pause is short again.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How long to wait after one more failure.
    pub(crate) fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        // The random bits of a version 4 id are the only randomness needed here.
        let [random, ..] = Uuid::new_v4().into_bytes();
        pause(self.failures, random)
    }
}

/// Doubled with each failure, bounded, and drawn from the upper half, so that many runners of a restarted daemon do not
/// come at once.
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
        assert_eq!(pause(2, 255), limits::FIRST_PAUSE * 2);
        assert_eq!(pause(u32::MAX, 255), limits::LONGEST_PAUSE);
    }

    #[test]
    fn a_success_makes_the_next_pause_short() {
        let mut backoff = Backoff::default();
        for _ in 0..10 {
            backoff.failed();
        }
        backoff.succeeded();
        assert!(backoff.failed() <= limits::FIRST_PAUSE);
    }
}
