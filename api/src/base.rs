//! The path below which browsers find the daemon, if a proxy offers other things at the same host.

use std::fmt;
use std::str::FromStr;

use http::HeaderMap;
use http::header::HeaderName;

use crate::routes::has_area;

static X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Empty, or a path such as `/everscan`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// What browsers see: the path that a trusted proxy names, or else this one.
    pub(crate) fn seen(&self, headers: &HeaderMap, is_trusted: bool) -> Self {
        let named = headers.get(&X_FORWARDED_PREFIX).filter(|_| is_trusted);
        let named = named.and_then(|path| path.to_str().ok()?.parse().ok());
        named.unwrap_or_else(|| self.clone())
    }

    /// A path without this one. Many proxies have removed it already.
    pub(crate) fn strip<'p>(&self, path: &'p str) -> &'p str {
        match path.strip_prefix(&self.0) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            Some(_) | None => path,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BasePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.trim_end_matches('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.bytes().all(is_plain);
        let mut names = path.split('/');
        if names.next() != Some("") || !names.all(is_name) {
            return Err(format!("`{text}` is no path such as /everscan"));
        }
        if has_area(path) {
            return Err(format!(
                "`{text}` begins like a page of the daemon itself; take another path"
            ));
        }
        Ok(Self(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BasePath {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_is_plain_and_none_of_the_daemon() {
        for (text, path) in [
            ("/everscan", "/everscan"),
            ("/a/b_c.d~e-1/", "/a/b_c.d~e-1"),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(base(text).as_str(), path);
        }
        for wrong in [
            "everscan",
            "//a",
            "/a//b",
            "/..",
            "/a/.",
            "/a b",
            "/a%20b",
            "/a?b",
            "/\"",
            "/ä",
            "https://host/a",
            "/jobs",
            "/v0",
            "/login/x",
        ] {
            assert!(wrong.parse::<BasePath>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_stripped_if_it_is_there() {
        for (path, rest) in [
            ("/everscan", "/"),
            ("/everscan/", "/"),
            ("/everscan/jobs", "/jobs"),
            ("/jobs", "/jobs"),
            ("/everscanner", "/everscanner"),
            ("/", "/"),
        ] {
            assert_eq!(base("/everscan").strip(path), rest);
            assert_eq!(base("").strip(path), path);
        }
    }

    #[test]
    fn a_trusted_proxy_names_it() {
        let seen = |named: &str, is_trusted| {
            let mut headers = HeaderMap::new();
            headers.insert(&X_FORWARDED_PREFIX, named.parse().unwrap());
            base("/own").seen(&headers, is_trusted)
        };
        assert_eq!(seen("/everscan/", true), base("/everscan"));
        assert_eq!(seen("/", true), base(""));
        assert_eq!(seen("/everscan", false), base("/own"));
        for wrong in ["//evil.example", "/a, /b", "everscan"] {
            assert_eq!(seen(wrong, true), base("/own"), "{wrong}");
        }
    }
}
