//! The names for which we answer.

use std::fmt;
use std::str::FromStr;

use hickory_proto::rr::Name;
use thiserror::Error;

use crate::limits::ZONE_BYTES;

/// A domain that the operator has delegated to this daemon, in lower case and without the last dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    text: String,
    pub(crate) name: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no domain such as callback.example.com: {problem}")]
pub struct ZoneError {
    text: String,
    problem: String,
}

impl Zone {
    /// Whether the host is the zone or below it.
    pub fn covers(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let above = host.strip_suffix(&self.text);
        above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Whether both have the same last two labels. This is an estimate of the same registrable domain: only a list of public
    /// suffixes tells for certain.
    pub fn is_beside(&self, host: &str) -> bool {
        let ends = |text: &str| {
            let mut labels = text.trim_end_matches('.').rsplit('.');
            Some((
                labels.next()?.to_ascii_lowercase(),
                labels.next()?.to_ascii_lowercase(),
            ))
        };
        ends(&self.text).is_some() && ends(&self.text) == ends(host)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(given: &str) -> Result<Self, ZoneError> {
        let refused = |problem: &str| ZoneError {
            text: given.to_owned(),
            problem: problem.to_owned(),
        };
        let text = given
            .strip_suffix('.')
            .unwrap_or(given)
            .to_ascii_lowercase();
        if text.len() > ZONE_BYTES {
            return Err(refused(&format!("it has more than {ZONE_BYTES} bytes")));
        }
        for label in text.split('.') {
            let is_plain = label
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'-');
            if !is_plain || label.starts_with('-') || label.ends_with('-') {
                return Err(refused(
                    "a label has other characters than a-z, 0-9 and - inside",
                ));
            }
            if label.is_empty() || label.len() > 63 {
                return Err(refused("a label is empty or has more than 63 bytes"));
            }
        }
        if text.parse::<std::net::IpAddr>().is_ok() {
            return Err(refused("it is an address"));
        }
        let name = Name::from_ascii(format!("{text}."));
        let name = name.map_err(|error| refused(&error.to_string()))?;
        Ok(Self { text, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_domains() {
        for (given, expected) in [
            ("cb.example.com", "cb.example.com"),
            ("CB.Example.com.", "cb.example.com"),
            ("test", "test"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(given.parse::<Zone>().unwrap().to_string(), expected);
        }
        let long = format!("{}.example", "a".repeat(64));
        let longer = vec!["abcdefg"; 30].join(".");
        for wrong in [
            "",
            ".",
            "a..b",
            "*.example",
            "a b",
            "-a.example",
            "192.0.2.1",
            "a_b.example",
            &long,
            &longer,
        ] {
            let error = wrong.parse::<Zone>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{wrong}` is no domain")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_zone_covers_the_names_below_it() {
        let zone: Zone = "cb.example.com".parse().unwrap();
        for (host, covers, is_beside) in [
            ("cb.example.com", true, true),
            ("API.cb.example.com.", true, true),
            ("example.com", false, true),
            ("api.Example.com", false, true),
            ("xcb.example.com", false, true),
            ("example.org", false, false),
            ("localhost", false, false),
            ("192.0.2.1", false, false),
            ("", false, false),
        ] {
            assert_eq!(zone.covers(host), covers, "{host}");
            assert_eq!(zone.is_beside(host), is_beside, "{host}");
        }
    }
}
