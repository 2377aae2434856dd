//! Random choices for stories. Every result has the seed, and `EVERSCAN_SEED` repeats the choices. The timing of the
//! processes is not repeated.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::time::Duration;

pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A random seed, unless `EVERSCAN_SEED` gives one.
    pub(crate) fn seed() -> u64 {
        let chosen = std::env::var("EVERSCAN_SEED").ok();
        chosen.map_or_else(
            || RandomState::new().build_hasher().finish(),
            |seed| seed.parse().unwrap(),
        )
    }

    /// SplitMix64: every seed is equally good.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn milliseconds(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }
}
