//! When each runner last contacted the daemon, and which process it is.
//!
//! A runner is one process at a time. A second process with the same registration is refused while the lease of the
//! first lasts, so that it neither ends the first one's jobs nor takes its offers.
//!
//! This is kept in memory only. The daemon's downtime must not count as a runner's silence, so every runner gets a new
//! lease at the start, and when the daemon stood still. Leases are measured on a clock that never jumps, so that setting
//! the wall clock loses no job.

use std::collections::HashMap;
use std::time::Duration;

use model::{RunnerId, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{DEADLINE_LOOK, RETURN, SILENCE, STANDSTILL};

/// A process of a runner, by the name that it gives itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Instance(Uuid);

impl Instance {
    /// The process of this name. Processes without a name share the nil one.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken;

/// When each runner last contacted the daemon since its start, and from which process.
pub(crate) struct Presence {
    /// When the daemon started, or last stood still.
    awake: Instant,
    /// By when the leases are checked again.
    check_by: Instant,
    heard: HashMap<RunnerId, Heard>,
    instances: HashMap<RunnerId, Instance>,
}

#[derive(Clone, Copy)]
struct Heard {
    wall: Timestamp,
    steady: Instant,
    /// It said goodbye then.
    has_left: bool,
}

impl Presence {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            awake: started,
            check_by: started + DEADLINE_LOOK,
            heard: HashMap::new(),
            instances: HashMap::new(),
        }
    }

    /// The leases were checked, and are checked again by then.
    pub(crate) fn checked(&mut self, again_by: Instant) {
        self.check_by = again_by;
    }

    #[cfg(test)]
    pub(crate) const fn check_by(&self) -> Instant {
        self.check_by
    }

    /// Restarts every lease if the leases should have been checked long ago: the daemon stood still, and heard nobody.
    /// Returns how late the check is then.
    pub(crate) fn notice_standstill(&mut self, now: Instant) -> Option<Duration> {
        let late = now.saturating_duration_since(self.check_by);
        if late < STANDSTILL {
            return None;
        }
        (self.awake, self.check_by) = (now, now + DEADLINE_LOOK);
        Some(late)
    }

    /// The time since which the daemon has run without a standstill.
    pub(crate) const fn awake_since(&self) -> Instant {
        self.awake
    }

    pub(crate) fn heard(&mut self, runner: RunnerId, wall: Timestamp, steady: Instant) {
        let heard = Heard {
            wall,
            steady,
            has_left: false,
        };
        self.heard.insert(runner, heard);
    }

    /// When the runner last contacted the daemon since its start, to be displayed.
    pub(crate) fn last(&self, runner: RunnerId) -> Option<Timestamp> {
        self.heard.get(&runner).map(|heard| heard.wall)
    }

    /// Whether the runner has contacted the daemon since its start, has not left, and its lease lasts.
    pub(crate) fn is_connected(&self, runner: RunnerId, now: Instant) -> bool {
        let heard = self.heard.get(&runner);
        heard.is_some_and(|heard| !heard.has_left && now < heard.steady + SILENCE)
    }

    pub(crate) fn lease_from(&self, runner: RunnerId) -> Instant {
        self.heard
            .get(&runner)
            .map_or(self.awake, |heard| heard.steady.max(self.awake))
    }

    /// Makes a process the runner, unless another one is. After a start the daemon does not know which process was the
    /// runner. A process whose admission would lose jobs must wait then, until the process that executes them has had
    /// time to reconnect.
    pub(crate) fn admit(
        &mut self,
        runner: RunnerId,
        instance: Instance,
        loses_jobs: bool,
        now: Instant,
    ) -> Result<(), Taken> {
        let is_taken = match self.instances.get(&runner) {
            Some(current) => *current != instance && now < self.lease_from(runner) + SILENCE,
            None => loses_jobs && now < self.awake + RETURN,
        };
        if is_taken {
            return Err(Taken);
        }
        self.instances.insert(runner, instance);
        Ok(())
    }

    /// Whether another process is the runner.
    pub(crate) fn is_another(&self, runner: RunnerId, instance: Instance) -> bool {
        let current = self.instances.get(&runner);
        current.is_some_and(|current| *current != instance)
    }

    /// Whether the process that was the runner said goodbye, and no other has become it.
    pub(crate) fn has_left(&self, runner: RunnerId) -> bool {
        self.heard.get(&runner).is_some_and(|heard| heard.has_left)
    }

    /// Ends the lease, so that any process can become the runner.
    pub(crate) fn release(&mut self, runner: RunnerId) {
        self.instances.remove(&runner);
        if let Some(heard) = self.heard.get_mut(&runner) {
            heard.has_left = true;
        }
    }

    /// Forgets runners that are not registered any more. `registered` are; as long as no more are known, there is nothing to
    /// forget that matters, and this is called after every change.
    pub(crate) fn keep(&mut self, registered: usize, is_registered: impl Fn(RunnerId) -> bool) {
        if self.heard.len().max(self.instances.len()) <= registered {
            return;
        }
        self.heard.retain(|runner, _| is_registered(*runner));
        self.instances.retain(|runner, _| is_registered(*runner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::POLL;
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
        assert!(presence.is_connected(runner(1), later));
        assert!(!presence.is_connected(runner(1), later + SILENCE));
        assert!(!presence.is_connected(runner(3), later));

        presence.keep(1, |id| id == runner(2));
        assert_eq!(presence.last(runner(1)), None);
        assert_eq!(presence.last(runner(2)), Some(at(100)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_standstill_starts_every_lease_anew_and_a_late_check_does_not() {
        assert!(POLL + DEADLINE_LOOK + STANDSTILL + RETURN < SILENCE);
        let started = Instant::now();
        let (id, one, two) = (runner(1), instance(1), instance(2));
        let mut presence = Presence::new(started);
        assert_eq!(presence.admit(id, one, false, started), Ok(()));
        presence.heard(id, at(0), started);
        let check = started + DEADLINE_LOOK;
        let late = check + STANDSTILL - Duration::from_millis(1);
        assert_eq!(presence.notice_standstill(late), None);
        assert_eq!(presence.lease_from(id), started);

        presence.checked(late);
        let woken = late + SILENCE;
        assert_eq!(presence.notice_standstill(woken), Some(SILENCE));
        assert_eq!(presence.notice_standstill(woken), None, "once");
        assert_eq!(
            (presence.lease_from(id), presence.awake_since()),
            (woken, woken)
        );
        assert_eq!(presence.lease_from(runner(2)), woken);
        // Nobody has heard of it yet, and nobody else takes its place.
        assert!(!presence.is_connected(id, woken));
        assert_eq!(presence.admit(id, two, true, woken), Err(Taken));
        assert_eq!(presence.admit(id, two, true, woken + SILENCE), Ok(()));
    }

    fn instance(number: u128) -> Instance {
        Instance::from_uuid(Uuid::from_u128(number))
    }

    #[tokio::test(start_paused = true)]
    async fn one_process_at_a_time_is_the_runner_until_it_leaves_or_falls_silent() {
        let started = Instant::now();
        let mut presence = Presence::new(started);
        let (id, one, two) = (runner(1), instance(1), instance(2));
        assert_eq!(presence.admit(id, one, false, started), Ok(()));
        presence.heard(id, at(0), started);
        let late = started + SILENCE - Duration::from_secs(1);
        assert_eq!(presence.admit(id, two, false, late), Err(Taken));
        assert!(presence.is_another(id, two));
        // Itself again, as after a crash.
        assert_eq!(presence.admit(id, one, true, late), Ok(()));

        assert_eq!(presence.admit(id, two, true, started + SILENCE), Ok(()));
        presence.heard(id, at(120), started + SILENCE);
        assert_eq!(
            presence.admit(id, one, false, started + SILENCE),
            Err(Taken)
        );
        presence.release(id);
        assert_eq!(presence.admit(id, one, false, started + SILENCE), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_start_whoever_executes_comes_back_before_anybody_takes_its_place() {
        let started = Instant::now();
        let mut presence = Presence::new(started);
        let (id, one, two) = (runner(1), instance(1), instance(2));
        assert_eq!(presence.admit(id, two, true, started), Err(Taken));
        assert_eq!(presence.admit(id, one, false, started), Ok(()));
        presence.heard(id, at(0), started);
        assert_eq!(presence.admit(id, two, true, started + RETURN), Err(Taken));

        // Nobody reconnected, or no job would be lost.
        let mut presence = Presence::new(started);
        assert_eq!(presence.admit(id, two, true, started + RETURN), Ok(()));
        assert_eq!(presence.admit(runner(2), two, false, started), Ok(()));
    }
}
