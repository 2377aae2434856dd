//! The address of a daemon.

use reqwest::Url;

use crate::Error;
use crate::route::Route;

/// A checked `http` or `https` address without credentials, query or fragment; its path ends before `/v0`.
#[derive(Debug)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| {
            Err(Error::BaseUrl {
                url: text.to_owned(),
                reason,
            })
        };
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(error) => return refuse(error.to_string()),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::BaseUrl {
                url: "(not shown)".to_owned(),
                reason: "it holds credentials; the token goes into SERVICE_TOKEN".to_owned(),
            });
        }
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(format!("{} is neither http nor https", url.scheme()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("it has a query or a fragment".to_owned());
        }
        if url
            .path()
            .trim_end_matches('/')
            .ends_with(wire::VERSION_PREFIX)
        {
            return refuse(format!("it must end before {}", wire::VERSION_PREFIX));
        }
        Ok(Self(url))
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether requests stay on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let Some(host) = self.0.host_str() else {
            return false;
        };
        let address = host.trim_start_matches('[').trim_end_matches(']');
        address == "localhost"
            || address.ends_with(".localhost")
            || address
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    pub(crate) fn join(&self, route: &Route) -> Url {
        let mut url = self.0.clone();
        let path = format!("{}{}", url.path().trim_end_matches('/'), route.path());
        url.set_path(&path);
        if !route.query().is_empty() {
            url.query_pairs_mut().extend_pairs(route.query());
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, route: &Route) -> String {
        BaseUrl::parse(base).unwrap().join(route).into()
    }

    #[test]
    fn joins_below_any_prefix() {
        let route = Route::v0("jobs").with("limit", 3).with("scan", "a&b c");
        for (base, expected) in [
            ("http://h:1", "http://h:1/v0/jobs?limit=3&scan=a%26b+c"),
            ("http://h:1/", "http://h:1/v0/jobs?limit=3&scan=a%26b+c"),
            (
                "https://h/x/y/",
                "https://h/x/y/v0/jobs?limit=3&scan=a%26b+c",
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
    fn refuses_what_is_no_base() {
        for text in [
            "",
            "localhost:80",
            "ftp://h",
            "http://u:p@h",
            "http://h/v0",
            "http://h/v0/",
            "http://h?x=1",
            "http://h#x",
        ] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn never_shows_credentials() {
        let error = BaseUrl::parse("http://user:hush@h").unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }

    #[test]
    fn knows_loopback() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.0.1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(
                BaseUrl::parse(text).unwrap().is_loopback(),
                expected,
                "{text}"
            );
        }
    }
}
