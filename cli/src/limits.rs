//! Every bound of the command, each with its reason.

use std::time::Duration;

/// Bytes of a token file or a saved login. A token has well under a hundred.
pub(crate) const TOKEN_FILE: u64 = 4 * 1024;

/// Bytes of a file with an input's value: 65,535 characters of four bytes, the maximum of a dispatch.
pub(crate) const INPUT_FILE: u64 = 65_535 * 4;

/// Bytes of a file with the value of a var or secret: 64 KiB, the maximum of the daemon, and a line end.
pub(crate) const VALUE_FILE: u64 = 64 * 1024 + 2;

/// Bytes of a file with a payload: the maximum of the daemon.
pub(crate) const PAYLOAD_FILE: u64 = 10 * 1024 * 1024;

/// Bytes of a file with targets: a hundred thousand, the maximum of a render, with a hundred and more bytes each.
pub(crate) const TARGETS_FILE: u64 = 15 * 1024 * 1024;

/// Unpacked bytes that any artifact may have. No artifact of a normal job is larger, and a disk has room for it.
pub(crate) const UNPACKED: u64 = 1024 * 1024 * 1024;

/// How many times larger than its zip an unpacked artifact may be. Text shrinks by 10 to 20; a zip made to fill a disk shrinks by
/// 1,000.
pub(crate) const UNPACKED_TIMES: u64 = 100;

/// Entries of a zip. A folder of dependencies has 100,000; a zip made to use up a disk's inodes has more.
pub(crate) const UNPACKED_ENTRIES: usize = 1_000_000;

/// Different lines of one file, old and new together, that are compared: their digests take up to 75 MB. The largest lists of
/// hosts have about a million lines.
pub(crate) const LINES: usize = 3_500_000;

/// Bytes of a compared line, which is in memory as a whole. Lists and JSON lines are shorter.
pub(crate) const LINE: usize = 1024 * 1024;

/// Bytes of a line that a terminal gets at once. A longer line is cut, which at worst breaks a character or a colour.
pub(crate) const SHOWN_LINE: usize = 64 * 1024;

/// Secrets with at least this many characters seldom occur in other text. Shorter ones are accepted with a warning.
pub(crate) const SECRET_CHARS: usize = 8;

/// Matches in one answer to a search: the maximum of the daemon, because each page reads the whole log.
pub(crate) const MATCHES: u32 = 10_000;

/// Files of an artifact in one answer: the maximum of the daemon, because each page reads the directory of the zip.
pub(crate) const ENTRIES: u32 = 10_000;

/// Least time between two requests for an unfinished job. It matters only if a daemon does not hold its answer.
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How long a person waits for a job to start before the command prints the reason: longer than a free runner needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two updates of a progress line. Faster updates would only flicker.
pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// Bytes of a workflow file: the language's own bound. It also keeps a wrong path, such as a disk image, out of memory.
pub(crate) const WORKFLOW_FILE: u64 = workflow::limits::FILE_BYTES as u64;

/// Bytes of a file with the context of an expression. A frozen context has at most 64 KiB; a context written by hand may be
/// longer.
pub(crate) const CONTEXT_FILE: u64 = 1024 * 1024;

/// Most times of a schedule in one list: more than two years of days.
pub(crate) const CRON_TIMES: i64 = 1_000;

/// A piece of a file that is hashed at once.
pub(crate) const HASHED_PIECE: usize = 256 * 1024;

/// Characters of an input that `job show` prints in a table.
pub(crate) const SHOWN_INPUT: usize = 200;

/// The largest file with the rules of a callback server.
pub(crate) const CALLBACK_RULES_BYTES: u64 = 512 * 1024;
