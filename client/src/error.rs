//! What can go wrong between here and the daemon.

use std::fmt;
use std::io;
use std::sync::Arc;

use http::Method;
use hyper_util::client::legacy;
use rustls::InvalidMessage;
use wire::{ErrorCode, Problem};

/// What was attempted: the method and the URL of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Operation(Arc<str>);

impl Operation {
    pub(crate) fn new(method: &Method, url: &str) -> Self {
        Self(format!("{method} {url}").into())
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

/// A request that did not get the answer of its route.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be that of a daemon.
    #[error("{url:?} is no base URL: {reason}")]
    BaseUrl {
        /// What was given, unless it holds credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that no path can hold.
    #[error("{name:?} cannot be a name")]
    Name {
        /// What was given.
        name: String,
    },
    /// TLS, or the pool around it, cannot be set up.
    #[error("cannot set up HTTPS")]
    Connector {
        /// Why.
        source: Source,
    },
    /// The request could not be written: a token no header can hold, or a file that cannot be read.
    #[error("cannot make the request {operation}")]
    Unsendable {
        /// What was attempted.
        operation: Operation,
        /// Why.
        source: Source,
    },
    /// No connection came about. The request was not carried out.
    #[error("cannot reach the daemon for {operation}")]
    Unreachable {
        /// What was attempted.
        operation: Operation,
        /// Why.
        source: Source,
    },
    /// The connection ended before the answer did. Whether the request was carried out is not known.
    #[error("lost the connection to the daemon during {operation}")]
    Interrupted {
        /// What was attempted.
        operation: Operation,
        /// Why.
        source: Source,
    },
    /// No answer within the bounds of [`crate::limits`]. Whether the request was carried out is not known.
    #[error("got no answer in time to {operation}")]
    TimedOut {
        /// What was attempted.
        operation: Operation,
    },
    /// The daemon said no.
    #[error("{} ({operation}, status {status}){}", problem.detail, problem.fields())]
    Refused {
        /// What was attempted.
        operation: Operation,
        /// The HTTP status.
        status: u16,
        /// Why, in the daemon's words; made up from the status when something else than a daemon answered.
        problem: Box<Problem>,
    },
    /// An answer that is none of this contract.
    #[error("cannot make sense of the answer to {operation}: {reason}")]
    Protocol {
        /// What was attempted.
        operation: Operation,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl Error {
    /// Whether the same call may do better later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !source.is::<PlainHttp>(),
            Self::Interrupted { .. } | Self::TimedOut { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::BaseUrl { .. }
            | Self::Name { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Protocol { .. } => false,
        }
    }

    /// Whether a call that may go out twice should do so at once: the daemon is not there, or not there yet.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !source.is::<PlainHttp>(),
            Self::Interrupted { .. } => true,
            Self::Refused { status, .. } => matches!(status, 502..=504),
            Self::BaseUrl { .. }
            | Self::Name { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => false,
        }
    }

    /// The daemon's refusal, when it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::BaseUrl { .. }
            | Self::Name { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => None,
        }
    }

    /// The refusal's code, when it is one.
    pub fn code(&self) -> Option<ErrorCode> {
        self.problem().map(|problem| problem.code)
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::BaseUrl { .. }
            | Self::Name { .. }
            | Self::Connector { .. }
            | Self::Unsendable { .. }
            | Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => None,
        }
    }

    /// What to do next, when there is something to do.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::BaseUrl { .. } => {
                Some("give the daemon's address as in https://everscan.example.org, without /v0")
            }
            Self::Connector { .. } => Some("are the machine's root certificates installed?"),
            Self::Unreachable { source, .. } if source.is::<PlainHttp>() => {
                Some("write the address with http://, or put TLS in front of the daemon")
            }
            Self::Unreachable { .. } => {
                Some("is everscand running, and is SERVICE_URL its address?")
            }
            Self::Interrupted { .. } | Self::TimedOut { .. } => {
                Some("the request may have been carried out; look before repeating it")
            }
            Self::Refused { problem, .. } => problem.hint.as_deref(),
            Self::Protocol { .. } => {
                Some("is SERVICE_URL the address of everscand, and is this client as new as it?")
            }
            Self::Name { .. } | Self::Unsendable { .. } => None,
        }
    }

    /// A request that got no answer.
    pub(crate) fn unanswered(operation: &Operation, error: legacy::Error) -> Self {
        let operation = operation.clone();
        if speaks_plain_http(&error) {
            let source = Box::new(PlainHttp);
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

    /// An answer whose body broke off.
    pub(crate) fn broken_off(operation: &Operation, error: hyper::Error) -> Self {
        Self::Interrupted {
            operation: operation.clone(),
            source: Box::new(error),
        }
    }
}

/// TLS was answered with HTTP.
#[derive(Debug, thiserror::Error)]
#[error("the server speaks plain HTTP there, and no HTTPS")]
struct PlainHttp;

/// Whether a server has answered the first words of TLS with something else; everscand itself speaks plain HTTP.
fn speaks_plain_http(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_no_tls = |error: &rustls::Error| {
        matches!(
            error,
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)
        )
    };
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref().is_some_and(is_no_tls) {
            return true;
        }
        // An I/O error does not give what it wraps as its source.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
