//! How often a channel takes messages, and when a failed attempt is repeated.

use std::time::Duration;

use crate::Kind;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The limits of a channel: so many messages within so much time. All of them hold.
pub const fn pace(kind: Kind) -> &'static [(usize, Duration)] {
    const MAIL: [(usize, Duration); 1] = [(30, seconds(3600))];
    const SLACK: [(usize, Duration); 1] = [(1, seconds(1))];
    const DISCORD: [(usize, Duration); 2] = [(5, seconds(2)), (30, seconds(60))];
    // ntfy.sh allows one request each 5 s in the long run.
    const NTFY: [(usize, Duration); 1] = [(12, seconds(60))];
    const OWN: [(usize, Duration); 1] = [(10, seconds(1))];
    match kind {
        Kind::Email => &MAIL,
        Kind::Slack => &SLACK,
        Kind::Discord => &DISCORD,
        Kind::Ntfy => &NTFY,
        Kind::Webhook | Kind::Command => &OWN,
    }
}

/// The pauses after the first attempts. Hours follow.
const FIRST_PAUSES: [Duration; 5] = [
    seconds(10),
    seconds(30),
    seconds(120),
    seconds(600),
    seconds(1800),
];

/// Pauses of an hour until the attempts have taken 24 hours.
const HOURS: u32 = 23;

/// The pause after the failed attempt with this number (the first is 1), spread by ± 20 % with a `random` number. `None` if
/// it was the last attempt.
pub fn backoff(attempt: u32, random: u32) -> Option<Duration> {
    let before = attempt.saturating_sub(1);
    let pause = match FIRST_PAUSES.get(before as usize) {
        Some(pause) => *pause,
        None if before < FIRST_PAUSES.len() as u32 + HOURS => seconds(3600),
        None => return None,
    };
    let spread = 0.8 + 0.4 * f64::from(random) / f64::from(u32::MAX);
    Some(pause.mul_f64(spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_after_a_day() {
        let middle = u32::MAX / 2;
        let pauses: Vec<u64> = (1..)
            .map_while(|attempt| backoff(attempt, middle))
            .map(|pause| pause.as_secs_f64().round() as u64)
            .collect();
        assert_eq!(pauses[..7], [10, 30, 120, 600, 1800, 3600, 3600]);
        let day = 24 * 3600;
        let total: u64 = pauses.iter().sum();
        assert!(total <= day && total + 3600 > day, "{total}");
        assert_eq!(backoff(u32::MAX, 0), None);
    }

    #[test]
    fn a_random_number_spreads_a_pause_by_a_fifth() {
        let pause = |random| backoff(6, random).unwrap().as_secs_f64().round();
        assert_eq!((pause(0), pause(u32::MAX)), (2880.0, 4320.0));
    }
}
