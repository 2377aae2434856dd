//! The daemon's only sources of time and randomness.

#![expect(
    clippy::disallowed_methods,
    reason = "the only place that reads the wall clock"
)]

use chrono::{TimeDelta, Utc};
use model::{Clock, Entropy, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use store::failpoint::clock_offset;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock {
    /// The wall clock minus the time since boot, when this process started.
    began: TimeDelta,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self {
            began: wall() - since_boot(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        wall()
    }

    fn steady(&self) -> Timestamp {
        since_boot() + self.began
    }
}

fn wall() -> Timestamp {
    Utc::now() + TimeDelta::seconds(clock_offset())
}

/// The time since boot, counted from the beginning of 1970. It also counts while the machine sleeps.
fn since_boot() -> Timestamp {
    let since = clock_gettime(ClockId::Boottime);
    let nanos = u32::try_from(since.tv_nsec).unwrap_or(0);
    Timestamp::from_timestamp(since.tv_sec, nanos).unwrap_or_default()
}

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
