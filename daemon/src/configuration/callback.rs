//! Where callback servers listen, and which names they have.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use callback::{Authority, Zone};
use listen::{Cidr, TlsFiles};
use serde::Deserialize;
use tokio::sync::watch;

use crate::certificate::CertificateSource;
use crate::limits::{CALLBACK_ADDRESSES, CALLBACK_ZONES};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileCallback {
    zones: Vec<String>,
    listen: FileListen,
    public: Vec<String>,
    certificate: Option<FileCertificate>,
    acme: Option<FileAcme>,
    resolver: Option<String>,
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
    #[serde(default)]
    https: Vec<String>,
}

/// The operator's certificate for all zones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCertificate {
    file: PathBuf,
    key: PathBuf,
}

/// An authority that issues a certificate for all zones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAcme {
    directory: String,
    email: String,
    #[serde(default)]
    agree: bool,
    root: Option<PathBuf>,
}

impl FileAcme {
    fn check(self, base: &Path) -> Result<Authority, String> {
        outbound::check_url(&self.directory).map_err(|error| format!("directory: {error}"))?;
        if !self.directory.starts_with("https://") {
            return Err("directory: must begin with `https://`".to_owned());
        }
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, ',' | '?' | '<' | '>');
        let parts = self.email.split_once('@');
        if !self.email.chars().all(is_plain)
            || parts.is_none_or(|(it, at)| it.is_empty() || at.is_empty())
        {
            return Err(format!(
                "email: `{}` is no address such as ops@example.com",
                self.email
            ));
        }
        if !self.agree {
            return Err(format!(
                "agree: read the terms of service of {}, and set `agree: true` if you agree to them",
                self.directory
            ));
        }
        Ok(Authority {
            directory: self.directory,
            email: self.email,
            root: self.root.map(|path| base.join(path)),
        })
    }
}

/// What is configured of callback servers.
#[derive(Debug)]
pub(crate) struct CallbackSettings {
    pub(crate) listening: callback::Settings,
    /// With HTTPS alone.
    pub(crate) certificate: Option<CertificateSource>,
    /// Whom a check of the zones asks, instead of the machine's resolver.
    pub(crate) resolver: Option<SocketAddr>,
}

impl CallbackSettings {
    /// The directory of the authority that issues the certificate.
    pub(crate) fn authority(&self) -> Option<String> {
        match &self.certificate {
            Some(CertificateSource::Authority(it)) => Some(it.directory.clone()),
            Some(CertificateSource::Files(_)) | None => None,
        }
    }
}

