//! Every limit of this package, with its reason. The limits of Git are in [`crate::git`].

use std::time::Duration;

use chrono::TimeDelta;

/// A poll without a message is answered after this time (design section 7). It is shorter than the idle time-outs of
/// common proxies.
pub(crate) const POLL: Duration = Duration::from_secs(50);

/// The most workers that get files of repositories at the same time. Each needs a thread and memory for one file. Other
/// workers wait.
pub(crate) const FILE_STREAMS: usize = 16;

/// How long a worker may take for a piece of its files. A slower stream is cut, so that other workers do not wait.
pub(crate) const FILES_PAUSE: Duration = Duration::from_secs(10);

/// The most pieces of files that wait for a slow worker. A piece has [`FILES_PIECE`] bytes.
pub(crate) const FILES_PIECES: usize = 4;

/// Bytes of a piece of files.
pub(crate) const FILES_PIECE: usize = 64 * 1024;

/// [`model::limits::OFFER`] as a span of the board's time.
pub(crate) const OFFER: Duration = match model::limits::OFFER.to_std() {
    Ok(offer) => offer,
    Err(_) => Duration::ZERO,
};

/// [`model::limits::RUNNER_SILENCE`] as a span of the lease's time.
pub(crate) const SILENCE: Duration = match model::limits::RUNNER_SILENCE.to_std() {
    Ok(silence) => silence,
    Err(_) => Duration::ZERO,
};

/// After the start of the daemon, a runner that kept running reconnects within this time. It pauses for at most 5 s
/// between two attempts.
pub(crate) const RETURN: Duration = Duration::from_secs(10);

/// If deadlines are checked later than intended by this time, the daemon or its machine stood still, and the silence of
/// runners is counted from the check. A runner that was heard [`POLL`] before a shorter standstill still has [`RETURN`]
/// to be heard again, because [`POLL`], [`RETURN`], [`DEADLINE_CHECK`] and this time add up to less than [`SILENCE`].
pub(crate) const STANDSTILL: Duration = Duration::from_secs(20);

/// The shortest time between two copies of a message to which a runner has not reacted. The runner polls again after
/// every answer, and a step may take ten seconds to stop.
pub(crate) const REPEAT: Duration = Duration::from_secs(1);

/// The instance, runners, waiting jobs and histories are checked for conditions this often.
pub(crate) const CONDITION_CHECK: Duration = Duration::from_secs(60);

/// How long before its expiry the certificate of the listener is a condition: authorities renew earlier than this.
pub(crate) const CERTIFICATE_EXPIRES_SOON: TimeDelta = TimeDelta::days(14);

/// Lines of a damaged history that are read at once.
pub(crate) const DAMAGE_LINES: usize = 1_000;

/// The pause after a failure to record a condition.
pub(crate) const CONDITION_REST: Duration = Duration::from_secs(10);

/// A job that no runner can take is a condition after this time: a runner that restarts is back before.
pub(crate) const STUCK_AFTER: TimeDelta = TimeDelta::minutes(1);

/// Deadlines are checked at least this often, so that a change of the wall clock is noticed.
pub(crate) const DEADLINE_CHECK: Duration = Duration::from_secs(30);

/// For this time after a jump of the wall clock, nothing is deleted by age, and no expiry time follows the jump. A
/// wrong clock is usually corrected by then.
pub(crate) const CLOCK_DOUBT: TimeDelta = TimeDelta::hours(1);

/// Commands that a task submits at once: enough for several commits, so that they share syncs, and few enough to leave
/// space in the committer's queue for other tasks.
pub(crate) const AT_ONCE: usize = 128;

/// How often a dispatch is checked against the newest revision. A new revision between check and decision is rare, and
/// one more attempt is enough.
pub(crate) const DISPATCH_TRIES: usize = 5;

/// Expired artifacts are removed at least this often, because the wall clock may be changed.
pub(crate) const EXPIRY_CHECK: Duration = Duration::from_secs(3_600);

/// Expired blobs that are removed before the next search.
pub(crate) const EXPIRED_BLOBS: usize = 100;

/// Pause before resealing is retried. It usually fails because of a full disk. Nobody waits for it, because the old key
/// still opens the secrets.
pub(crate) const SEALING_RETRY: Duration = Duration::from_secs(60);

/// Pause between two rounds of retention. Jobs that end during the pause share a round.
pub(crate) const RETENTION_REST: Duration = Duration::from_secs(1);

