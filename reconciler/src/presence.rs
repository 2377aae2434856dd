//! When each runner was last heard.
//!
//! Kept in memory only: the daemon's own downtime must not count against anybody, so after a start every runner begins
//! with a fresh lease. Leases are measured on a clock that never jumps, so that setting the wall clock loses no job.

use std::collections::HashMap;

use model::{RunnerId, Timestamp};
use tokio::time::Instant;

/// When each runner was last heard since the daemon started.
pub(crate) struct Presence {
    started: Instant,
    heard: HashMap<RunnerId, Heard>,
}

#[derive(Clone, Copy)]
struct Heard {
    wall: Timestamp,
    steady: Instant,
}

impl Presence {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            started,
            heard: HashMap::new(),
        }
    }

    pub(crate) fn heard(&mut self, runner: RunnerId, wall: Timestamp, steady: Instant) {
        self.heard.insert(runner, Heard { wall, steady });
    }

    /// When the runner was last heard since the start, for people.
    pub(crate) fn last(&self, runner: RunnerId) -> Option<Timestamp> {
        self.heard.get(&runner).map(|heard| heard.wall)
    }

    /// From when its silence counts.
    pub(crate) fn lease_from(&self, runner: RunnerId) -> Instant {
        self.heard
            .get(&runner)
            .map_or(self.started, |heard| heard.steady)
    }

    /// Forgets runners that are not registered any more.
    pub(crate) fn keep(&mut self, is_registered: impl Fn(RunnerId) -> bool) {
        self.heard.retain(|runner, _| is_registered(*runner));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{at, runner};

    #[tokio::test(start_paused = true)]
    async fn a_lease_begins_with_the_daemon_and_again_whenever_the_runner_is_heard() {
        let started = Instant::now();
        let mut presence = Presence::new(started);
        assert_eq!(presence.lease_from(runner(1)), started);
        assert_eq!(presence.last(runner(1)), None);

        let later = started + Duration::from_secs(30);
        presence.heard(runner(1), at(100), later);
        presence.heard(runner(2), at(100), later);
        assert_eq!(presence.lease_from(runner(1)), later);
        assert_eq!(presence.last(runner(1)), Some(at(100)));

        presence.keep(|id| id == runner(2));
        assert_eq!(presence.last(runner(1)), None);
        assert_eq!(presence.last(runner(2)), Some(at(100)));
    }
}
