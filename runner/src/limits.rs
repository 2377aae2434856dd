//! Every bound of the runner, each with its reason.

use std::time::Duration;

use client::Backoff;

/// Bytes of a job's secrets up to which preparing to mask them takes well under a millisecond, which no other job notices.
pub const MASKED_AT_ONCE: usize = 512;

/// From SIGTERM to SIGKILL: long enough for a script to write its data, short enough that a cancelled job frees its slot
/// soon.
pub const GRACE: Duration = Duration::from_secs(10);

/// How long the steps that run after a cancel or timeout may take together before they are stopped: with the following grace
/// period, a minute. The daemon accepts the log of a cancelled job for 120 s, which covers this time, the earlier grace period,
/// and the rest of the log.
pub const CLEAN_UP: Duration = Duration::from_secs(50);

/// How long to wait for a process after SIGKILL. Only a process that is stuck in the kernel takes longer.
pub const AFTER_KILL: Duration = Duration::from_secs(5);

/// How long a supervisor may take to answer, in addition to the grace period when processes end. It takes longer than
/// [`AFTER_KILL`] only if it is stopped.
pub const ANSWER: Duration = Duration::from_secs(6);

/// How long a supervisor of steps waits for the next job. Starting a new supervisor takes milliseconds.
pub const SUPERVISOR_IDLE: Duration = Duration::from_secs(60);

/// The shortest time between two searches for inherited children that have ended. A search reads the list of all
/// processes.
pub const ORPHANS_EVERY: Duration = Duration::from_secs(60);

/// Bytes read from a pipe at once: what a pipe holds by default.
pub const READ_PIECE: usize = 64 * 1024;

/// Bytes read from a pipe after the script has ended: the most that an unprivileged process can make a pipe hold.
/// Anything beyond was written later, by a process that left the step's group.
pub const DRAIN_BYTES: usize = 1024 * 1024;

/// Bytes of one log record's text; longer lines become several records. Keeps every reader's memory bounded.
pub const LINE_BYTES: usize = 64 * 1024;

/// How often a line that a program rewrites with carriage returns becomes a record: often enough to watch it, and a progress bar
/// that runs for an hour makes only 3,600 records.
pub const UPDATES_EVERY: Duration = Duration::from_secs(1);

/// Bytes of one request with log records, as JSON. Large enough that a request costs little per line, small enough for
/// the memory of both ends.
pub const BATCH_BYTES: usize = 1024 * 1024;

/// How long the first unsent log line or step change waits for others. Readers of a live log do not notice it, and a short job
/// sends everything in one request.
pub const SHIP_AFTER: Duration = Duration::from_millis(200);

/// Bytes of one spool file. A file is removed when the daemon has made all of it durable, even while the job runs.
pub const SPOOL_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes of one job's spool. If a script writes more while the daemon is away, it blocks on its pipe, as on a slow terminal, and
/// the disk does not fill up.
pub const SPOOL_BYTES: u64 = 1024 * 1024 * 1024;

/// How long a job that may be retried runs without an answer from the daemon. The daemon considers the job lost after 120 s. The
/// job's processes have [`GRACE`] and [`AFTER_KILL`] to end before that, so its retry never runs at the same time.
pub const SILENCE: Duration = Duration::from_secs(100);

/// The longest pause between two checks of the silence. Timers stop while the machine sleeps; a check shows that it has
/// slept.
pub const CONTACT_CHECK: Duration = Duration::from_secs(5);

/// How long artifacts are uploaded after the job has timed out and its processes have ended.
pub const TIMEOUT_UPLOADS: Duration = Duration::from_secs(60);

/// Artifacts are uploaded at most until this time after the timeout. The daemon ends the job after 120 s, so the runner must
/// report the failure earlier.
pub const TIMEOUT_REPORT: Duration = Duration::from_secs(110);

/// How long after the end of its session the runner stops a job by itself. Normally the daemon cancels the job at that
/// moment, with the better message. This is for a daemon that is away, and for clocks that differ slightly.
pub const SESSION_ALLOWANCE: Duration = Duration::from_secs(5);

/// How long the worker token stays valid for the last log lines and the completion of a cancelled job.
pub const AFTER_EXPIRY: Duration = Duration::from_secs(120);

/// How long the log of a cancelled job is still shipped after its processes have ended; the rest is cut. Long enough for a log
/// that people read, and short enough that a job with an endless log frees its slot soon.
pub const FINAL_LOG: Duration = Duration::from_secs(3);

