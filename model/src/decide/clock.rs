//! Following a jump of the wall clock.

use super::{Command, Decision, Refusal, Urgency};
use crate::Holder;
use crate::change::Change;
use crate::moment::Moment;
use crate::world::World;

/// Move the world's time, and the expiry times that this process set, by a jump of the wall clock. [`KeepEnd`] stores
/// the records with their new times.
#[derive(Debug, Clone)]
pub struct FollowClock;

impl Command for FollowClock {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    /// A second command for the same jump changes nothing.
    fn decide(self, _: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision {
            changes: vec![Change::ClockFollowed(moment.now - moment.steady)],
            answer: (),
        })
    }
}

/// Store a record whose expiry time has followed the clock.
#[derive(Debug, Clone)]
pub struct KeepEnd {
    pub holder: Holder,
}

impl Command for KeepEnd {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision {
            changes: world.as_it_is(&self.holder).into_iter().collect(),
            answer: (),
        })
    }
}
