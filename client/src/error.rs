//! Every way a request can fail.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use hyper_util::client::legacy;
use rustls::{CertificateError, InvalidMessage};
use wire::{ErrorCode, Problem};

use crate::limits::RETRY_AFTER;

#[derive(Clone, PartialEq, Eq)]
pub struct Operation(Arc<str>);

impl Operation {
    pub(crate) fn new(method: &Method, url: &str) -> Self {
        Self(format!("{method} {url}").into())
    }

    fn is_read(&self) -> bool {
        self.0.starts_with("GET ") || self.0.starts_with("HEAD ")
    }

    pub(crate) fn is_plain_http(&self) -> bool {
        self.0.contains(" http://")
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{url:?} is no base URL: {reason}")]
    BaseUrl {
        /// The address, unless it contains credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    #[error(
        "{url} is plain HTTP to another machine: the token would cross the network in plain text"
    )]
    PlainHttp { url: String },
    #[error("{name:?} cannot be a name")]
    Name { name: String },
    #[error("cannot use the certificates in {}: {reason}", path.display())]
    CaFile { path: PathBuf, reason: String },
    #[error("cannot set up HTTPS")]
    Connector { source: Source },
    /// The request could not be written: the token does not fit into a header, or a file cannot be read.
    #[error("cannot make the request {operation}")]
    Unsendable {
        operation: Operation,
        source: Source,
    },
    #[error("cannot reach the daemon for {operation}")]
    Unreachable {
        operation: Operation,
        source: Source,
    },
    /// The connection ended before the answer was complete. The request may have been executed.
    #[error("lost the connection to the daemon during {operation}")]
    Interrupted {
        operation: Operation,
        source: Source,
    },
    /// No answer within the limits of [`crate::limits`]. The request may have been executed.
    #[error("got no answer in time to {operation}")]
    TimedOut { operation: Operation },
    #[error("{} ({operation}, status {status}){}", problem.detail, problem.fields())]
    Refused {
        operation: Operation,
        status: u16,
        /// How long to wait before another attempt, if the answer says so.
        retry_after: Option<Duration>,
        /// The daemon's reason. If another server answered, the reason is made from the status.
        problem: Box<Problem>,
    },
    #[error("cannot make sense of the answer to {operation}: {reason}")]
    Protocol {
        operation: Operation,
        reason: String,
    },
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !is_permanent(source),
            Self::Interrupted { .. } | Self::TimedOut { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::BaseUrl { .. }
            | Self::PlainHttp { .. }
            | Self::Name { .. }
            | Self::CaFile { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Protocol { .. } => false,
        }
    }

    /// Whether to repeat a repeatable call at once: the daemon is unreachable, or not ready yet.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !is_permanent(source),
            Self::Interrupted { .. } => true,
            Self::Refused {
                status, problem, ..
            } => matches!(status, 502..=504) || problem.code == ErrorCode::RateLimited,
            Self::BaseUrl { .. }
            | Self::PlainHttp { .. }
            | Self::Name { .. }
            | Self::CaFile { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => false,
        }
    }

    /// Whether the daemon did nothing, so that a repeat cannot execute the call twice.
    pub(crate) fn is_harmless(&self) -> bool {
        self.code() == Some(ErrorCode::RateLimited)
    }

    /// How long to wait before another attempt, if the answer says so. Extreme times are shortened.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => retry_after.map(|it| it.min(RETRY_AFTER)),
            Self::BaseUrl { .. }
            | Self::PlainHttp { .. }
            | Self::Name { .. }
            | Self::CaFile { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => None,
        }
    }

    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::BaseUrl { .. }
            | Self::PlainHttp { .. }
            | Self::Name { .. }
            | Self::CaFile { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => None,
        }
    }

    pub fn code(&self) -> Option<ErrorCode> {
        self.problem().map(|problem| problem.code)
    }

    /// True if something else than the daemon refused the request.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Refused { problem, .. } if problem.code == ErrorCode::Unknown)
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::BaseUrl { .. }
            | Self::PlainHttp { .. }
            | Self::Name { .. }
            | Self::CaFile { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => None,
        }
    }

    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::BaseUrl { .. } => {
                Some("give the daemon's address as in https://everscan.example.org, without /v0")
            }
            Self::PlainHttp { .. } => Some(
                "use https, or a tunnel to this machine; --insecure-http (SERVICE_INSECURE_HTTP=true) sends it anyway",
            ),
            Self::CaFile { .. } => Some("name the file with --ca-file or SERVICE_CA_FILE"),
            Self::Connector { .. } => Some("are the machine's root certificates installed?"),
            Self::Unreachable { source, .. } if source.is::<NoTls>() => {
                Some("write the address with http://, or give the daemon a certificate")
            }
            Self::Unreachable { source, .. } if source.is::<NoHttp>() => {
                Some("write the address with https://")
            }
            Self::Unreachable { source, .. } if source.is::<ProxyFailed>() => Some(
                "the proxy comes from HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, with its user and password; NO_PROXY names hosts to reach without it",
            ),
            Self::Unreachable { source, .. } if source.is::<Untrusted>() => {
                Some("name the file with its authority's certificate with --ca-file")
            }
            Self::Unreachable { .. } => {
                Some("is everscand running, and is SERVICE_URL its address?")
            }
            Self::Interrupted { operation, .. } | Self::TimedOut { operation }
                if operation.is_read() =>
            {
                Some("the request changes nothing; send it again")
            }
            Self::Interrupted { .. } | Self::TimedOut { .. } => {
                Some("the request may have been carried out; look before repeating it")
            }
            Self::Refused { problem, .. } => problem.hint.as_deref(),
            Self::Protocol { .. } => Some(
                "did everscand answer, or something in front of it? if it did, is this client as new as it?",
            ),
            Self::Name { .. } | Self::Unsendable { .. } => None,
        }
    }

    pub(crate) fn unanswered(operation: &Operation, error: legacy::Error) -> Self {
        let operation = operation.clone();
        if let Some(source) = known_cause(&error, &operation) {
            return Self::Unreachable { operation, source };
        }
        let connected = !error.is_connect();
        let source = Box::new(error);
        if connected {
            Self::Interrupted { operation, source }
        } else {
            Self::Unreachable { operation, source }
        }
    }

    pub(crate) fn broken_off(operation: &Operation, error: hyper::Error) -> Self {
        Self::Interrupted {
            operation: operation.clone(),
            source: Box::new(error),
        }
    }
}

