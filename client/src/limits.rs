//! Every bound of the client, each with its reason.

use std::time::Duration;

/// Time to make a connection. A slower host is probably down.
pub const CONNECT: Duration = Duration::from_secs(10);

/// Time from a request to its complete answer. The slowest ordinary answer is a commit on a busy disk.
pub const ANSWER: Duration = Duration::from_secs(30);

/// The same for requests that the daemon holds, for at most 50 s, and for tests of channels, which take at most 60 s. It takes
/// longer only if it must fetch files first; then the request is repeated.
pub const HELD_ANSWER: Duration = Duration::from_secs(65);

/// Time between two pieces of a download. After that the connection counts as hung.
pub const STALL: Duration = Duration::from_secs(60);

/// The slowest upload worth waiting for, in bytes per second.
pub const UPLOAD_BYTES_PER_SECOND: u64 = 64 * 1024;

/// How long an unused connection is kept. The daemon closes it after 60 s, and no request must be sent on a connection
/// that is being closed.
pub const IDLE_CONNECTION: Duration = Duration::from_secs(50);

/// Silence after which the kernel probes the connection, and the time between two probes. This ends a followed log if
/// the daemon's machine loses power.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Number of unanswered probes that end a connection.
pub const KEEP_ALIVE_QUESTIONS: u32 = 3;

/// Bytes of an answer in memory. The largest is a page of 200 jobs, or the assignment of a job with the largest inputs
/// (16 MiB).
pub const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of one line of a log stream: a record's text has at most 64 KiB, which JSON escapes can make six times as
/// long.
pub const LOG_LINE_BYTES: usize = 1024 * 1024;

/// Bytes of one line of a render: a payload of 10 MiB, which JSON escapes may make six times as long.
pub const RENDERED_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes read from a file at once during an upload.
pub const UPLOAD_PIECE: usize = 256 * 1024;

/// The size for which an upload of unknown length may take time.
pub const UNKNOWN_SIZE: u64 = 16 * 1024 * 1024 * 1024;

/// Blobs on one page of a list: the daemon's maximum.
pub const BLOBS: usize = 200;

/// Pages of one list, at 200 items each. A daemon that sends more pages repeats itself.
pub const PAGES: usize = 1_000;

/// Attempts of a repeatable call: about 1.5 s, so that a person soon sees that the daemon does not answer.
pub const CALL_ATTEMPTS: u32 = 5;

/// Attempts of a call that waits anyway: about 40 s, so that it survives a restart of the daemon.
pub const WAIT_ATTEMPTS: u32 = 14;

/// A followed log whose connection lasted this long counts as a success. A proxy may end quiet connections every
/// minute.
pub const STEADY_CONNECTION: Duration = Duration::from_secs(10);

/// The pause before the first repeat. Further pauses double.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause that the daemon may ask for (`Retry-After`).
pub const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Attempts of a call that the daemon asked to repeat later: with its pauses several seconds, so that a script that is too fast
/// becomes slower but does not fail.
pub const LATER_ATTEMPTS: u32 = 8;

/// The longest pause between two repeats.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long an upload of `size` bytes may take.
pub fn upload(size: u64) -> Duration {
    ANSWER + Duration::from_secs(size / UPLOAD_BYTES_PER_SECOND)
}
