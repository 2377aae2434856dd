//! Where callback servers listen, and which names they have.

use std::net::{IpAddr, SocketAddr};

use callback::Zone;
use listen::Cidr;
use serde::Deserialize;

use crate::limits::{CALLBACK_ADDRESSES, CALLBACK_ZONES};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileCallback {
    zones: Vec<String>,
    listen: FileListen,
    public: Vec<String>,
    #[serde(default)]
    unlimited: Vec<String>,
    #[serde(default)]
    trust_proxy: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileListen {
    #[serde(default)]
    dns: Vec<String>,
    #[serde(default)]
    http: Vec<String>,
}

impl FileCallback {
    /// `url` is where people reach the daemon.
    pub(super) fn check(self, url: Option<&str>) -> Result<callback::Settings, String> {
        let zones: Result<Vec<Zone>, _> = self.zones.iter().map(|text| text.parse()).collect();
        let zones = zones.map_err(|error| format!("zones: {error}"))?;
        if zones.is_empty() || zones.len() > CALLBACK_ZONES {
            return Err(format!("zones: name 1 to {CALLBACK_ZONES} domains"));
        }
        for (place, zone) in zones.iter().enumerate() {
            let mut others = zones
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            if let Some((_, above)) = others.find(|(_, other)| other.covers(&zone.to_string())) {
                return Err(format!(
                    "zones: `{above}` covers `{zone}`: a name has one zone; name zones beside each other"
                ));
            }
        }
        let url =
            url.ok_or("needs the key `url`: a zone must not cover the daemon's own address")?;
        if let Some(zone) = zones.iter().find(|zone| zone.covers(host(url))) {
            return Err(format!(
                "zones: `{zone}` covers {url}, the daemon's own address: every name in a zone leads to callback servers, where strangers \
                 ask; take a zone beside it, best below another domain"
            ));
        }
        let public = each(&self.public, "public", |text| {
            text.parse::<IpAddr>()
                .map_err(|_| format!("`{text}` is no address such as 203.0.113.7"))
        })?;
        if public.is_empty() || public.len() > CALLBACK_ADDRESSES {
            return Err(format!(
                "public: name 1 to {CALLBACK_ADDRESSES} addresses at which the internet reaches the listeners"
            ));
        }
        let (dns, http) = (self.listen.dns, self.listen.http);
        let address = |text: &str| {
            text.parse::<SocketAddr>()
                .map_err(|_| format!("`{text}` is no address with a port, such as 203.0.113.7:53"))
        };
        let settings = callback::Settings {
            dns: each(&dns, "listen.dns", address)?,
            http: each(&http, "listen.http", address)?,
            public,
            unlimited: each(&self.unlimited, "unlimited", str::parse::<Cidr>)?,
            trusted_proxies: each(&self.trust_proxy, "trust_proxy", str::parse::<Cidr>)?,
            zones,
        };
        if settings.dns.is_empty() && settings.http.is_empty() {
            return Err("listen: name an address for `dns`, for `http`, or for both".to_owned());
        }
        Ok(settings)
    }
}

fn each<T>(
    texts: &[String],
    key: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let read = texts.iter().map(|text| read(text));
    read.collect::<Result<_, _>>()
        .map_err(|error| format!("{key}: {error}"))
}

/// The host of a URL that was checked.
pub(crate) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        // An IPv6 address has colons in its brackets.
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, url: Option<&str>) -> Result<callback::Settings, String> {
        let file: FileCallback = serde_yaml::from_str(text).unwrap();
        file.check(url)
    }

    #[test]
    fn zones_lie_beside_the_daemon() {
        let text = |zone: &str| {
            format!("{{zones: [{zone}], listen: {{dns: ['127.0.0.1:0']}}, public: [192.0.2.1]}}")
        };
        for (zone, url) in [
            ("cb.example.com", "https://everscan.example.com/x:1"),
            ("cb.example.com", "https://xcb.example.com:7411"),
            ("cb.example.com", "http://[2001:db8::1]:80/a"),
            ("cb.example.com", "http://[2001:db8::1]"),
        ] {
            assert!(check(&text(zone), Some(url)).is_ok(), "{zone} {url}");
        }
        for (zone, url) in [
            ("cb.example.com", "https://CB.example.com:7411/"),
            ("example.com", "https://everscan.example.com?a"),
            ("com", "https://everscan.example.com."),
        ] {
            let error = check(&text(zone), Some(url)).unwrap_err();
            assert!(error.contains("covers https://"), "{error}");
        }
        let error = check(&text("cb.example.com"), None).unwrap_err();
        assert!(error.contains("`url`"), "{error}");
    }

    #[test]
    fn each_key_is_checked() {
        let settings = check(
            "{zones: [cb.example.com, cb2.example.com.], listen: {dns: ['203.0.113.7:53'], http: ['203.0.113.7:80', '[::1]:80']}, \
             public: [203.0.113.7, '2001:db8::1'], unlimited: [198.51.100.0/24], trust_proxy: [10.0.0.1]}",
            Some("https://everscan.example.org"),
        );
        let settings = settings.unwrap();
        let zones: Vec<_> = settings.zones.iter().map(ToString::to_string).collect();
        assert_eq!(zones, ["cb.example.com", "cb2.example.com"]);
        assert_eq!(
            (
                settings.dns.len(),
                settings.http.len(),
                settings.public.len()
            ),
            (1, 2, 2)
        );
        assert_eq!(settings.unlimited, ["198.51.100.0/24".parse().unwrap()]);
        assert_eq!(settings.trusted_proxies, ["10.0.0.1".parse().unwrap()]);
        let whole = "zones: [a.test], listen: {http: ['127.0.0.1:0']}, public: [192.0.2.1]";
        for (from, to, expected) in [
            ("a.test", "a_.test", "zones: `a_.test` is no domain"),
            ("[a.test]", "[]", "zones: name 1 to 4"),
            ("[a.test]", "[a, b, c, d, e]", "zones: name 1 to 4"),
            (
                "[a.test]",
                "[b.a.test, a.test]",
                "zones: `a.test` covers `b.a.test`",
            ),
            (
                "[a.test]",
                "[a.test, A.test]",
                "zones: `a.test` covers `a.test`",
            ),
            ("http: ['127.0.0.1:0']", "", "listen: name an address"),
            (
                "127.0.0.1:0",
                "127.0.0.1",
                "listen.http: `127.0.0.1` is no address with a port",
            ),
            ("192.0.2.1", "a.test", "public: `a.test` is no address"),
            ("[192.0.2.1]", "[]", "public: name 1 to 8"),
            (
                "[192.0.2.1]",
                "[192.0.2.1], unlimited: [x]",
                "unlimited: `x`",
            ),
        ] {
            let text = format!("{{{}}}", whole.replace(from, to));
            let error = check(&text, Some("https://everscan.example.org")).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
