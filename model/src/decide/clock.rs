//! Follows a jump of the wall clock, and records a jump that is not followed yet.

use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::Holder;
use crate::change::Change;
use crate::moment::Moment;
use crate::world::World;

/// Record the wall clock and the world's time for the next process.
#[derive(Debug, Clone)]
pub struct NoteClocks;

impl Command for NoteClocks {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let clocks = world.clocks_at(moment.now, moment.steady);
        Ok(Decision::of([Change::Clocks(Some(Arc::new(clocks)))]))
    }
}

/// Move the world's time, and the expiry times that belong to it, by a jump of the wall clock. [`StoreExpiry`] then
/// stores the records with their new times, and finally [`ForgetClocks`] removes the record of the jump.
#[derive(Debug, Clone)]
pub struct FollowClock;

impl Command for FollowClock {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    /// A second command for the same jump changes nothing.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let by = moment.now - moment.steady;
        let clocks = world.clocks_followed(moment.now, moment.steady);
        if by.is_zero() {
            return Ok(Decision::unchanged(()));
        }
        let clocks = Change::Clocks(Some(Arc::new(clocks)));
        Ok(Decision::of([Change::ClockFollowed(by), clocks]))
    }
}

/// Remove the record of a jump, because every stored expiry time has followed it.
#[derive(Debug, Clone)]
pub struct ForgetClocks;

impl Command for ForgetClocks {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let noted = world.clocks().map(|_| Change::Clocks(None));
        Ok(Decision::of(noted))
    }
}

/// Store a record whose expiry time has followed the clock.
#[derive(Debug, Clone)]
pub struct StoreExpiry {
    pub holder: Holder,
}

impl Command for StoreExpiry {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision::of(world.as_it_is(&self.holder)))
    }
}
