//! Every bound of the client, each with its reason.

use std::time::Duration;

/// To set up a connection: a host that needs longer is as good as gone.
pub const CONNECT: Duration = Duration::from_secs(10);

/// From a request to its whole answer. The slowest ordinary answer is a commit on a loaded disk.
pub const ANSWER: Duration = Duration::from_secs(30);

/// The same for requests that the daemon holds, which it does for at most 50 s.
pub const HELD_ANSWER: Duration = Duration::from_secs(65);

/// Between two pieces of a download, after which the other side counts as hung.
pub const STALL: Duration = Duration::from_secs(60);

/// The slowest upload that is still worth waiting for, in bytes per second.
pub const UPLOAD_BYTES_PER_SECOND: u64 = 64 * 1024;

/// An unused connection is closed before the daemon closes it, so that no request goes out on a dying one: the daemon
/// gives a connection 60 s to begin its next request.
pub const IDLE_CONNECTION: Duration = Duration::from_secs(50);

/// Silence after which the kernel asks whether the other side is still there, and between two such questions. It is
/// what ends a followed log whose daemon has lost its power.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Unanswered such questions that end a connection.
pub const KEEP_ALIVE_QUESTIONS: u32 = 3;

/// Bytes of an answer that is read into memory. The largest is a page of 200 jobs, or the assignment of a job whose
/// inputs are as large as a dispatch may make them (16 MiB).
pub const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of one line of a log stream: a record's text has at most 64 KiB, which JSON escapes can make six times as long.
pub const LOG_LINE_BYTES: usize = 1024 * 1024;

/// Bytes read from a file at once while it is uploaded.
pub const UPLOAD_PIECE: usize = 64 * 1024;

/// Pages of one list that is read to its end, at 200 items each; a daemon that hands out more goes in circles.
pub const PAGES: usize = 1_000;

/// How often a call that may be repeated goes out in all: about 1.5 s, so that a person sees soon that nobody answers.
pub const CALL_ATTEMPTS: u32 = 5;

/// The same for a call that waits for something anyway: about 40 s, so that it outlives a restart of the daemon.
pub const WAIT_ATTEMPTS: u32 = 14;

/// A followed log whose connection held this long has not failed yet: a proxy may end quiet connections every minute.
pub const STEADY_CONNECTION: Duration = Duration::from_secs(10);

/// The pause before the first repetition; it doubles from there.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two repetitions.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long an upload of `size` bytes may take.
pub fn upload(size: u64) -> Duration {
    ANSWER + Duration::from_secs(size / UPLOAD_BYTES_PER_SECOND)
}
