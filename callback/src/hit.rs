//! What is reported of one query or request.

use std::net::{IpAddr, SocketAddr};
use std::time::SystemTime;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::ids::{ServerId, Tag};

/// One query or request that named a known server, with a live tag or without a tag.
#[derive(Debug)]
pub struct Hit {
    pub at: SystemTime,
    /// The sender; with PROXY v2 the sender that a trusted peer reports.
    pub peer: SocketAddr,
    pub server: ServerId,
    pub tag: Option<Tag>,
    pub kind: Kind,
    /// What was answered, in a few words: `NOERROR 1 record`, `200`, `none (rate limit)`.
    pub answer: String,
    /// The name of the rule that answered.
    pub rule: Option<String>,
    /// Its bytes in the queue. They are given back when the hit is dropped.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

impl Hit {
    /// About the bytes that it takes.
    pub(crate) fn weight(&self) -> u32 {
        let bytes = match &self.kind {
            Kind::Dns(dns) => dns.message.len(),
            Kind::Http(http) => http.head.len() + http.body.len() + 3 * http.target.len(),
        };
        u32::try_from(bytes + 1024).unwrap_or(u32::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Dns(Dns),
    Http(Http),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dns {
    pub transport: Transport,
    /// The name in its case as sent. Bytes other than printable ASCII are escaped as `\DDD`, so it is safe to show.
    pub name: String,
    /// `A`, `TXT`, or `TYPE65280`.
    pub record_type: String,
    /// The network of the asking client, if the resolver reports it (EDNS client subnet): address and length of the prefix.
    pub client_subnet: Option<(IpAddr, u8)>,
    /// The query as received.
    pub message: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// Texts are what a stranger sent, with bytes that are not UTF-8 replaced. They are empty if missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    pub method: String,
    pub target: String,
    /// The first header `Host`, with its port.
    pub host: String,
    pub is_tls: bool,
    /// The name that the client asked for in TLS. It may differ from `host`.
    pub sni: Option<String>,
    /// Request line and headers as received, at most 64 KiB.
    pub head: Bytes,
    /// What was received after the head, at most 64 KiB.
    pub body: Bytes,
    /// Whether the body had more bytes, or broke off.
    pub truncated: bool,
    /// Whether it is no HTTP/1 request, its head did not arrive in time, or its TLS handshake failed. Then `head` is all that was received.
    pub malformed: bool,
}
