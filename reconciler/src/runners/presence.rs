//! When each runner last contacted the daemon, and its present process.
//!
//! A runner is one process at a time. A second process with the same registration is refused while the lease of the
//! first process lasts, so that it neither ends the jobs of the first process nor takes its offers.
//!
//! This is kept in memory only. The daemon's downtime must not count as a runner's silence, so every runner gets a new
//! lease when the daemon starts and after a standstill. Leases are measured with a clock that never jumps, so that
//! setting the wall clock loses no job.

use std::collections::HashMap;
use std::time::Duration;

use model::{RunnerId, Timestamp};
use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{DEADLINE_CHECK, RETURN, SILENCE, STANDSTILL};

/// A process of a runner, identified by the id that it sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Instance(Uuid);

impl Instance {
    /// The process with this id. Processes without an id share the nil id.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken;

/// When and from which process each runner last contacted the daemon since its start.
pub(crate) struct Presence {
    /// When the daemon started, or when its last standstill ended.
    awake: Instant,
    /// The latest time for the next check of the leases.
    check_by: Instant,
    heard: HashMap<RunnerId, Heard>,
    instances: HashMap<RunnerId, Instance>,
}

#[derive(Clone, Copy)]
struct Heard {
    wall: Timestamp,
    steady: Instant,
    /// The runner said goodbye at this time.
    has_left: bool,
}

impl Presence {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            awake: started,
            check_by: started + DEADLINE_CHECK,
            heard: HashMap::new(),
            instances: HashMap::new(),
        }
    }

    /// Records that the leases were checked, and the latest time for the next check.
    pub(crate) fn checked(&mut self, again_by: Instant) {
        self.check_by = again_by;
    }

    #[cfg(test)]
    pub(crate) const fn check_by(&self) -> Instant {
        self.check_by
    }

    /// Restarts every lease if the check of the leases is long overdue: the daemon stood still and heard no runner.
    /// Then returns by how much the check is late.
    pub(crate) fn notice_standstill(&mut self, now: Instant) -> Option<Duration> {
        let late = now.saturating_duration_since(self.check_by);
        if late < STANDSTILL {
            return None;
        }
        (self.awake, self.check_by) = (now, now + DEADLINE_CHECK);
        Some(late)
    }

    /// Since when the daemon has run without a standstill.
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

    /// When the runner last contacted the daemon since its start, for display.
    pub(crate) fn last(&self, runner: RunnerId) -> Option<Timestamp> {
        self.heard.get(&runner).map(|heard| heard.wall)
    }

    /// True if the runner has contacted the daemon since its start, has not left, and its lease lasts.
    pub(crate) fn is_connected(&self, runner: RunnerId, now: Instant) -> bool {
        let heard = self.heard.get(&runner);
        heard.is_some_and(|heard| !heard.has_left && now < heard.steady + SILENCE)
    }

    pub(crate) fn lease_from(&self, runner: RunnerId) -> Instant {
        self.heard
            .get(&runner)
            .map_or(self.awake, |heard| heard.steady.max(self.awake))
    }

    /// Makes a process the runner, unless another process is. After a start, the daemon does not know which process was the
    /// runner. So if jobs would be lost, a process must wait until the process that runs them has had time to reconnect.
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

    /// True if another process is the runner.
    pub(crate) fn is_another(&self, runner: RunnerId, instance: Instance) -> bool {
        let current = self.instances.get(&runner);
        current.is_some_and(|current| *current != instance)
    }

    /// True if the runner's last process said goodbye, and no other process has replaced it.
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

    /// Forgets runners that are not registered any more. Called after every change, so it does nothing while there are
    /// no more entries than `registered` runners.
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
    async fn a_lease_starts_with_the_daemon_and_whenever_the_runner_is_heard() {
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
    async fn a_standstill_restarts_every_lease_but_a_late_check_does_not() {
        assert!(POLL + DEADLINE_CHECK + STANDSTILL + RETURN < SILENCE);
        let started = Instant::now();
        let (id, one, two) = (runner(1), instance(1), instance(2));
        let mut presence = Presence::new(started);
        assert_eq!(presence.admit(id, one, false, started), Ok(()));
        presence.heard(id, at(0), started);
        let check = started + DEADLINE_CHECK;
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
        // The runner is not connected yet, but no other process can take its place.
        assert!(!presence.is_connected(id, woken));
        assert_eq!(presence.admit(id, two, true, woken), Err(Taken));
        assert_eq!(presence.admit(id, two, true, woken + SILENCE), Ok(()));
    }

    fn instance(number: u128) -> Instance {
        Instance::from_uuid(Uuid::from_u128(number))
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_the_runner_until_it_leaves_or_is_silent() {
        let started = Instant::now();
        let mut presence = Presence::new(started);
        let (id, one, two) = (runner(1), instance(1), instance(2));
        assert_eq!(presence.admit(id, one, false, started), Ok(()));
        presence.heard(id, at(0), started);
        let late = started + SILENCE - Duration::from_secs(1);
        assert_eq!(presence.admit(id, two, false, late), Err(Taken));
        assert!(presence.is_another(id, two));
        // The same process again, as after a crash.
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
    async fn after_a_start_the_process_with_the_jobs_can_reconnect_first() {
        let started = Instant::now();
        let mut presence = Presence::new(started);
        let (id, one, two) = (runner(1), instance(1), instance(2));
        assert_eq!(presence.admit(id, two, true, started), Err(Taken));
        assert_eq!(presence.admit(id, one, false, started), Ok(()));
        presence.heard(id, at(0), started);
        assert_eq!(presence.admit(id, two, true, started + RETURN), Err(Taken));

        // After `RETURN`, or if no job would be lost, another process is admitted.
        let mut presence = Presence::new(started);
        assert_eq!(presence.admit(id, two, true, started + RETURN), Ok(()));
        assert_eq!(presence.admit(runner(2), two, false, started), Ok(()));
    }
}
