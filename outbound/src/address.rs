//! Which addresses need an entry in the daemon's configuration.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::LazyLock;

use ipnet::IpNet;
use thiserror::Error;

/// An entry of `outbound.allow`: an address, a range of addresses (`10.0.0.0/8`) or a host with its port
/// (`hooks.example.org:443`), whatever its address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    Net(IpNet),
    Host { name: String, port: u16 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is neither an address, nor a range such as `10.0.0.0/8`, nor `host:port`")]
pub struct ParseAllowedError;

impl FromStr for Allowed {
    type Err = ParseAllowedError;

    fn from_str(text: &str) -> Result<Self, ParseAllowedError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Net(address.to_canonical().into()));
        }
        if let Ok(net) = text.parse() {
            return Ok(Self::Net(net));
        }
        let (name, port) = text.rsplit_once(':').ok_or(ParseAllowedError)?;
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().map_err(|_| ParseAllowedError)?;
        let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
        is_name
            .then(|| Self::Host {
                name: name.to_owned(),
                port,
            })
            .ok_or(ParseAllowedError)
    }
}

impl Allowed {
    pub(crate) fn allows(&self, host: &str, address: SocketAddr) -> bool {
        match self {
            Self::Net(net) => net.contains(&address.ip()),
            Self::Host { name, port } => name.eq_ignore_ascii_case(host) && *port == address.port(),
        }
    }
}

const LOOPBACK: &str = "an address of this machine";
const PRIVATE: &str = "an address of a private network";
const LINK_LOCAL: &str = "a link-local address";
const METADATA: &str = "the metadata service of a cloud";
const MULTICAST: &str = "a multicast address";
const RESERVED: &str = "a reserved address";

/// The first range that has an address names it.
const GUARDED: &[(&str, &str)] = &[
    ("169.254.169.254/32", METADATA),
    ("168.63.129.16/32", METADATA),
    ("100.100.100.200/32", METADATA),
    ("192.0.0.192/32", METADATA),
    ("fd00:ec2::254/128", METADATA),
    ("0.0.0.0/8", LOOPBACK),
    ("127.0.0.0/8", LOOPBACK),
    ("::/127", LOOPBACK),
    ("10.0.0.0/8", PRIVATE),
    ("172.16.0.0/12", PRIVATE),
    ("192.168.0.0/16", PRIVATE),
    ("100.64.0.0/10", PRIVATE),
    ("fc00::/7", PRIVATE),
    ("fec0::/10", PRIVATE),
    ("169.254.0.0/16", LINK_LOCAL),
    ("fe80::/10", LINK_LOCAL),
    ("224.0.0.0/4", MULTICAST),
    ("ff00::/8", MULTICAST),
    ("192.0.0.0/24", RESERVED),
    ("192.0.2.0/24", RESERVED),
    ("192.88.99.0/24", RESERVED),
    ("198.18.0.0/15", RESERVED),
    ("198.51.100.0/24", RESERVED),
    ("203.0.113.0/24", RESERVED),
    ("240.0.0.0/4", RESERVED),
    // Tunnels and translations of IPv4, and what is not assigned to anybody.
    ("::/96", RESERVED),
    ("::ffff:0:0:0/96", RESERVED),
    ("64:ff9b:1::/48", RESERVED),
    ("100::/64", RESERVED),
    ("2001::/23", RESERVED),
    ("2001:db8::/32", RESERVED),
    ("2002::/16", RESERVED),
    ("3fff::/20", RESERVED),
    ("5f00::/16", RESERVED),
];

static RANGES: LazyLock<Vec<(IpNet, &str)>> = LazyLock::new(|| {
    let parsed = GUARDED
        .iter()
        .map(|(net, range)| (net.parse().expect("a valid range"), *range));
    parsed.collect()
});

/// What the address is, if only an entry of the configuration allows it. It must be canonical.
pub(crate) fn guarded_range(address: IpAddr) -> Option<&'static str> {
    let address = behind_nat64(address).unwrap_or(address);
    let mut ranges = RANGES.iter();
    ranges
        .find(|(net, _)| net.contains(&address))
        .map(|(_, range)| *range)
}

/// The IPv4 address that `64:ff9b::/96` stands for. Networks without IPv4 reach the whole Internet by it.
fn behind_nat64(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else {
        return None;
    };
    let bits = u32::from(high) << 16 | u32::from(low);
    Some(Ipv4Addr::from(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_need_no_entry() {
        for guarded in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "169.254.1.1",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "198.18.0.1",
            "192.0.2.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "::ffff:0:7f00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ] {
            let address: IpAddr = guarded.parse().unwrap();
            assert!(guarded_range(address.to_canonical()).is_some(), "{guarded}");
        }
        for public in [
            "1.1.1.1",
            "100.63.255.255",
            "172.32.0.1",
            "168.63.129.17",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2606:4700::1111",
            "2a00::1",
        ] {
            let address: IpAddr = public.parse().unwrap();
            assert_eq!(guarded_range(address.to_canonical()), None, "{public}");
        }
    }

    #[test]
    fn entries_are_addresses_ranges_and_hosts_with_ports() {
        let allows = |entry: &str, host: &str, address: &str| {
            let entry: Allowed = entry.parse().unwrap();
            entry.allows(host, address.parse().unwrap())
        };
        assert!(allows("10.0.0.5", "a", "10.0.0.5:25"));
        assert!(allows("::ffff:10.0.0.5", "a", "10.0.0.5:25"));
        assert!(!allows("10.0.0.5", "a", "10.0.0.6:25"));
        assert!(allows("10.0.0.0/8", "a", "10.9.9.9:25"));
        assert!(allows("Mail.Internal:25", "mail.internal", "10.9.9.9:25"));
        assert!(!allows("mail.internal:25", "mail.internal", "10.9.9.9:26"));
        assert!(!allows("mail.internal:25", "other.internal", "10.9.9.9:25"));
        assert!(allows("[::1]:25", "::1", "[::1]:25"));
        for wrong in [
            "",
            "mail.internal",
            "10.0.0.0/33",
            ":25",
            "http://a:25",
            "a:b",
            "a:70000",
        ] {
            assert_eq!(wrong.parse::<Allowed>(), Err(ParseAllowedError), "{wrong}");
        }
    }
}
