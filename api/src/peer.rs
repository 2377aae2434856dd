//! Where a request comes from: the connection, and what a trusted proxy reports about the caller.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::HeaderName;
use listen::{Cidr, Connection, network};

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The caller's address, or the address of the last untrusted proxy.
    pub(crate) address: IpAddr,
    /// Whether the caller used TLS, with the daemon or with a trusted proxy.
    pub(crate) is_https: bool,
    /// Whether the request was made on this machine, or from an address that counts as this machine. A forwarded request was
    /// not.
    pub(crate) is_local: bool,
}

impl Peer {
    /// Reads headers only from a trusted proxy. The caller is the last address that is not a trusted proxy: the caller can invent
    /// all addresses before it.
    pub(crate) fn of(
        connection: Connection,
        headers: &HeaderMap,
        trusted: &[Cidr],
        local: &[Cidr],
    ) -> Self {
        let direct = connection.address.to_canonical();
        let is_trusted = is_among(trusted, direct);
        let lines = headers.get_all(&X_FORWARDED_FOR).iter().rev();
        let named = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.rsplit(','))
            .map(|text| {
                text.trim()
                    .parse()
                    .map(|address: IpAddr| address.to_canonical())
            });
        // Stop at an unreadable address, because nothing before it can be trusted.
        let behind = named
            .take_while(|_| is_trusted)
            .map_while(Result::ok)
            .find(|address| !is_among(trusted, *address));
        let scheme = headers.get(&X_FORWARDED_PROTO).filter(|_| is_trusted);
        let is_here = direct.is_loopback() || is_among(local, direct);
        Self {
            address: behind.unwrap_or(direct),
            is_https: match scheme {
                Some(scheme) => scheme.as_bytes().eq_ignore_ascii_case(b"https"),
                None => connection.is_tls && behind.is_none(),
            },
            is_local: is_here && !headers.keys().any(is_of_a_proxy),
        }
    }

    /// The network of the caller, which limits count.
    pub(crate) fn network(&self) -> IpAddr {
        network(self.address)
    }
}

/// Whether only proxies send a header.
fn is_of_a_proxy(name: &HeaderName) -> bool {
    let name = name.as_str();
    let other = [
        "forwarded",
        "x-real-ip",
        "via",
        "x-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
    ];
    name.starts_with("x-forwarded") || name.starts_with("x-original-") || other.contains(&name)
}

pub(crate) fn is_among(ranges: &[Cidr], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str, headers: &[(&HeaderName, &str)], trusted: &[&str]) -> Peer {
        let connection = Connection {
            address: address.parse().unwrap(),
            is_tls: false,
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let trusted: Vec<Cidr> = trusted.iter().map(|it| it.parse().unwrap()).collect();
        Peer::of(
            connection,
            &map,
            &trusted,
            &["172.17.0.0/16".parse().unwrap()],
        )
    }

    #[test]
    fn headers_are_believed_only_from_a_trusted_proxy() {
        let forged = [(&X_FORWARDED_FOR, "203.0.113.9")];
        assert_eq!(
            peer("198.51.100.7", &forged, &[]).address.to_string(),
            "198.51.100.7"
        );
        let seen = peer("127.0.0.1", &forged, &[]);
        assert_eq!(seen.address.to_string(), "127.0.0.1");
        assert!(!seen.is_local, "a forwarded request is not local");
        let seen = peer("127.0.0.1", &forged, &["127.0.0.1"]);
        assert_eq!(seen.address.to_string(), "203.0.113.9");
        assert!(!seen.is_local && !seen.is_https);
    }

    #[test]
    fn the_caller_is_the_last_address_that_is_not_a_trusted_proxy() {
        let headers = [
            (&X_FORWARDED_FOR, "127.0.0.1, 203.0.113.9"),
            (&X_FORWARDED_FOR, "10.0.0.2"),
            (&X_FORWARDED_PROTO, "HTTPS"),
        ];
        let seen = peer("10.0.0.1", &headers, &["10.0.0.1", "10.0.0.2"]);
        assert_eq!(seen.address.to_string(), "203.0.113.9");
        assert!(seen.is_https && !seen.is_local);
        let unreadable = [(&X_FORWARDED_FOR, "203.0.113.9, unknown")];
        let seen = peer("10.0.0.1", &unreadable, &["10.0.0.1"]);
        assert_eq!(seen.address.to_string(), "10.0.0.1");
    }

    #[test]
    fn a_caller_on_this_machine_is_local() {
        assert!(peer("127.0.0.1", &[], &[]).is_local);
        assert!(peer("::ffff:127.0.0.1", &[], &[]).is_local);
        assert!(peer("::1", &[], &["::1"]).is_local);
        assert!(!peer("192.0.2.1", &[], &[]).is_local);
        assert!(peer("172.17.0.1", &[], &[]).is_local);
        let forwarded = [(&X_FORWARDED_FOR, "127.0.0.1")];
        assert!(!peer("172.17.0.1", &forwarded, &[]).is_local);
        assert!(!peer("172.17.0.1", &forwarded, &["172.17.0.1"]).is_local);
        let inside = [(&X_FORWARDED_FOR, "172.17.0.2")];
        assert!(!peer("127.0.0.1", &inside, &["127.0.0.1"]).is_local);
    }

    #[test]
    fn a_request_with_any_header_of_a_proxy_is_not_local() {
        for name in [
            "forwarded",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-prefix",
            "x-forwarded-proto",
            "x-real-ip",
            "x-client-ip",
            "cf-connecting-ip",
            "x-original-forwarded-for",
        ] {
            let name = HeaderName::from_static(name);
            for trusted in [&[][..], &["127.0.0.1"]] {
                let seen = peer("127.0.0.1", &[(&name, "")], trusted);
                assert!(!seen.is_local, "{name}");
            }
        }
        let only_scheme = [(&X_FORWARDED_PROTO, "https")];
        assert!(peer("127.0.0.1", &only_scheme, &["127.0.0.1"]).is_https);
        assert!(!peer("127.0.0.1", &only_scheme, &[]).is_https);
    }

    #[test]
    fn an_ipv6_network_counts_as_one() {
        let seen = peer("2001:db8:1:2:3:4:5:6", &[], &[]);
        assert_eq!(seen.network().to_string(), "2001:db8:1:2::");
        assert_eq!(
            peer("::ffff:192.0.2.1", &[], &[]).network().to_string(),
            "192.0.2.1"
        );
    }
}