/// Finished jobs of a scan that are read at once, oldest first: enough for several commits.
pub(crate) const JOBS_AHEAD: usize = 100;

/// Jobs that one request removes, or counts in a dry run. If there are more jobs, the response reports it. A commit
/// removes about thirty jobs.
pub(crate) const PRUNED_AT_ONCE: usize = 10_000;

/// Pause before a refused or lost watch is set up again. During the pause, the source is only polled.
pub(crate) const WATCH_RETRY: Duration = Duration::from_secs(60);

/// Attempts to set up a watch while other programs create or remove folders.
pub(crate) const WATCH_ATTEMPTS: usize = 5;

/// Pause before the use of a token or session is submitted again. Uses are recorded by days and hours.
pub(crate) const NOTE_REST: Duration = Duration::from_secs(60);

/// Pause before the check of a trigger is retried, which usually fails because of a full disk. Other triggers are
/// checked during the pause.
pub(crate) const TRIGGER_REST: Duration = Duration::from_secs(5);

/// The same pause if the decision panicked. It will probably panic again and log some lines.
pub(crate) const DEFECT_REST: Duration = Duration::from_secs(60);

/// After this many evaluations of an expression outside of the committer, the committer evaluates it, because its
/// inputs keep changing.
pub(crate) const EVALUATED_BESIDE: usize = 2;

/// The highest static cost of a project's turn, unless it is a single expression: the highest cost of one expression,
/// about a tenth of a second. The results are committed together.
pub(crate) const TURN_COST: u64 = workflow::limits::EXPRESSION_COST;

/// Pause before the first retry of a failed poll. It doubles up to the source's interval.
pub(crate) const FIRST_RETRY: Duration = Duration::from_secs(1);

/// A source may wait this much longer than its interval, so that the sources of one host are not fetched at the same time.
pub(crate) const JITTER_PERCENT: u32 = 10;

/// The most jobs that a poll may list as held: more than any runner's capacity.
pub(crate) const HOLDING: usize = 2_000;

/// Pause before a task that panicked is restarted. It doubles up to [`LAST_RESTART`].
pub(crate) const FIRST_RESTART: Duration = Duration::from_secs(1);

/// The longest pause before a task that panicked is restarted. No other task does its work, and the cause may disappear.
pub(crate) const LAST_RESTART: Duration = Duration::from_secs(60);

/// The longest log of a job by default: more than people read, and little disk space. A loop that prints fills it in seconds.
pub const LOG_LIMIT: u64 = 256 * 1024 * 1024;

/// Refused sign-ins are written to the audit log this long after the first: at most one commit per minute.
pub(crate) const REFUSED_SIGN_INS: Duration = Duration::from_secs(60);

/// Addresses, each with the user who was tried, that get their own line then. All others share one line. In a flood from many addresses the log
/// grows by about ten megabytes per day, and its lines still show the time and the size of the flood.
pub(crate) const REFUSED_SIGN_IN_ADDRESSES: usize = 32;

/// The lifetime of a sign-in link: long enough to carry it to another machine.
pub const SIGN_IN_LINK: TimeDelta = TimeDelta::minutes(15);

/// Unused sign-in links of one user: one for each browser of a person.
pub(crate) const SIGN_IN_LINKS_OF_USER: usize = 5;

/// Unused sign-in links of all tokens. They need some hundred kilobytes.
pub(crate) const SIGN_IN_LINKS: usize = 1_000;

/// How long a device waits for a person who signs in and confirms it.
pub const DEVICE_LOGIN: TimeDelta = TimeDelta::minutes(10);

/// Devices of one network that wait. Anybody can let a device wait.
pub(crate) const DEVICE_LOGINS_OF_NETWORK: usize = 5;

/// All devices that wait. They need some hundred kilobytes. A further one replaces one of the network that has the most.
pub(crate) const DEVICE_LOGINS: usize = 1_000;

/// Mints of callback servers whose records the recorder remembers, of about 300 bytes each.
pub(crate) const MINTS_KNOWN: usize = 1_000;

/// The shortest time between two commits of interactions, unless they are large: a live feed gets four a second.
pub(crate) const RECORDING_PAUSE: Duration = Duration::from_millis(250);

/// How often it is recorded how much else callback servers have answered, without an interaction.
pub(crate) const COUNTING_PAUSE: Duration = Duration::from_secs(10);

/// Bytes of interactions that are committed before this time is over. A commit has at most 1 MiB.
pub(crate) const RECORDED_BYTES: usize = 512 * 1024;
