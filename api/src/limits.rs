//! Every bound of the API, with its reason.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::rate::Rate;

/// Open connections: ten thousand runners and some people, at about 15 KB each.
pub(crate) const CONNECTIONS: usize = 12_000;

/// Open connections from one remote address: some hundred runners behind one router.
pub(crate) const ADDRESS_CONNECTIONS: usize = 2_000;

/// Refused credentials of one network: a program that repeats an old token must slow down. Tokens are too long to be guessed.
pub(crate) const REFUSALS: Rate = Rate {
    per_second: NonZeroU32::new(20).unwrap(),
    burst: NonZeroU32::new(100).unwrap(),
};

/// How long a browser is known after a sign-in: the longest that browsers keep a cookie.
pub(crate) const KNOWN_BROWSER: Duration = Duration::from_secs(400 * 24 * 3600);

/// How long the sign-in of a device is held: shorter than the idle time-outs of common proxies.
pub(crate) const DEVICE_WAIT: Duration = Duration::from_secs(30);

/// How long a device should wait if too many others wait. Each waits for 10 minutes at most.
pub(crate) const DEVICE_REST: Duration = Duration::from_secs(60);

/// Characters of a path in the audit log: every ordinary path fits.
pub(crate) const AUDITED_CHARS: usize = 1_000;

/// Rate limits in memory, one for each recent caller: about a megabyte.
pub(crate) const COUNTED_CALLERS: usize = 10_000;

/// Time from the end of one request to the end of the next one's head. Idle connections are kept this long.
pub(crate) const HEAD: Duration = Duration::from_secs(60);

/// Characters of a caller's text that a problem repeats.
pub(crate) const ECHO_CHARS: usize = 100;

/// Bytes reserved for a body before they arrive, at most. A batch of log records fits, and a large number in a header
/// cannot take much memory.
pub(crate) const BODY_EXPECTED: u64 = 1024 * 1024;

/// Memory for all bodies together, in KiB: a quarter of a gigabyte. The first [`SMALL_BODY`] bytes of each body do not count.
/// Without room, a request is refused with `Retry-After`.
pub(crate) const BODIES_KIB: usize = 256 * 1024;

/// How long a caller without room for its body should wait: about as long as a large body takes on a fast link.
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(1);

/// Longest pause between two pieces of a body. A whole body may take this much longer than at [`BODY_RATE`].
pub(crate) const BODY_PIECE: Duration = Duration::from_secs(30);

/// Bytes per second below which a body is refused. Every working connection is faster, and a client cannot keep a connection by
/// sending a byte now and then.
pub(crate) const BODY_RATE: u64 = 1024;

/// How long a reader may leave a piece of an artifact or a log unread. After that the response ends, and the reader can continue
/// with another request.
pub(crate) const READER_PAUSE: Duration = Duration::from_secs(120);

/// How long running requests may continue after a stop signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// How long a waiting read (`wait=true`) is held: shorter than the idle time-outs of common proxies.
pub(crate) const WAIT: Duration = Duration::from_secs(50);

/// Time between two checks of the rights of a stream or held read.
pub(crate) const RIGHTS_CHECK: Duration = Duration::from_secs(60);

/// Time between two comments on a quiet event stream, so that proxies keep it.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Listeners to events: some browsers, and a program for each running job.
pub(crate) const LISTENERS: usize = 4_000;

/// Listeners that get the events of only one project, for each project. The other half stays free for other projects.
pub(crate) const PROJECT_LISTENERS: usize = LISTENERS / 2;

/// Listeners of one person, or of the jobs of one project: a program that leaks streams cannot use them all.
pub(crate) const SHARE_LISTENERS: usize = LISTENERS / 4;

/// How long a refused listener should wait. Streams end when tabs are closed, which takes a while.
pub(crate) const LISTENER_WAIT: Duration = Duration::from_secs(10);

/// Commits with events that wait for one listener: a page that does not read for some seconds misses none of them.
pub(crate) const LISTENER_COMMITS: usize = 1_024;

/// Time between two events of a page's stream. A page is fetched four times a second at most, so more would be useless.
pub(crate) const TOPICS_PAUSE: Duration = Duration::from_millis(250);

/// Topics that one event of a page's stream names. If more have changed, the event says that anything may have changed.
pub(crate) const EVENT_TOPICS: usize = 1_000;

/// Shortest age at which a page with many readers is rendered again. A page with one reader is rendered about as often.
pub(crate) const RENEWAL_PAUSE: Duration = Duration::from_millis(250);

/// Longest age at which a page with many readers is rendered again.
pub(crate) const LONGEST_RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// Between these bounds, a page is kept this many times as long as it took to render. All its readers together use a fiftieth of
/// a processor.
pub(crate) const RENEWAL_SHARE: u32 = 50;

/// Pages that are rendered once for many readers.
pub(crate) const RENEWALS: usize = 200;

pub(crate) const SMALL_BODY: u64 = 64 * 1024;

/// Body of a var or secret: 64 KiB, which JSON escapes may make six times as long.
pub(crate) const VALUE_BODY: u64 = 512 * 1024;

/// Body of a validation: the largest workflow file, 1 MiB, which JSON escapes may make six times as long.
pub(crate) const VALIDATE_BODY: u64 = 8 * 1024 * 1024;

/// Texts that are validated at once. Each may occupy a thread for a second.
pub(crate) const VALIDATED_AT_ONCE: usize = 2;

