//! How many requests one caller may make in a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::COUNTED_CALLERS;

/// So many a second for ever, and so many at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: NonZeroU32,
    pub burst: NonZeroU32,
}

/// The callers of late, each with the moment from which its whole burst is available again.
pub(crate) struct Rates<K> {
    rate: Rate,
    whole_again: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> Rates<K> {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            rate,
            whole_again: Mutex::default(),
        }
    }

    /// Counts one. After too many the error says how long to wait, and this one does not count.
    pub(crate) fn take(&self, caller: K, now: Instant) -> Result<(), Duration> {
        let mut callers = self
            .whole_again
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= COUNTED_CALLERS {
            callers.retain(|_, whole_again| *whole_again > now);
            if callers.len() > COUNTED_CALLERS / 2 {
                tracing::warn!(
                    callers = callers.len(),
                    "too many callers to count the requests of each; the counts begin anew"
                );
                callers.clear();
            }
        }
        let whole_again = callers.entry(caller).or_insert(now);
        *whole_again = taken(self.rate, *whole_again, now)?;
        Ok(())
    }
}

/// When the burst is whole again after one more at `now`, or how long to wait for one more.
fn taken(rate: Rate, whole_again: Instant, now: Instant) -> Result<Instant, Duration> {
    let one = Duration::from_secs(1) / rate.per_second.get();
    let after = whole_again.max(now) + one;
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
    fn after_a_burst_the_rate_is_kept() {
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
    fn callers_that_rest_are_forgotten_and_their_number_is_bounded() {
        let rates = Rates::new(RATE);
        let start = Instant::now();
        for caller in 0..COUNTED_CALLERS {
            rates.take(caller, start).unwrap();
        }
        rates
            .take(usize::MAX, start + Duration::from_secs(1))
            .unwrap();
        assert_eq!(rates.whole_again.lock().unwrap().len(), 1);
        for caller in 0..3 * COUNTED_CALLERS {
            rates.take(caller, start + Duration::from_secs(1)).unwrap();
        }
        assert!(rates.whole_again.lock().unwrap().len() <= COUNTED_CALLERS);
    }
}
