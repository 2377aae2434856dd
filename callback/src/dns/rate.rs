//! The response rate limit: whoever forges senders cannot make us flood them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use listen::Cidr;

use crate::limits::{ANSWERS_PER_SECOND, NETWORKS};

pub(crate) struct RateLimit {
    since: Instant,
    /// Answers of this second by network.
    answers: HashMap<IpAddr, u32>,
    unlimited: Vec<Cidr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Answer,
    /// A real sender asks again over TCP, where no sender is forged.
    Truncated,
    Silence,
}

impl RateLimit {
    pub(crate) fn new(unlimited: Vec<Cidr>) -> Self {
        Self {
            since: Instant::now(),
            answers: HashMap::new(),
            unlimited,
        }
    }

    /// Counts one more answer.
    pub(crate) fn count(&mut self, address: IpAddr, now: Instant) -> Verdict {
        if self.unlimited.iter().any(|range| range.contains(address)) {
            return Verdict::Answer;
        }
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.answers.clear();
        }
        let network = network(address);
        if self.answers.len() >= NETWORKS && !self.answers.contains_key(&network) {
            return Verdict::Truncated;
        }
        let answers = self.answers.entry(network).or_default();
        *answers = answers.saturating_add(1);
        match answers.checked_sub(ANSWERS_PER_SECOND) {
            None | Some(0) => Verdict::Answer,
            Some(over) if over % 2 == 0 => Verdict::Truncated,
            Some(_) => Verdict::Silence,
        }
    }
}

/// The network of 24 or 56 bits: a sender has no more of them than it pays for.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() >> 8 << 8).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 72 << 72).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_gets_fifty_answers_a_second_then_half_of_them_truncated() {
        let mut limit = RateLimit::new(vec!["198.51.100.0/24".parse().unwrap()]);
        let start = Instant::now();
        let mut count = |address: &str, after: u64| {
            limit.count(
                address.parse().unwrap(),
                start + Duration::from_millis(after),
            )
        };
        for (first, second, other) in [
            ("192.0.2.1", "192.0.2.254", "192.0.3.1"),
            ("2001:db8::1", "2001:db8:0:ff:9::1", "2001:db8:0:100::1"),
        ] {
            for _ in 0..25 {
                assert_eq!(count(first, 0), Verdict::Answer);
                assert_eq!(count(second, 10), Verdict::Answer);
            }
            for _ in 0..25 {
                assert_eq!(count(first, 20), Verdict::Silence);
                assert_eq!(count(second, 20), Verdict::Truncated);
            }
            assert_eq!(count(other, 30), Verdict::Answer);
        }
        assert_eq!(count("192.0.2.1", 1500), Verdict::Answer);
        for _ in 0..200 {
            assert_eq!(count("::ffff:198.51.100.7", 1500), Verdict::Answer);
        }
    }

    #[test]
    fn so_many_networks_are_counted_at_most() {
        let mut limit = RateLimit::new(Vec::new());
        let now = Instant::now();
        for number in 0..u32::try_from(NETWORKS).unwrap() {
            let address = Ipv4Addr::from_bits(number << 8).into();
            assert_eq!(limit.count(address, now), Verdict::Answer);
        }
        let other = "2001:db8::1".parse().unwrap();
        assert_eq!(limit.count(other, now), Verdict::Truncated);
        assert_eq!(limit.answers.len(), NETWORKS);
    }
}
