//! Limits the requests of each caller with a token bucket.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::COUNTED_CALLERS;

/// A token bucket: `per_second` tokens are added, at most `burst` are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: NonZeroU32,
    pub burst: NonZeroU32,
}

/// Recent callers, each with the time when its bucket is full again.
pub(crate) struct Rates<K> {
    rate: Rate,
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> Rates<K> {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            rate,
            full_at: Mutex::default(),
        }
    }

    /// Takes one token. If there is none, the error is the time to wait.
    pub(crate) fn take(&self, caller: K, now: Instant) -> Result<(), Duration> {
        let mut callers = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= COUNTED_CALLERS {
            callers.retain(|_, full_at| *full_at > now);
            if callers.len() > COUNTED_CALLERS / 2 {
                tracing::warn!(
                    callers = callers.len(),
                    "too many callers to count the requests of each; all counts are reset"
                );
                callers.clear();
            }
        }
        let full_at = callers.entry(caller).or_insert(now);
        *full_at = taken(self.rate, *full_at, now)?;
        Ok(())
    }
}

/// When the bucket is full again after one more token is taken at `now`, or how long to wait for a token.
fn taken(rate: Rate, full_at: Instant, now: Instant) -> Result<Instant, Duration> {
    let one = Duration::from_secs(1) / rate.per_second.get();
    let after = full_at.max(now) + one;
    match (after - now).checked_sub(one * rate.burst.get()) {
        None | Some(Duration::ZERO) => Ok(after),
        Some(wait) => Err(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: NonZeroU32::new(10).unwrap(),
        burst: NonZeroU32::new(3).unwrap(),
    };

    #[test]
    fn after_a_burst_the_rate_applies() {
        let rates = Rates::new(RATE);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(rates.take("a", start), Ok(()));
        }
        let tenth = Duration::from_millis(100);
        assert_eq!(rates.take("a", start), Err(tenth));
        assert_eq!(rates.take("b", start), Ok(()), "another caller");
        assert_eq!(rates.take("a", start + tenth / 2), Err(tenth / 2));
        assert_eq!(rates.take("a", start + tenth), Ok(()));
        assert_eq!(rates.take("a", start + tenth), Err(tenth));
        let later = start + Duration::from_secs(60);
        for _ in 0..3 {
            assert_eq!(rates.take("a", later), Ok(()));
        }
        assert!(rates.take("a", later).is_err());
    }

    #[test]
    fn idle_callers_are_forgotten_and_the_number_of_callers_is_bounded() {
        let rates = Rates::new(RATE);
        let start = Instant::now();
        for caller in 0..COUNTED_CALLERS {
            rates.take(caller, start).unwrap();
        }
        rates
            .take(usize::MAX, start + Duration::from_secs(1))
            .unwrap();
        assert_eq!(rates.full_at.lock().unwrap().len(), 1);
        for caller in 0..3 * COUNTED_CALLERS {
            rates.take(caller, start + Duration::from_secs(1)).unwrap();
        }
        assert!(rates.full_at.lock().unwrap().len() <= COUNTED_CALLERS);
    }
}
