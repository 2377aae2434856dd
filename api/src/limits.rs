//! Every bound of the API, with its reason.

use std::time::Duration;

/// Connections at once: ten thousand runners and some people, at about 15 KB each.
pub(crate) const CONNECTIONS: usize = 12_000;

/// After an accept that failed for lack of descriptors or memory: long enough not to spin, short enough not to be felt.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// From the end of one request to the end of the next one's head: also how long an idle connection is kept.
pub(crate) const HEAD: Duration = Duration::from_secs(60);

/// Bytes of a head, and what is read ahead of a body: a hundred times an ordinary head, and all connections at once
/// stay below a gigabyte.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// Characters of what a caller gave that are said back in a problem.
pub(crate) const ECHO_CHARS: usize = 100;

/// Bytes of a body for which room is made before they are there, at most: a batch of log records fits, and nobody takes much
/// memory by a large number in a header.
pub(crate) const BODY_EXPECTED: u64 = 1024 * 1024;

/// From one piece of a body to the next, and what a body as a whole may fall behind [`BODY_RATE`].
pub(crate) const BODY_PIECE: Duration = Duration::from_secs(30);

/// Bytes a second below which a body is given up: slower than any link that works, so that nobody keeps a connection
/// by a byte now and then.
pub(crate) const BODY_RATE: u64 = 1024;

/// How long a reader may leave a piece of an artifact or a log lying: what waits for it is let go of, and it asks again
/// from where it was once it is back.
pub(crate) const READER_PAUSE: Duration = Duration::from_secs(120);

/// After a stop signal, how long requests that are being answered may go on.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// How long a read that waits (`wait=true`) is held, below the idle time-outs of common proxies.
pub(crate) const WAIT: Duration = Duration::from_secs(50);

/// Between two comments on an event stream that has nothing to say, so that proxies keep it.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Body of an ordinary request.
pub(crate) const SMALL_BODY: u64 = 64 * 1024;

/// Body of a var or secret: 64 KiB that JSON escapes may make six times as long.
pub(crate) const VALUE_BODY: u64 = 512 * 1024;

/// Body of a poll: it names every job in hand.
pub(crate) const POLL_BODY: u64 = 256 * 1024;

/// Body of a dispatch: 20 inputs of 65,535 characters of up to four bytes, escaped (design section 7).
pub(crate) const DISPATCH_BODY: u64 = 16 * 1024 * 1024;

/// Body of a batch of log records: runners send up to 1 MiB of text, and JSON escapes may take six times that.
pub(crate) const LOG_BODY: u64 = 8 * 1024 * 1024;

/// Body of a report on steps.
pub(crate) const REPORT_BODY: u64 = 4 * 1024 * 1024;

/// Body of an artifact.
pub(crate) const ARTIFACT_BODY: u64 = 64 * 1024 * 1024 * 1024;

/// Items of one page (design section 7), and of one when nothing is asked for.
pub(crate) const PAGE: usize = 200;
pub(crate) const DEFAULT_PAGE: usize = 50;

/// Longest idempotency key: a UUID or a digest fits.
pub(crate) const IDEMPOTENCY_KEY_BYTES: usize = 200;

/// Bytes of an artifact read from disk at once.
pub(crate) const ARTIFACT_PIECE: usize = 256 * 1024;

/// Pieces of a streamed answer that wait for a slow reader.
pub(crate) const STREAM_PIECES: usize = 4;
