//! A clock that is set by hand, seeded randomness, and a defect that a test can enable.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use model::{Clock, Entropy, Timestamp};

use super::at;

/// A defect that a test enables: decisions that make a job panic.
#[derive(Default)]
pub(crate) struct Defect {
    is_enabled: AtomicBool,
    panics: AtomicUsize,
}

impl Defect {
    pub(crate) fn enable(&self) {
        self.is_enabled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn disable(&self) {
        self.is_enabled.store(false, Ordering::SeqCst);
    }

    /// The number of decisions that have panicked.
    pub(crate) fn panics(&self) -> usize {
        self.panics.load(Ordering::SeqCst)
    }
}

/// Random bytes of a job's id. No other decision asks for as many.
const JOB_ID_RANDOM: usize = 10;

pub(super) struct Breakable(pub(super) Seeded, pub(super) Arc<Defect>);

impl Entropy for Breakable {
    fn fill(&mut self, bytes: &mut [u8]) {
        if bytes.len() == JOB_ID_RANDOM && self.1.is_enabled.load(Ordering::SeqCst) {
            self.1.panics.fetch_add(1, Ordering::SeqCst);
            panic!("a test has enabled a defect");
        }
        self.0.fill(bytes);
    }
}

/// Repeatable randomness: SplitMix64.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap();
        usize::try_from(self.next() % bound).unwrap()
    }
}

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.next().to_le_bytes()[0];
        }
    }
}

/// The wall-clock time, and the sum of its jumps. Both are set by hand.
pub(crate) struct HandClock(Mutex<(Timestamp, TimeDelta)>);

impl HandClock {
    pub(crate) fn at(seconds: i64) -> Arc<Self> {
        Arc::new(Self(Mutex::new((at(seconds), TimeDelta::zero()))))
    }

    pub(crate) fn set_forward(&self, by: TimeDelta) {
        self.0.lock().unwrap().0 += by;
    }

    /// Sets the wall clock.
    pub(crate) fn jump(&self, by: TimeDelta) {
        let mut time = self.0.lock().unwrap();
        time.0 += by;
        time.1 += by;
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn steady(&self) -> Timestamp {
        let (now, jumped) = *self.0.lock().unwrap();
        now - jumped
    }
}