/// How long a worker still reports to the daemon after its runner had to stop at once, or its job was cancelled. The completion
/// of a cancelled job is retried for longer if the daemon does not answer.
pub const FINAL_REPORT: Duration = Duration::from_secs(10);

/// How long a stopping runner continues without an answer of the daemon, after the steps of its jobs have ended. A restarting
/// daemon answers within this time. A daemon that was stopped together with the runner does not come back.
pub const STOPPED_SILENCE: Duration = Duration::from_secs(60);

/// The pause after the first job that this machine could not set up. Further pauses double.
pub const FIRST_REST: Duration = Duration::from_secs(1);

/// The longest pause before a runner that cannot set up jobs tries again.
pub const LONGEST_REST: Duration = Duration::from_secs(60);

/// Open files that one job may need at once: pipes of a step, its script and outputs, the spool, connections, an artifact.
pub const JOB_FILES: usize = 24;

/// After a successful check, further jobs need no check for this long.
pub const TRIED_FOR: Duration = Duration::from_secs(1);

/// Bytes of the file that a check writes: about as much as a small job, its log and its artifact take.
pub const TRIED_BYTES: usize = 64 * 1024;

/// The pause after the first failed request. Further pauses double. A restarting daemon answers within it.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two attempts. A daemon that is back waits at most this long for a runner.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause between two attempts while another process runs under this runner's name. After the other process ends, this
/// process should start soon.
pub const LONGEST_CONFLICT_PAUSE: Duration = Duration::from_secs(30);

/// The pauses between two attempts to reach the daemon.
pub(crate) const fn backoff() -> Backoff {
    Backoff::new(FIRST_PAUSE, LONGEST_PAUSE)
}

/// How long a full runner waits before it polls. Often a job ends meanwhile, and one poll reports its end and asks for the next
/// job. A cancel is delayed by at most this time.
pub const FULL_PAUSE: Duration = Duration::from_millis(10);

/// Polls in flight at once: the newest, and replaced ones that the daemon has not ended yet.
pub const POLLS: usize = 3;

/// Bytes of one entry of a process's environment, `NAME=value` with its closing zero: the kernel's `MAX_ARG_STRLEN`.
pub const ENVIRONMENT_ENTRY_BYTES: usize = 128 * 1024;

/// Bytes of the file in which a step writes its outputs. A step may write a key repeatedly; the values that count have their own
/// limits in [`workflow::limits`].
pub const OUTPUTS_FILE_BYTES: u64 = 64 * 1024;

/// Bytes of the cached files of repositories: some hundred commits of a repository of scripts, and a small part of a disk.
pub const SOURCE_CACHE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Entries of one checkout. The daemon has a lower limit.
pub const SOURCE_ENTRIES: usize = 100_000;

/// Characters of a path that an error shows.
pub const SHOWN_PATH_CHARS: usize = 200;

/// Bytes read from a cached tar at once.
pub const SOURCE_PIECE: usize = 128 * 1024;

/// Names of submodules and of pointers that a job's log lists. The others are counted.
pub const NAMED_FILES: usize = 10;

/// Files left out of an artifact that the log and the record of a job list. The others are counted.
pub const NAMED_LEFT_OUT: usize = 20;

/// Entries of one artifact. Their names are held in memory to be sorted.
pub const ARTIFACT_ENTRIES: usize = 100_000;

/// Files and folders that one pattern searches. This many take some seconds.
pub const PATTERN_ENTRIES: usize = 1_000_000;

/// Depth of folders below an artifact's path. A deeper tree comes from links in a circle.
pub const ARTIFACT_DEPTH: usize = 128;

/// The level of deflate: nearly as small as the default for logs and reports, and several times as fast.
pub const ARTIFACT_COMPRESSION: i64 = 3;

/// Bytes read from a file at once while it is packed.
pub const ARTIFACT_PIECE: usize = 64 * 1024;

/// How long an artifact is packed or uploaded before its progress is reported, and the time between two reports. Most artifacts
/// are done sooner and need no report.
pub const ARTIFACT_PROGRESS: Duration = Duration::from_secs(1);

/// Bytes of a registration token on stdin or in a file; real ones have under 100.
pub const REGISTRATION_TOKEN_BYTES: u64 = 4096;

/// Bytes of a runner's name: it is the name of a folder.
pub const NAME_BYTES: usize = 64;

/// Jobs of one runner at once; more is probably a typing error. The daemon has the same limit.
pub const CAPACITY: u32 = 1_000;
