//! The place of a repository: a path on this machine, or a URL from which the `git` program fetches.
//!
//! A location contains no credentials, because every form that could contain them is refused. So it may be printed anywhere.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::limits;

/// A parsed location. It is displayed as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A repository on this machine, bare or with a work tree.
    Local(PathBuf),
    /// A repository reached through the `git` program.
    Remote(RemoteUrl),
}

/// A URL that passed [`Location::parse`]: it has an allowed protocol and a host, and `git` cannot take it for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    text: String,
    protocol: Protocol,
    /// Protocol, host and port, as written.
    origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Https,
    /// Not encrypted, so allowed on this machine only.
    LoopbackHttp,
    Ssh,
    /// A path on this machine whose repository libgit2 cannot read.
    Path,
}

/// Why a text is not a location. The text is not repeated if it may contain credentials.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LocationError {
    #[error("the location of the repository is empty")]
    Empty,
    #[error(
        "the location of the repository is longer than {} characters",
        limits::NAME_CHARACTERS
    )]
    TooLong,
    #[error("the location `{0}` begins with `-`")]
    LeadingDash(String),
    #[error("the location of the repository holds a space or a control character")]
    Space,
    /// A user or a password in an HTTP URL, a password in an SSH URL, a query, or a fragment.
    #[error("the location of the repository holds a credential")]
    Credential,
    #[error("the protocol `{0}` is not supported")]
    Protocol(String),
    #[error("`{0}` is reached without encryption")]
    PlainHttp(String),
    /// No host, or invalid characters in it.
    #[error("the location `{0}` names no valid host")]
    Host(String),
    #[error("the location `{0}` names no repository on its host")]
    Path(String),
    /// A `file://` URL with more than a plain absolute path.
    #[error("the location `{0}` is not a plain file URL")]
    FileUrl(String),
}

impl LocationError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            LocationError::Credential => {
                Some("remove it, and name the token of an https:// source with `token_file`")
            }
            LocationError::Protocol(_) => Some("use a path, https:// or ssh://"),
            LocationError::PlainHttp(_) => Some("use https://; http:// is only for this machine"),
            LocationError::FileUrl(_) => Some("write the path itself"),
            LocationError::LeadingDash(_) => Some("write ./ before a path that begins with -"),
            LocationError::Empty
            | LocationError::TooLong
            | LocationError::Space
            | LocationError::Host(_)
            | LocationError::Path(_) => None,
        }
    }
}

impl Location {
    /// Parses a path (absolute, or relative to the working directory of the process), `file://`, `https://`, `ssh://`,
    /// `http://` to a loopback address, or the short SSH form `user@host:path`.
    pub fn parse(text: &str) -> Result<Location, LocationError> {
        if text.is_empty() {
            return Err(LocationError::Empty);
        }
        if text.chars().count() > limits::NAME_CHARACTERS {
            return Err(LocationError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(LocationError::Space);
        }
        if text.starts_with('-') {
            return Err(LocationError::LeadingDash(text.to_owned()));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return with_scheme(text, scheme, rest);
        }
        if let Some((helper, _)) = text.split_once("::")
            && !helper.contains('/')
        {
            return Err(LocationError::Protocol(helper.to_owned()));
        }
        match text.split_once(':') {
            Some((host, path)) if !host.contains('/') => short_ssh(text, host, path),
            _ => Ok(Location::Local(PathBuf::from(text))),
        }
    }
}

impl RemoteUrl {
    /// A path on this machine, for `git`. None if it cannot be an argument.
    pub(super) fn of_path(path: &Path) -> Option<RemoteUrl> {
        let path = std::path::absolute(path).ok()?;
        Some(RemoteUrl {
            text: path.to_str()?.to_owned(),
            protocol: Protocol::Path,
            origin: String::new(),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True for encrypted HTTP, which can carry a token.
    pub fn is_https(&self) -> bool {
        self.protocol == Protocol::Https
    }

    /// Protocol, host and port. Credentials are sent to this origin only.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }
}

fn with_scheme(text: &str, scheme: &str, rest: &str) -> Result<Location, LocationError> {
    let scheme = scheme.to_ascii_lowercase();
    let protocol = match scheme.as_str() {
        "file" => return file_url(text, rest),
        "https" => Protocol::Https,
        "http" => Protocol::LoopbackHttp,
        "ssh" => Protocol::Ssh,
        _ => return Err(LocationError::Protocol(scheme)),
    };
    if rest.contains(char::is_whitespace) {
        return Err(LocationError::Space);
    }
    if rest.contains(['?', '#']) {
        return Err(LocationError::Credential);
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host_and_port) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if user.is_some_and(|user| protocol != Protocol::Ssh || !is_user(user)) {
        return Err(LocationError::Credential);
    }
    let Some(host) = host_of(host_and_port) else {
        return Err(LocationError::Host(text.to_owned()));
    };
    if protocol == Protocol::LoopbackHttp && !is_loopback(host) {
        return Err(LocationError::PlainHttp(text.to_owned()));
    }
    if path.is_empty() {
        return Err(LocationError::Path(text.to_owned()));
    }
    Ok(remote(text, protocol, format!("{scheme}://{authority}")))
}

fn short_ssh(text: &str, user_and_host: &str, path: &str) -> Result<Location, LocationError> {
    if text.contains(char::is_whitespace) {
        return Err(LocationError::Space);
    }
    let (user, host) = match user_and_host.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, user_and_host),
    };
    if user.is_some_and(|user| !is_user(user)) || path.contains('@') && user.is_none() {
        return Err(LocationError::Credential);
    }
    if !is_host_name(host) {
        return Err(LocationError::Host(text.to_owned()));
    }
    if path.is_empty() || path.starts_with('-') {
        return Err(LocationError::Path(text.to_owned()));
    }
    Ok(remote(
        text,
        Protocol::Ssh,
        format!("ssh://{user_and_host}"),
    ))
}

/// Refuses escaped characters: with them, the opened path would differ from the checked path.
fn file_url(text: &str, rest: &str) -> Result<Location, LocationError> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') || path.contains(['%', '?', '#']) {
        return Err(LocationError::FileUrl(text.to_owned()));
    }
    Ok(Location::Local(PathBuf::from(path)))
}

