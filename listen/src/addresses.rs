//! Counts the connections of each address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::accept::Bounds;

/// The address, or its IPv6 network of 64 bits, because a home or data centre usually has a whole network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[derive(Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Counts one connection until it is dropped.
pub(crate) struct Place {
    addresses: Addresses,
    /// None if the connections of this address are not counted.
    counted: Option<IpAddr>,
}

impl Addresses {
    /// Counts one more connection, unless its address has too many. Connections from this machine are not counted.
    pub(crate) fn enter(&self, address: IpAddr, bounds: &Bounds) -> Option<Place> {
        let address = address.to_canonical();
        let is_counted = !address.is_loopback() && !bounds.uncounted.contains(&address);
        let counted = is_counted.then(|| network(address));
        if let Some(counted) = counted {
            let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = connections.entry(counted).or_default();
            if *count >= bounds.per_address {
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_of_a_remote_address_are_limited() {
        let proxy: IpAddr = "192.0.2.1".parse().unwrap();
        let bounds = Bounds {
            connections: 10,
            per_address: 2,
            uncounted: vec![proxy],
            head: Duration::ZERO,
            drain: Duration::ZERO,
        };
        let addresses = Addresses::default();
        let enter = |address: &str| addresses.enter(address.parse().unwrap(), &bounds);
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
