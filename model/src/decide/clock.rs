//! A jump of the wall clock is followed.

use super::{Command, Decision, Refusal, Urgency};
use crate::Holder;
use crate::change::Change;
use crate::moment::Moment;
use crate::world::World;

/// Let the world's time, and the ends that this process set, follow a jump of the wall clock. Records are stored with
/// their new ends by [`KeepEnd`].
#[derive(Debug, Clone)]
pub struct FollowClock;

impl Command for FollowClock {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    /// A second one beside the first finds nothing left to follow.
    fn decide(self, _: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision {
            changes: vec![Change::ClockFollowed(moment.now - moment.steady)],
            answer: (),
        })
    }
}

/// Store a record as it is, with an end that has followed the clock.
#[derive(Debug, Clone)]
pub struct KeepEnd {
    /// Whose end.
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
