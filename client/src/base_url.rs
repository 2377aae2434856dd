//! The address of a daemon.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use http::Uri;

use crate::Error;
use crate::route::Route;

/// A checked `http` or `https` address without credentials, query or fragment. Its path ends before `/v0`.
#[derive(Debug)]
pub(crate) struct BaseUrl(Uri);

impl BaseUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let refuse = |reason: String| {
            Err(Error::BaseUrl {
                url: text.to_owned(),
                reason,
            })
        };
        // Check this before any error that shows the text, because everything up to the last `@` may be a secret.
        if text.contains('@') {
            return Err(Error::BaseUrl {
                url: "(not shown)".to_owned(),
                reason: "it holds credentials; the token goes into SERVICE_TOKEN".to_owned(),
            });
        }
        // `Uri` drops a fragment silently.
        if text.contains(['?', '#']) {
            return refuse("it has a query or a fragment".to_owned());
        }
        let url: Uri = match text.parse() {
            Ok(url) => url,
            Err(error) => return refuse(error.to_string()),
        };
        let Some(scheme) = url.scheme_str() else {
            return refuse("it does not begin with http:// or https://".to_owned());
        };
        if !matches!(scheme, "http" | "https") {
            return refuse(format!("{scheme} is neither http nor https"));
        }
        if !url.authority().is_some_and(is_host_and_port) {
            return refuse("it does not name a host and, after a colon, a port".to_owned());
        }
        let base = Self(url);
        if base.prefix().ends_with(wire::VERSION_PREFIX) {
            return refuse(format!("it must end before {}", wire::VERSION_PREFIX));
        }
        Ok(base)
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Whether requests stay on this machine.
    pub(crate) fn is_this_machine(&self) -> bool {
        let host = self.0.host().unwrap_or_default().to_ascii_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        // A name below `localhost` may be anywhere: not every resolver keeps it on this machine.
        address == "localhost" || address.parse().is_ok_and(is_own)
    }

    /// The URL of a route, as text. Only a request that is sent needs a parsed URL.
    pub(crate) fn join(&self, route: &Route) -> String {
        let scheme = if self.is_https() { "https" } else { "http" };
        let authority = self
            .0
            .authority()
            .map_or("", |authority| authority.as_str());
        let prefix = self.prefix();
        let below = route.path_and_query();
        format!("{scheme}://{authority}{prefix}{below}")
    }

    fn prefix(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }
}

/// Whether an address belongs to this machine: its packets then come from loopback or from the same address.
fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback()
        || source_of_packets_to(address)
            .is_ok_and(|source| source.is_loopback() || source == address)
}

/// Asks the kernel, and sends nothing.
fn source_of_packets_to(address: IpAddr) -> io::Result<IpAddr> {
    const ANY_PORT: u16 = 9;
    let socket = match address {
        IpAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        IpAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }?;
    socket.connect((address, ANY_PORT))?;
    Ok(socket.local_addr()?.ip())
}

/// Checks the port: `Uri` reads an invalid one as absent.
fn is_host_and_port(authority: &http::uri::Authority) -> bool {
    let host = authority.host();
    let rest = authority.as_str().strip_prefix(host).unwrap_or_default();
    !host.is_empty() && (rest.is_empty() || authority.port_u16().is_some_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, route: &Route) -> String {
        let url = BaseUrl::parse(base).unwrap().join(route);
        assert_eq!(url.parse::<Uri>().unwrap().to_string(), url);
        url
    }

    #[test]
    fn joins_below_any_prefix() {
        let route = Route::v0("jobs").with("limit", 3).with("scan", "a&b c");
        for (base, expected) in [
            ("http://h:1", "http://h:1/v0/jobs?limit=3&scan=a%26b%20c"),
            ("http://h:1/", "http://h:1/v0/jobs?limit=3&scan=a%26b%20c"),
            (
                "https://h/x/y/",
                "https://h/x/y/v0/jobs?limit=3&scan=a%26b%20c",
            ),
            (
                " HTTP://[::1]:80\n",
                "http://[::1]:80/v0/jobs?limit=3&scan=a%26b%20c",
            ),
        ] {
            assert_eq!(joined(base, &route), expected);
        }
    }

    #[test]
    fn keeps_a_name_in_one_segment() {
        let route = Route::v0("workflows").name("src/a b%").unwrap();
        assert_eq!(
            joined("http://h", &route),
            "http://h/v0/workflows/src%2Fa%20b%25"
        );
    }

    #[test]
    fn refuses_urls_that_cannot_be_a_base() {
        for text in [
            "",
            "/x",
            "localhost",
            "localhost:80",
            "ftp://h",
            "http://",
            "http:///x",
            "http://:80",
            "http://h:",
            "http://h:0",
            "http://h:65536",
            "http://h:x",
            "http://u:p@h",
            "http://h/v0",
            "http://h/v0/",
            "http://h?x=1",
            "http://h#x",
            "http://h/a b",
        ] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn never_shows_credentials() {
        for text in ["http://user:hush@h", "http://hush h@h", "hush@h"] {
            let error = BaseUrl::parse(text).unwrap_err();
            assert!(!error.to_string().contains("hush"), "{error}");
        }
    }

    #[test]
    fn knows_the_addresses_of_this_machine() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.0.1", true),
            ("http://0.0.0.0:1", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]:1", true),
            ("http://localhost", true),
            ("http://LocalHost:1", true),
            ("http://a.localhost", false),
            ("http://localhost.example.org", false),
            ("http://127.0.0.1.example.org", false),
            ("http://192.0.2.1", false),
            ("http://[2001:db8::1]", false),
        ] {
            let base = BaseUrl::parse(text).unwrap();
            assert_eq!(base.is_this_machine(), expected, "{text}");
        }
        // Without a network this machine has no other address.
        if let Ok(own) = source_of_packets_to(Ipv4Addr::new(192, 0, 2, 1).into()) {
            assert!(is_own(own), "{own}");
        }
    }
}
