//! Every bound of the command, each with its reason.

use std::time::Duration;

/// Bytes of a file that holds a token: a token has well under a hundred.
pub(crate) const TOKEN_FILE: u64 = 4 * 1024;

/// Bytes of a file that holds an input's value: 65,535 characters of four bytes, which is what a dispatch takes.
pub(crate) const INPUT_FILE: u64 = 65_535 * 4;

/// Bytes of a file that holds the value of a var or secret: 64 KiB, which is what the daemon takes, and a line end.
pub(crate) const VALUE_FILE: u64 = 64 * 1024 + 2;

/// Bytes that an artifact may have unpacked whatever its zip has: no artifact of a normal job is larger, and a disk holds it.
pub(crate) const UNPACKED: u64 = 1024 * 1024 * 1024;

/// How many times as large as its zip an artifact may be unpacked: text shrinks by 10 to 20, a zip that is to fill a disk by 1,000.
pub(crate) const UNPACKED_TIMES: u64 = 100;

/// Files and folders in a zip that is unpacked: a folder of dependencies has 100,000, a zip that is to use up a disk's inodes more.
pub(crate) const UNPACKED_ENTRIES: usize = 1_000_000;

/// Characters from which on a secret seldom occurs in other text. Shorter ones are taken with a warning.
pub(crate) const SECRET_CHARS: usize = 8;

/// The least time between two questions whether a job is over. A daemon that holds its answer never lets this matter;
/// one that does not must not be asked in a tight circle.
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How long a person waits for a job to begin before they are told why it has not: longer than a free runner needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Between two updates of a progress line: faster than this, a person sees only flicker.
pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// Bytes of a workflow file: the language's own bound, which also keeps a mistaken path, such as a disk image, out of
/// memory.
pub(crate) const WORKFLOW_FILE: u64 = workflow::limits::FILE_BYTES as u64;

/// Bytes of a file with the values that an expression reads. A frozen context has at most 64 KiB; one written to try
/// things out may be a little longer.
pub(crate) const CONTEXT_FILE: u64 = 1024 * 1024;

/// Most times of a schedule that are listed: two years of days, which nobody reads and a program may want.
pub(crate) const CRON_TIMES: i64 = 1_000;
