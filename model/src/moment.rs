//! The external inputs of a decision: time, order, randomness, and the sandbox for expressions.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};
use workflow::{EngineError, Sandbox};

use crate::{JobId, Timestamp};

/// A decision's position in the total order of all decisions. It defines which of two jobs is later, independent of clocks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Order(u64);

impl Order {
    pub const START: Self = Self(0);

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The clocks of the process.
pub trait Clock: Send + Sync {
    /// The wall clock. It jumps when it is set.
    fn now(&self) -> Timestamp;

    /// The wall clock at the start of the process, plus the elapsed time. It cannot be set.
    fn steady(&self) -> Timestamp;
}

/// A source of randomness.
pub trait Entropy: Send {
    /// Fills `bytes` with unpredictable values.
    fn fill(&mut self, bytes: &mut [u8]);

    fn uuid_v4(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// The external inputs of a decision.
pub struct Moment<'a> {
    /// The wall clock.
    pub now: Timestamp,
    /// The clock for measuring periods: [`World::time`](crate::World::time).
    pub steady: Timestamp,
    pub order: Order,
    pub entropy: &'a mut dyn Entropy,
    /// Evaluates expressions. An error if it could not be started.
    pub sandbox: Result<&'a Sandbox, EngineError>,
    /// The current length of a job's log, in bytes.
    pub log_bytes: &'a dyn Fn(JobId) -> u64,
    /// False while the disk has no space for new jobs.
    pub may_make_jobs: bool,
    /// The pause before jobs of scans that trigger each other, from the second lap on.
    pub cycle_pause: TimeDelta,
}

/// Repeatable randomness for tests: SplitMix64.
#[cfg(test)]
pub(crate) struct SeededEntropy(u64);

#[cfg(test)]
impl SeededEntropy {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

#[cfg(test)]
impl Entropy for SeededEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (mixed ^ (mixed >> 31)) as u8;
        }
    }
}