fn remote(text: &str, protocol: Protocol, origin: String) -> Location {
    Location::Remote(RemoteUrl {
        text: text.to_owned(),
        protocol,
        origin,
    })
}

/// True for a user name without a password.
fn is_user(user: &str) -> bool {
    user.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && user
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+'))
}

/// The host of `host`, `host:port` or `[address]:port`.
fn host_of(host_and_port: &str) -> Option<&str> {
    if let Some(rest) = host_and_port.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let valid = address.parse::<IpAddr>().is_ok()
            && (port.is_empty() || is_port(port.strip_prefix(':')?));
        return valid.then_some(address);
    }
    let (host, valid_port) = match host_and_port.split_once(':') {
        Some((host, port)) => (host, is_port(port)),
        None => (host_and_port, true),
    };
    (valid_port && is_host_name(host)).then_some(host)
}

fn is_host_name(host: &str) -> bool {
    host.starts_with(|first: char| first.is_ascii_alphanumeric())
        && host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => path.display().fmt(f),
            Location::Remote(url) => f.write_str(&url.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_local() {
        for (text, path) in [
            ("/srv/flows.git", "/srv/flows.git"),
            ("flows", "flows"),
            ("./-odd", "./-odd"),
            ("../a:b", "../a:b"),
            ("/srv/with space", "/srv/with space"),
            ("file:///srv/flows.git", "/srv/flows.git"),
            ("file://localhost/srv/flows.git", "/srv/flows.git"),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!(location, Location::Local(PathBuf::from(path)), "{text}");
        }
    }

    #[test]
    fn allowed_protocols_are_remote_and_print_as_written() {
        for (text, protocol) in [
            ("https://forge.example/a/b.git", Protocol::Https),
            ("https://forge.example:8443/a", Protocol::Https),
            ("http://127.0.0.1:3000/a", Protocol::LoopbackHttp),
            ("http://[::1]:3000/a", Protocol::LoopbackHttp),
            ("http://localhost/a", Protocol::LoopbackHttp),
            ("ssh://git@forge.example:22/a/b", Protocol::Ssh),
            ("git@forge.example:a/b.git", Protocol::Ssh),
            ("forge.example:a/b.git", Protocol::Ssh),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!(location.to_string(), text);
            let Location::Remote(url) = location else {
                panic!("{text} is remote");
            };
            assert_eq!(url.protocol(), protocol, "{text}");
        }
    }

    #[test]
    fn locations_that_could_run_a_program_or_leak_a_credential_are_refused() {
        use LocationError as E;
        type Refusal = fn(String) -> E;
        let cases: &[(&str, Refusal)] = &[
            ("", |_| E::Empty),
            ("--upload-pack=touch /tmp/x", E::LeadingDash),
            ("ext::sh -c id", |_| E::Protocol("ext".to_owned())),
            ("git://forge.example/a", |_| E::Protocol("git".to_owned())),
            ("EXT://forge.example/a", |_| E::Protocol("ext".to_owned())),
            ("https://user:secret@forge.example/a", |_| E::Credential),
            ("https://token@forge.example/a", |_| E::Credential),
            ("https://forge.example/a?token=x", |_| E::Credential),
            ("ssh://git:secret@forge.example/a", |_| E::Credential),
            ("user:secret@forge.example:a", |_| E::Credential),
            ("http://forge.example/a", E::PlainHttp),
            ("http://127.0.0.1.evil.example/a", E::PlainHttp),
            ("http://127.0.0.1@evil.example/a", |_| E::Credential),
            ("ssh://-oProxyCommand=x/a", E::Host),
            ("-oProxyCommand=x:a", E::LeadingDash),
            ("git@-oProxyCommand=x:a", E::Host),
            ("git@forge.example:-x", E::Path),
            ("https://forge.example", E::Path),
            ("https:///a", E::Host),
            ("https://forge.example:99999/a", E::Host),
            ("https://forge.example/a b", |_| E::Space),
            ("/srv/a\nb", |_| E::Space),
            ("file://host/a", E::FileUrl),
            ("file:///a%2fb", E::FileUrl),
        ];
        for (text, expected) in cases {
            assert_eq!(
                Location::parse(text).unwrap_err(),
                expected((*text).to_owned()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_refused_credential_is_not_repeated() {
        let error = Location::parse("https://user:hunter2@forge.example/a").unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        assert!(error.hint().is_some());
    }
}