impl FileCallback {
    /// `url` is where people reach the daemon. Files are named relative to `base`.
    pub(super) fn check(self, url: Option<&str>, base: &Path) -> Result<CallbackSettings, String> {
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
        let FileListen { dns, http, https } = self.listen;
        let address = |text: &str| {
            text.parse::<SocketAddr>()
                .map_err(|_| format!("`{text}` is no address with a port, such as 203.0.113.7:53"))
        };
        let listening = callback::Settings {
            dns: each(&dns, "listen.dns", address)?,
            http: each(&http, "listen.http", address)?,
            https: each(&https, "listen.https", address)?,
            tls: None,
            challenges: watch::channel(Vec::new()).1,
            public,
            unlimited: each(&self.unlimited, "unlimited", str::parse::<Cidr>)?,
            trusted_proxies: each(&self.trust_proxy, "trust_proxy", str::parse::<Cidr>)?,
            zones,
        };
        if listening.dns.is_empty() && listening.http.is_empty() && listening.https.is_empty() {
            return Err("listen: name an address for `dns`, `http` or `https`".to_owned());
        }
        let resolver = self.resolver.map(|text| {
            let read = text.parse::<SocketAddr>();
            read.map_err(|_| {
                format!("resolver: `{text}` is no address with a port, such as 192.0.2.53:53")
            })
        });
        let certificate = match (self.certificate, self.acme) {
            (Some(_), Some(_)) => {
                return Err("certificate, acme: give one of the two".to_owned());
            }
            (Some(files), None) => Some(CertificateSource::Files(TlsFiles {
                certificate: base.join(files.file),
                key: base.join(files.key),
            })),
            (None, Some(acme)) => {
                let authority = acme.check(base).map_err(|error| format!("acme.{error}"))?;
                Some(CertificateSource::Authority(authority))
            }
            (None, None) => None,
        };
        if listening.https.is_empty() && certificate.is_some() {
            let problem = "certificate, acme: name an address for `https` in `listen`";
            return Err(problem.to_owned());
        }
        match &certificate {
            None if !listening.https.is_empty() => {
                return Err("listen.https: needs the key `certificate` or `acme`".to_owned());
            }
            Some(CertificateSource::Authority(_)) if listening.dns.is_empty() => {
                let problem = "acme: name an address for `dns` in `listen`: there the authority looks for its challenges";
                return Err(problem.to_owned());
            }
            Some(_) | None => {}
        }
        Ok(CallbackSettings {
            listening,
            certificate,
            resolver: resolver.transpose()?,
        })
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

    fn check(text: &str, url: Option<&str>) -> Result<CallbackSettings, String> {
        let file: FileCallback = serde_yaml::from_str(text).unwrap();
        file.check(url, Path::new("/etc/everscan"))
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
            "{zones: [cb.example.com, cb2.example.com.], listen: {dns: ['203.0.113.7:53'], http: ['203.0.113.7:80', '[::1]:80'], \
             https: ['203.0.113.7:443']}, certificate: {file: cb.pem, key: /run/cb.key}, \
             public: [203.0.113.7, '2001:db8::1'], unlimited: [198.51.100.0/24], trust_proxy: [10.0.0.1]}",
            Some("https://everscan.example.org"),
        );
        let settings = settings.unwrap();
        let files = TlsFiles {
            certificate: "/etc/everscan/cb.pem".into(),
            key: "/run/cb.key".into(),
        };
        assert_eq!(settings.certificate, Some(CertificateSource::Files(files)));
        let settings = settings.listening;
        let zones: Vec<_> = settings.zones.iter().map(ToString::to_string).collect();
        assert_eq!(zones, ["cb.example.com", "cb2.example.com"]);
        assert_eq!(
            (
                settings.dns.len(),
                settings.http.len(),
                settings.https.len(),
                settings.public.len()
            ),
            (1, 2, 1, 2)
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
                "[192.0.2.1], resolver: 192.0.2.53",
                "resolver: `192.0.2.53` is no address with a port",
            ),
            (
                "{http: ['127.0.0.1:0']}",
                "{https: ['127.0.0.1:0']}",
                "listen.https: needs the key `certificate` or `acme`",
            ),
            (
                "[192.0.2.1]",
                "[192.0.2.1], certificate: {file: a, key: b}",
                "certificate, acme: name an address for `https`",
            ),
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

    #[test]
    fn an_authority_needs_an_agreement_and_our_dns() {
        let whole = "zones: [a.test], listen: {dns: ['127.0.0.1:0'], https: ['127.0.0.1:0']}, public: [192.0.2.1], \
                     acme: {directory: 'https://ca.example/dir', email: ops@example.com, agree: true, root: ca.pem}";
        let url = Some("https://everscan.example.org");
        let settings = check(&format!("{{{whole}}}"), url).unwrap();
        let expected = Authority {
            directory: "https://ca.example/dir".to_owned(),
            email: "ops@example.com".to_owned(),
            root: Some("/etc/everscan/ca.pem".into()),
        };
        assert_eq!(
            settings.certificate,
            Some(CertificateSource::Authority(expected))
        );
        for (from, to, expected) in [
            (
                ", agree: true",
                "",
                "acme.agree: read the terms of service of https://ca.example/dir",
            ),
            ("agree: true", "agree: false", "acme.agree: read"),
            ("ops@example.com", "ops", "acme.email: `ops` is no address"),
            (
                "'https://ca",
                "'http://ca",
                "acme.directory: must begin with",
            ),
            ("'https://ca.example/dir'", "ca", "acme.directory: "),
            (
                "dns: ['127.0.0.1:0'], ",
                "",
                "acme: name an address for `dns`",
            ),
            (
                ", https: ['127.0.0.1:0']",
                "",
                "certificate, acme: name an address for `https`",
            ),
            (
                "acme:",
                "certificate: {file: a, key: b}, acme:",
                "certificate, acme: give one of the two",
            ),
        ] {
            let error = check(&format!("{{{}}}", whole.replace(from, to)), url).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
