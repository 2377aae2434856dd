//! Pauses between attempts. A pause follows only a failure.

use std::time::Duration;

use uuid::Uuid;

/// Counts the failures since the last success. The pauses grow with the count.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Pauses that begin at about `first` and double up to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    pub const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure and returns how long to wait.
    pub fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        // The random bits of a version 4 id are the only randomness needed here.
        let [random, ..] = Uuid::new_v4().into_bytes();
        self.pause(random)
    }

    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The pause doubles with each failure, up to a limit. A random part spreads it over its upper half, so that the clients of a
    /// restarted daemon do not all reconnect at once.
    fn pause(&self, random: u8) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        let doubled = self.first.saturating_mul(1 << doublings);
        let half = doubled.min(self.longest) / 2;
        half + half * u32::from(random) / 255
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    fn pause(failures: u32, random: u8) -> Duration {
        let backoff = Backoff {
            failures,
            ..Backoff::new(FIRST, LONGEST)
        };
        backoff.pause(random)
    }

    #[test]
    fn pauses_double_up_to_a_limit() {
        assert_eq!(pause(1, 0), FIRST / 2);
        assert_eq!(pause(1, 255), FIRST);
        assert_eq!(pause(2, 255), FIRST * 2);
        assert_eq!(pause(3, 255), FIRST * 4);
        assert_eq!(pause(1_000, 255), LONGEST);
        assert_eq!(pause(u32::MAX, 0), LONGEST / 2);
    }

    #[test]
    fn a_success_resets_the_pause() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        for _ in 0..10 {
            backoff.failed();
        }
        backoff.succeeded();
        assert!(backoff.failed() <= FIRST);
    }
}