/// Secrets whose masking is checked at once. A value of 64 KiB occupies a thread and up to 200 megabytes for a moment.
pub(crate) const MASKING_AT_ONCE: usize = 1;

/// Longest name of a file that is validated. Every diagnostic repeats it.
pub(crate) const VALIDATED_FILE_CHARS: usize = 200;

/// Body of a poll, which names every job of the runner.
pub(crate) const POLL_BODY: u64 = 256 * 1024;

/// Body of a dispatch: 20 inputs of 65,535 characters, each up to four bytes and escaped.
pub(crate) const DISPATCH_BODY: u64 = 16 * 1024 * 1024;

/// Body of a batch of log records: runners send up to 1 MiB of text, which JSON escapes may make six times as long.
pub(crate) const LOG_BODY: u64 = 8 * 1024 * 1024;

/// Body of a timeline or completion of a job.
pub(crate) const REPORT_BODY: u64 = 4 * 1024 * 1024;

/// Body of an artifact: as large as a blob.
pub(crate) const ARTIFACT_BODY: u64 = 64 * 1024 * 1024 * 1024;

/// A blob: larger than any image or dump that people keep.
pub(crate) const BLOB_BODY: u64 = 64 * 1024 * 1024 * 1024;

/// Body of one version of a payload.
pub(crate) const PAYLOAD_BODY: u64 = model::limits::PAYLOAD_BYTES;

/// The form with the text of a payload, of which a byte may become three.
pub(crate) const EDIT_BODY: u64 = 4 * ui::pages::EDITED_BYTES;

/// Body of a render, with up to 100,000 targets.
pub(crate) const RENDER_BODY: u64 = 16 * 1024 * 1024;

/// Renders at once, and those of one share. Each has its bodies in memory.
pub(crate) const RENDERS_AT_ONCE: usize = 4;
pub(crate) const RENDERS_OF_SHARE: usize = 2;

/// Bytes of the payloads of one render.
pub(crate) const RENDERED_BODIES: u64 = 16 * 1024 * 1024;

/// Bytes of the payloads of one render, times its targets.
pub(crate) const RENDERED_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of a rendered payload, as many as a payload and its values have together.
pub(crate) const RENDERED_LINE: usize = 16 * 1024 * 1024;

/// Bytes that come out of a render. They are sent in pieces.
pub(crate) const RENDERED: usize = 1024 * 1024 * 1024;

/// About the bytes of a render that are sent at once.
pub(crate) const RENDERED_PIECE: usize = 64 * 1024;

/// Items of one page: the maximum, and the default.
pub(crate) const PAGE: usize = 200;
pub(crate) const DEFAULT_PAGE: usize = 50;

/// Lines of one page of a scan's history: enough for a chart of some weeks, and about a quarter of a megabyte.
pub(crate) const HISTORY_PAGE: usize = 1_000;

/// Newest finished jobs that are searched for a part of an id: more than a person sees in lists. The search reads their history
/// lines, not their records.
pub(crate) const NAMED_JOBS: usize = 1_000;

/// Jobs that an answer lists when several ids contain the given part.
pub(crate) const CANDIDATES: usize = 10;

/// Files on one page of an artifact. Each page reads the directory of the zip again, so a program that reads all files needs
/// large pages.
pub(crate) const ENTRIES_PAGE: usize = 10_000;

/// Matches on one page of a search in a log. Each page reads the whole log again for the count, so a program that reads all
/// matches needs large pages.
pub(crate) const SEARCH_PAGE: usize = 10_000;

/// Logs that are searched at once. Each search occupies a thread, and other reads need threads, too.
pub(crate) const SEARCHED_AT_ONCE: usize = 4;

pub(crate) const SEARCHED_OF_SHARE: usize = 2;

/// Directories of zips that are read at once. A comparison of two zips takes up to fifty megabytes.
pub(crate) const ZIPS_AT_ONCE: usize = 4;

pub(crate) const ZIPS_OF_SHARE: usize = 2;

/// Lists of finished jobs that are made at once. Two hundred large records take some megabytes, and a filter that matches few
/// jobs reads tens of megabytes more.
pub(crate) const LISTS_AT_ONCE: usize = 8;

/// Lists of finished jobs that one token makes at once. More would not be faster.
pub(crate) const LISTS_OF_SHARE: usize = 4;

/// Longest text to search for in a log: a long line that somebody copied.
pub(crate) const SEARCHED_CHARS: usize = 1_000;

/// Longest idempotency key. A UUID or a digest fits.
pub(crate) const IDEMPOTENCY_KEY_BYTES: usize = 200;

/// Bytes of an artifact or blob read from disk at once.
pub(crate) const CONTENT_PIECE: usize = 256 * 1024;

/// Pieces of a streamed answer that wait for a slow reader.
pub(crate) const STREAM_PIECES: usize = 4;

/// Series of tokens and scans that one answer of `/metrics` has: about half a megabyte, and enough for a thousand scans.
pub(crate) const METRIC_SERIES: usize = 5_000;

/// Events that a preview of rules shows.
pub(crate) const PREVIEWED: usize = 200;

/// Tags that an event about interactions names.
pub(crate) const EVENT_TAGS: usize = 20;

/// Interactions of a page. Each may have 128 KiB of raw request, and clients accept 32 MiB.
pub(crate) const INTERACTIONS_PAGE: usize = 100;

/// How long a list of interactions searches. Then the page ends early, within 0.1 s: the last read is not broken off.
pub(crate) const INTERACTIONS_TIME: Duration = Duration::from_millis(80);
