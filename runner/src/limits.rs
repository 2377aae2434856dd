//! Every bound of the runner, each with its reason.

use std::time::Duration;

use client::Backoff;

/// From SIGTERM to SIGKILL: long enough to write out what a script has in hand, short enough that a cancelled job frees
/// its slot soon.
pub const GRACE: Duration = Duration::from_secs(10);

/// After SIGKILL, until a group that is still there is given up: only a process stuck in the kernel stays so long.
pub const AFTER_KILL: Duration = Duration::from_secs(5);

/// The first look whether a signalled group is gone; each further one waits twice as long, up to [`LAST_LOOK`]. Nobody
/// tells a runner about the end of processes that are not its children.
pub const FIRST_LOOK: Duration = Duration::from_millis(1);

/// The longest wait between two looks at a signalled group.
pub const LAST_LOOK: Duration = Duration::from_millis(50);

/// Bytes read from a pipe at once: what a pipe holds by default.
pub const READ_PIECE: usize = 64 * 1024;

/// Bytes read from a pipe after the script has ended: what an unprivileged process can make a pipe hold. More than that
/// was written later, by a process that escaped from the step's group.
pub const DRAIN_BYTES: usize = 1024 * 1024;

/// Bytes of one log record's text; longer lines become several records. Keeps every reader's memory bounded.
pub const LINE_BYTES: usize = 64 * 1024;

/// Bytes of one request with log records, as JSON. Large enough that a request costs little per line, small enough to
/// be held in memory at both ends.
pub const BATCH_BYTES: usize = 1024 * 1024;

/// How long the first unsent log line or step change waits for others: a reader of a live log does not feel it, and a
/// short job sends everything at once.
pub const SHIP_AFTER: Duration = Duration::from_millis(200);

/// Bytes of one spool file, so that what the daemon has made durable can be removed while the job still runs.
pub const SPOOL_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes of one job's spool. A script that writes more while the daemon is away waits at its pipe, as it would at a slow
/// terminal, rather than fill the disk.
pub const SPOOL_BYTES: u64 = 1024 * 1024 * 1024;

/// How long a job that may be retried goes on without any answer from the daemon, which starts the retry after 120 s:
/// two jobs never do the same work side by side.
pub const SILENCE: Duration = Duration::from_secs(100);

/// How long after a deadline the runner stops a job by itself. The daemon does so at the deadline and says it better; this
/// is for a daemon that is away, and for clocks that differ a little.
pub const DEADLINE_ALLOWANCE: Duration = Duration::from_secs(5);

/// How long the worker token stays good for the last log lines and the completion of a job that was cancelled.
pub const AFTER_EXPIRY: Duration = Duration::from_secs(120);

/// How long the log of a job that was cancelled is still shipped after its processes have ended; what is left is cut.
/// Long enough for a log that is read by people, short enough that one that grew without bound frees its slot soon.
pub const LAST_LINES: Duration = Duration::from_secs(3);

/// How long a worker still talks to the daemon when its runner was told to stop at once, or its job was cancelled. How a
/// cancelled job ended is said for longer, to a daemon that does not answer.
pub const LAST_WORDS: Duration = Duration::from_secs(10);

/// The pause after the first failed request; it doubles from there. A daemon that restarts is back within it.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two attempts: what a returned daemon waits at most for a runner.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause between two attempts while another process runs under this runner's name: nothing waits for this
/// one, and whoever ends the other process should not wait long for it either.
pub const LONGEST_CONFLICT_PAUSE: Duration = Duration::from_secs(30);

/// The pauses between two attempts to reach the daemon.
pub(crate) const fn backoff() -> Backoff {
    Backoff::new(FIRST_PAUSE, LONGEST_PAUSE)
}

/// Polls in flight at once: the newest and those it has replaced but that the daemon has not ended yet.
pub const POLLS: usize = 3;

/// Bytes of one entry of a process's environment, `NAME=value` with its closing zero: the kernel's `MAX_ARG_STRLEN`.
pub const ENVIRONMENT_ENTRY_BYTES: usize = 128 * 1024;

/// Entries of one artifact. Their names are held in memory to be sorted.
pub const ARTIFACT_ENTRIES: usize = 100_000;

/// Depth of folders below an artifact's path; deeper trees come from links that lead in circles.
pub const ARTIFACT_DEPTH: usize = 128;

/// The level of deflate: nearly as small as the default for logs and reports, and several times as fast.
pub const ARTIFACT_COMPRESSION: i64 = 3;

/// Bytes read from a file at once while it is packed.
pub const ARTIFACT_PIECE: usize = 64 * 1024;

/// Bytes of a registration token given on stdin or in a file; ours have under 100.
pub const REGISTRATION_TOKEN_BYTES: u64 = 4096;

/// Bytes of a runner's name: it is the name of a folder.
pub const NAME_BYTES: usize = 64;

/// Jobs of one runner at once, above which a typing error is likelier than such a machine. The daemon takes no more.
pub const CAPACITY: u32 = 1_000;
