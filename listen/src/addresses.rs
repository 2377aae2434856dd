//! Addresses, ranges of them, and how many connections each has.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;

/// The address, or its IPv6 network of 64 bits, because a home or data centre usually has a whole network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// A range of addresses, such as `172.17.0.0/16`, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr(IpNet);

impl Cidr {
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Whether it is larger than the largest range of private addresses, so that it has others.
    pub fn is_public(self) -> bool {
        self.0.prefix_len() < if self.0.addr().is_ipv4() { 8 } else { 7 }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let single = || text.parse().map(|it: IpAddr| it.to_canonical().into());
        let range = text.parse().or_else(|_| single());
        range.map(Self).map_err(|_| {
            format!("`{text}` is no address such as 192.0.2.7, and no range such as 172.17.0.0/16")
        })
    }
}

/// The connections of each address.
#[derive(Debug, Clone, Default)]
pub struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub struct Place {
    addresses: Addresses,
    /// None if the connections of this address are not counted.
    counted: Option<IpAddr>,
}

impl Addresses {
    /// Counts one more connection, unless its address has too many. Connections from this machine are not counted.
    pub fn enter(&self, address: IpAddr, limit: usize, uncounted: &[Cidr]) -> Option<Place> {
        let address = address.to_canonical();
        let is_counted = !address.is_loopback() && !uncounted.iter().any(|it| it.contains(address));
        let counted = is_counted.then(|| network(address));
        if let Some(counted) = counted {
            let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = connections.entry(counted).or_default();
            if *count >= limit {
                return None;
            }
            *count += 1;
        }
        Some(Place {
            addresses: self.clone(),
            counted,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(counted) = self.counted else { return };
        let mut connections = self
            .addresses
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = connections.get_mut(&counted) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&counted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_the_addresses_that_share_its_beginning() {
        let contains = |range: &str, address: &str| {
            let range: Cidr = range.parse().unwrap();
            range.contains(address.parse().unwrap())
        };
        for (range, inside, outside) in [
            ("172.17.0.0/16", "172.17.255.1", "172.18.0.1"),
            ("172.17.0.1/31", "172.17.0.0", "172.17.0.2"),
            ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"),
            ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("fd00::/8", "fdff::1", "fe80::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            assert!(contains(range, inside), "{range}: {inside}");
            assert!(!contains(range, outside), "{range}: {outside}");
        }
        let is_public = |range: &str| range.parse::<Cidr>().unwrap().is_public();
        for range in ["0.0.0.0/0", "128.0.0.0/1", "::/0", "2000::/3"] {
            assert!(is_public(range), "{range}");
        }
        for range in ["10.0.0.0/8", "fc00::/7", "192.0.2.1"] {
            assert!(!is_public(range), "{range}");
        }
        for wrong in [
            "",
            "/8",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/",
            "::/129",
            "a",
            "10.0.0/8",
        ] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn connections_of_a_remote_address_are_limited() {
        let proxy = "192.0.2.1".parse().unwrap();
        let addresses = Addresses::default();
        let enter = |address: &str| addresses.enter(address.parse().unwrap(), 2, &[proxy]);
        let first = enter("198.51.100.7");
        let second = enter("::ffff:198.51.100.7");
        assert!(first.is_some() && second.is_some());
        assert!(enter("198.51.100.7").is_none());
        assert!(enter("198.51.100.8").is_some());
        drop(first);
        assert!(enter("198.51.100.7").is_some());
        let many: Vec<_> = (0..5)
            .map(|_| (enter("127.0.0.1"), enter("192.0.2.1")))
            .collect();
        assert!(
            many.iter()
                .all(|(local, proxy)| local.is_some() && proxy.is_some())
        );
        drop((second, many));
        assert!(addresses.0.lock().unwrap().is_empty());
    }
}