/// The server answered TLS with plain HTTP.
#[derive(Debug, thiserror::Error)]
#[error("the server speaks plain HTTP at this address, not HTTPS")]
struct NoTls;

/// The server answered a plain request with bytes that are not HTTP, or said that it wants HTTPS.
#[derive(Debug, thiserror::Error)]
#[error("the server does not speak plain HTTP at this address; it seems to speak HTTPS")]
pub(crate) struct NoHttp;

#[derive(Debug, Clone, thiserror::Error)]
#[error("the proxy {proxy} {reason}")]
pub(crate) struct ProxyFailed {
    pub(crate) proxy: Arc<str>,
    pub(crate) reason: &'static str,
    /// Whether another attempt fails for the same reason.
    pub(crate) is_permanent: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the server's certificate is not accepted: {}", in_words(.0))]
struct Untrusted(CertificateError);

fn in_words(reason: &CertificateError) -> String {
    let text = reason.to_string();
    match reason {
        CertificateError::UnknownIssuer => {
            "its authority is not among those that are trusted here".to_owned()
        }
        CertificateError::BadSignature => {
            "its authority has the name of one that is trusted here, but another key; was the trusted certificate renewed?"
                .to_owned()
        }
        // The library has no separate variant for it.
        _ if text.contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority, as `openssl req -x509` makes by default; make it with \
             `-addext basicConstraints=critical,CA:FALSE`"
                .to_owned()
        }
        _ => text,
    }
}

/// A cause with a message of its own.
fn known_cause(error: &legacy::Error, operation: &Operation) -> Option<Source> {
    if let Some(failed) = find_in_chain::<ProxyFailed>(error) {
        return Some(Box::new(failed.clone()));
    }
    if let Some(tls) = find_in_chain(error) {
        return match tls {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Some(Box::new(NoTls))
            }
            rustls::Error::InvalidCertificate(reason) => Some(Box::new(Untrusted(reason.clone()))),
            _ => None,
        };
    }
    let answer = find_in_chain::<hyper::Error>(error)?;
    (operation.is_plain_http() && answer.is_parse()).then(|| Source::from(NoHttp))
}

/// Finds an error of this type among an error and its causes.
pub(crate) fn find_in_chain<'e, E: std::error::Error + 'static>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of an I/O error skips the error inside it.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

/// Whether another attempt fails for the same reason.
fn is_permanent(source: &Source) -> bool {
    source.is::<NoTls>()
        || source.is::<NoHttp>()
        || source.is::<Untrusted>()
        || source
            .downcast_ref::<ProxyFailed>()
            .is_some_and(|failed| failed.is_permanent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_that_was_broken_off_may_have_happened() {
        for (method, hint) in [
            (Method::GET, "the request changes nothing; send it again"),
            (
                Method::POST,
                "the request may have been carried out; look before repeating it",
            ),
        ] {
            let operation = Operation::new(&method, "https://e/v0/jobs");
            let source = "cut off".into();
            let error = Error::Interrupted { operation, source };
            assert_eq!(error.hint(), Some(hint));
        }
    }

    #[test]
    fn a_renewed_authority_is_named() {
        let shown = Untrusted(CertificateError::BadSignature).to_string();
        assert!(shown.contains("another key"), "{shown}");
    }
}
