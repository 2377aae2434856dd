//! Errors of connections. They name hosts, never a path or a query, which may be secret.

use std::time::Duration;

use ipnet::IpNet;
use thiserror::Error;

use crate::RECEIVED_BYTES;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    #[error(
        "{host} has the address {}, which is {range}; add `{entry}` or `{}:{port}` to `outbound.allow` in {config_file}",
        entry.addr(), bracketed(host)
    )]
    Forbidden {
        host: String,
        port: u16,
        /// The address, as an entry that allows it.
        entry: IpNet,
        range: &'static str,
        config_file: String,
    },
    #[error("{host} is in `{zone}`, the zone of this daemon's callback servers; name another host")]
    OwnZone { host: String, zone: String },
    #[error("the URL is unusable: {0}")]
    Url(&'static str),
    #[error("{0:?} is no host name or address in ASCII")]
    Host(String),
    #[error("the certificate authority is unusable: {0}")]
    Ca(String),
    #[error("cannot connect to {host}, port {port}: {reason}")]
    Unreachable {
        host: String,
        port: u16,
        reason: String,
    },
    #[error("no TLS with {host}: {reason}")]
    Tls { host: String, reason: String },
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("{host} does not answer as an HTTP server: {reason}")]
    Http { host: String, reason: String },
}

impl Error {
    /// True if another attempt cannot succeed before somebody changes a setting.
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Forbidden { .. }
                | Self::OwnZone { .. }
                | Self::Url(_)
                | Self::Host(_)
                | Self::Ca(_)
        )
    }
}

fn bracketed(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// The message of a stream that received too much.
pub(crate) fn too_much() -> String {
    format!("more than {} KiB were received", RECEIVED_BYTES / 1024)
}

/// The cause at the end of the chain, which says most.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}
