//! Delays between wrong passwords. They grow for each account, network and known browser, and end by themselves: an account is
//! never locked. Names of no user are counted like others, so the answers do not say which names exist.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::browser::KnownBrowser;
use crate::limits::{
    COUNTED, FIRST_DELAY, FORGOTTEN_AFTER, FREE_GUESSES, FREE_GUESSES_OF_NETWORK, LONGEST_DELAY,
};

/// What wrong passwords are counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    /// The name that was tried, whether there is such a user or not.
    Account(String),
    Network(IpAddr),
    /// Counted instead of account and network, so that guesses elsewhere do not delay the user of this browser.
    Browser(KnownBrowser),
}

impl Counted {
    const fn free_guesses(&self) -> u32 {
        match self {
            Self::Account(_) | Self::Browser(_) => FREE_GUESSES,
            Self::Network(_) => FREE_GUESSES_OF_NETWORK,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct GuessDelays(HashMap<Counted, Wrong>);

#[derive(Debug, Clone, Copy)]
struct Wrong {
    next_guess: Instant,
    /// When all wrong passwords are forgotten. Each adds [`FORGOTTEN_AFTER`], so this is also their number.
    forgotten_at: Instant,
}

impl GuessDelays {
    /// How long the next guess must wait.
    pub(crate) fn wait(&self, counted: &[Counted], now: Instant) -> Duration {
        let wrong = counted.iter().filter_map(|key| self.0.get(key));
        let waits = wrong.map(|wrong| wrong.next_guess.saturating_duration_since(now));
        waits.max().unwrap_or_default()
    }

    /// Counts a guess as wrong before it is checked, so that guesses at the same time cannot avoid the delay.
    pub(crate) fn begin(&mut self, counted: &[Counted], now: Instant) {
        for key in counted {
            self.make_room(now);
            let longest = FORGOTTEN_AFTER * most_wrong(key);
            let wrong = self.0.entry(key.clone()).or_insert(Wrong {
                next_guess: now,
                forgotten_at: now,
            });
            let forgotten_in = wrong.forgotten_at.saturating_duration_since(now);
            let forgotten_in = (forgotten_in + FORGOTTEN_AFTER).min(longest);
            wrong.forgotten_at = now + forgotten_in;
            wrong.next_guess = now + delay(key, number(forgotten_in));
        }
    }

    /// Takes back what [`GuessDelays::begin`] counted, because the password was right. The account and the browser begin anew. The
    /// network does not, because its other users may be guessing.
    pub(crate) fn was_right(&mut self, counted: &[Counted], began: Instant) {
        for key in counted {
            match key {
                Counted::Account(_) | Counted::Browser(_) => {
                    self.0.remove(key);
                }
                Counted::Network(_) => {
                    if let Some(wrong) = self.0.get_mut(key) {
                        wrong.next_guess = began;
                        wrong.forgotten_at -= FORGOTTEN_AFTER;
                    }
                }
            }
        }
    }

    /// Forgets what is over, or else the entry with the fewest wrong passwords.
    fn make_room(&mut self, now: Instant) {
        if self.0.len() < COUNTED {
            return;
        }
        self.0.retain(|_, wrong| wrong.forgotten_at > now);
        let soonest = self.0.iter().min_by_key(|(_, wrong)| wrong.forgotten_at);
        if self.0.len() >= COUNTED
            && let Some(key) = soonest.map(|(key, _)| key.clone())
        {
            self.0.remove(&key);
        }
    }
}

/// Wrong passwords that are not forgotten. A part of one counts as one.
fn number(forgotten_in: Duration) -> u32 {
    let number = forgotten_in.as_nanos().div_ceil(FORGOTTEN_AFTER.as_nanos());
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The number from which the delay does not grow. More are not counted, so that an attack is forgotten within two hours on an
/// account.
fn most_wrong(key: &Counted) -> u32 {
    let doublings = (LONGEST_DELAY.as_secs() / FIRST_DELAY.as_secs()).ilog2() + 1;
    key.free_guesses() + 1 + doublings
}

fn delay(key: &Counted, wrong: u32) -> Duration {
    match wrong.checked_sub(key.free_guesses() + 1) {
        None => Duration::ZERO,
        Some(doublings) => {
            let factor = 2_u32.saturating_pow(doublings);
            FIRST_DELAY.saturating_mul(factor).min(LONGEST_DELAY)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use uuid::Uuid;

    use super::*;

    fn account(name: &str) -> Counted {
        Counted::Account(name.to_owned())
    }

    fn network(number: u32) -> Counted {
        Counted::Network(Ipv4Addr::from_bits(number).into())
    }

    fn browser(number: u128) -> Counted {
        Counted::Browser(KnownBrowser::new(Uuid::from_u128(number)))
    }

    /// Guesses as soon as it is allowed, and returns the seconds after each guess.
    fn waits(delays: &mut GuessDelays, keys: &[Counted], now: &mut Instant, n: usize) -> Vec<u64> {
        let guess = |_| {
            delays.begin(keys, *now);
            let wait = delays.wait(keys, *now);
            *now += wait;
            wait.as_secs()
        };
        (0..n).map(guess).collect()
    }

    #[test]
    fn the_delay_of_an_account_grows_from_any_network_and_has_an_end() {
        let (mut delays, mut now) = (GuessDelays::default(), Instant::now());
        let mut seen = Vec::new();
        for n in 0..12 {
            let keys = [account("anna"), network(n)];
            seen.extend(waits(&mut delays, &keys, &mut now, 1));
        }
        assert_eq!(seen, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30]);
        let others = [account("ben"), network(99)];
        assert_eq!(delays.wait(&others, now), Duration::ZERO);
    }

    #[test]
    fn a_network_is_delayed_whatever_names_it_tries() {
        let (mut delays, mut now) = (GuessDelays::default(), Instant::now());
        let mut seen = Vec::new();
        for n in 0..24 {
            let keys = [account(&n.to_string()), network(1)];
            seen.extend(waits(&mut delays, &keys, &mut now, 1));
        }
        assert_eq!(seen[..20], [0; 20]);
        assert_eq!(seen[20..], [1, 2, 4, 8]);
    }

    #[test]
    fn guesses_elsewhere_do_not_delay_a_known_browser() {
        let (mut delays, mut now) = (GuessDelays::default(), Instant::now());
        waits(&mut delays, &[account("anna"), network(1)], &mut now, 40);
        let known = [browser(1)];
        assert_eq!(delays.wait(&known, now), Duration::ZERO);
        let own = waits(&mut delays, &known, &mut now, 7);
        assert_eq!(own, [0, 0, 0, 0, 0, 1, 2], "it has a delay of its own");
        assert_eq!(delays.wait(&[browser(2)], now), Duration::ZERO);
    }

    #[test]
    fn guesses_at_the_same_time_are_counted_before_they_are_checked() {
        let (mut delays, now) = (GuessDelays::default(), Instant::now());
        let keys = [account("anna"), network(1)];
        let admitted = (0..100).filter(|_| {
            let may = delays.wait(&keys, now).is_zero();
            if may {
                delays.begin(&keys, now);
            }
            may
        });
        assert_eq!(admitted.count(), 6);
    }

    #[test]
    fn the_right_password_clears_the_account_but_not_the_wrong_ones_of_its_network() {
        let (mut delays, mut now) = (GuessDelays::default(), Instant::now());
        let own = [account("mallory"), network(1)];
        waits(&mut delays, &[account("anna"), network(1)], &mut now, 10);
        waits(&mut delays, &own, &mut now, 10);
        delays.begin(&own, now);
        delays.was_right(&own, now);
        assert_eq!(delays.wait(&own, now), Duration::ZERO, "it counts nowhere");
        assert_eq!(waits(&mut delays, &own, &mut now, 1), [1]);
        for _ in 0..100 {
            now += delays.wait(&own, now);
            delays.begin(&own, now);
            delays.was_right(&own, now);
        }
        assert_eq!(delays.wait(&own, now), Duration::ZERO);
        assert_eq!(waits(&mut delays, &own, &mut now, 1), [2]);
    }

    #[test]
    fn wrong_passwords_are_forgotten_one_by_one() {
        let (mut delays, mut now) = (GuessDelays::default(), Instant::now());
        let keys = [account("anna")];
        waits(&mut delays, &keys, &mut now, 100);
        assert_eq!(waits(&mut delays, &keys, &mut now, 1), [30]);
        now += 2 * FORGOTTEN_AFTER;
        assert_eq!(waits(&mut delays, &keys, &mut now, 1), [16]);
        now += 12 * FORGOTTEN_AFTER;
        assert_eq!(waits(&mut delays, &keys, &mut now, 1), [0]);
    }

    #[test]
    fn the_number_of_entries_is_bounded_and_the_most_guessed_ones_stay() {
        let (mut delays, mut now) = (GuessDelays::default(), Instant::now());
        waits(&mut delays, &[account("anna")], &mut now, 12);
        let before = delays.wait(&[account("anna")], now - Duration::from_secs(1));
        for n in 0..3 * COUNTED {
            delays.begin(&[account(&n.to_string())], now);
        }
        assert_eq!(delays.0.len(), COUNTED);
        assert_eq!(
            delays.wait(&[account("anna")], now - Duration::from_secs(1)),
            before
        );
        delays.begin(&[account("later")], now + 2 * FORGOTTEN_AFTER);
        assert_eq!(delays.0.len(), 2);
    }
}
