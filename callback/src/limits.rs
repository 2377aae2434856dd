//! Every bound of this package, with its reason.

use std::time::Duration;

/// Longest zone: a name with server, tag, and as much in front of them still fits into the 253 bytes of a name.
pub(crate) const ZONE_BYTES: usize = 150;

/// Largest answer over UDP, so that no network fragments it (DNS flag day 2020).
pub(crate) const UDP_ANSWER: usize = 1232;

/// Largest answer over UDP to a sender who names no size (RFC 1035).
pub(crate) const PLAIN_UDP_ANSWER: usize = 512;

/// An answer over UDP has at most this many times the bytes of its query: whoever forges senders gains nothing.
pub(crate) const AMPLIFICATION: usize = 3;

/// Largest query over UDP that is read. Ordinary ones have 100 bytes.
pub(crate) const UDP_QUERY: usize = 4096;

/// Answers over UDP to one network per second. A resolver of a large provider asks less.
pub(crate) const ANSWERS_PER_SECOND: u32 = 50;

/// Networks whose answers of this second are counted: 10 MB. Senders of other networks get truncated answers.
pub(crate) const NETWORKS: usize = 100_000;

/// Queries that are taken from a socket before other tasks run.
pub(crate) const BATCH: usize = 64;

/// Connections of all listeners of DNS, and of all of HTTP and HTTPS.
pub(crate) const DNS_CONNECTIONS: usize = 256;
pub(crate) const HTTP_CONNECTIONS: usize = 256;

/// All connections.
pub const CONNECTIONS: usize = DNS_CONNECTIONS + HTTP_CONNECTIONS;

/// Connections of one remote address.
pub(crate) const PER_ADDRESS: usize = 16;

/// Longest connection over which DNS is asked.
pub(crate) const DNS_CONNECTION: Duration = Duration::from_secs(10);

/// Time for a client's greeting in TLS, and for the rest of the handshake.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Time for the head of a request.
pub(crate) const HEAD: Duration = Duration::from_secs(10);

/// Time for the body of a request. Then it is answered, however much has arrived.
pub(crate) const BODY: Duration = Duration::from_secs(10);

/// Longest connection with a request, with the delay of a rule and the time in which the answer is received.
pub(crate) const REQUEST: Duration = Duration::from_secs(60);

/// Time to find a payload. After it the answer is that of any other path, so that the hit is reported in time.
pub(crate) const FIND: Duration = Duration::from_secs(10);

/// Longest head.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// How much of a body is kept.
pub(crate) const BODY_BYTES: usize = 64 * 1024;

/// How much of a body is received: senders of larger files still get the answer.
pub(crate) const RECEIVED_BODY: usize = 1024 * 1024;

/// Bytes of the hits that wait for the recorder. One has up to 128 KiB.
pub(crate) const QUEUED_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a method, target or host in a hit. Its head has the rest.
pub(crate) const TEXT_BYTES: usize = 4096;

/// Hits of one tag per minute that may use the whole channel. More of them may only use half of it, so that a flood on one tag
/// leaves room for another.
pub(crate) const FAIR_HITS: u32 = 100;

/// Time for running requests after a stop.
pub(crate) const DRAIN: Duration = Duration::from_secs(1);

/// Time for the answer of an authority of certificates to one request.
pub(crate) const ACME_REQUEST: Duration = Duration::from_secs(30);

/// Longest answer of an authority: a chain has some kilobytes.
pub(crate) const ACME_ANSWER_BYTES: usize = 256 * 1024;

/// Time in which an authority checks the challenges, and in which it then issues.
pub(crate) const ACME_WAIT: Duration = Duration::from_secs(180);

/// Time for a whole order.
pub(crate) const ACME_ORDER: Duration = Duration::from_secs(600);

/// Time for an answer when the zones are checked, and how often is asked.
pub(crate) const ASK: Duration = Duration::from_secs(2);
pub(crate) const ASK_TIMES: usize = 2;

/// Name servers above a zone that are asked, one after the other.
pub(crate) const PARENT_SERVERS: usize = 3;

/// Time for the check of one zone.
pub(crate) const CHECK: Duration = Duration::from_secs(10);
