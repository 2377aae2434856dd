//! Every limit of this package, with its reason. The limits of Git are in [`crate::git`].

use std::time::Duration;

use chrono::TimeDelta;

/// A poll is answered after this time even without a message (design section 7). It is below the idle time-outs of
/// common proxies.
pub(crate) const POLL: Duration = Duration::from_secs(50);

/// Workers that get files of repositories at the same time. Each takes a thread, and memory for one file. The others wait.
pub(crate) const FILE_STREAMS: usize = 16;

/// How long a worker may take for a piece of its files. A slower stream is cut, so that it does not keep others
/// waiting.
pub(crate) const FILES_PAUSE: Duration = Duration::from_secs(10);

/// Pieces of files that wait for a slow worker, of [`FILES_PIECE`] bytes each.
pub(crate) const FILES_PIECES: usize = 4;

/// Bytes of the files that are sent at once.
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

/// After the daemon starts, a runner that kept running reconnects within this time. Its pauses between two attempts are
/// 5 s at most.
pub(crate) const RETURN: Duration = Duration::from_secs(10);

/// If deadlines are checked so much later than intended, the daemon or its machine stood still, and the silence of runners
/// is counted from then. A runner that was heard [`POLL`] before a shorter standstill still has [`RETURN`] to be heard again:
/// the two, this and [`DEADLINE_LOOK`] are less than [`SILENCE`].
pub(crate) const STANDSTILL: Duration = Duration::from_secs(20);

/// The shortest time between two copies of a message that a runner has not acted upon. The runner polls again after every
/// answer, and a step may take ten seconds to stop.
pub(crate) const REPEAT: Duration = Duration::from_secs(1);

/// Deadlines are checked at least this often, so that a wall clock that was set forward is noticed.
pub(crate) const DEADLINE_LOOK: Duration = Duration::from_secs(30);

/// How long after a jump of the wall clock nothing is deleted by age and no expiry time follows it. A wrong clock is
/// usually corrected by then.
pub(crate) const CLOCK_DOUBT: TimeDelta = TimeDelta::hours(1);

/// Commands a task submits at once: several commits' worth, so that they share syncs, and few enough to leave room in
/// the committer's queue for everybody else.
pub(crate) const AT_ONCE: usize = 128;

/// How often a dispatch is checked against the newest revision. A push between checking and deciding is rare, and one
/// more attempt is enough.
pub(crate) const DISPATCH_TRIES: usize = 5;

/// Expired artifacts are searched for at least this often, because the wall clock may be set.
pub(crate) const EXPIRY_LOOK: Duration = Duration::from_secs(3_600);

/// Expired blobs that are removed before the next ones are searched for.
pub(crate) const EXPIRED_BLOBS: usize = 100;

/// Pause before resealing is retried, which usually fails because of a full disk. Nobody waits: the old key still opens the
/// secrets.
pub(crate) const SEALING_RETRY: Duration = Duration::from_secs(60);

/// Pause between two rounds of retention. Jobs that end in the meantime share one.
pub(crate) const RETENTION_REST: Duration = Duration::from_secs(1);

/// Finished jobs of a scan that are read at once, oldest first: several commits' worth.
pub(crate) const JOBS_AHEAD: usize = 100;

/// Jobs that one request removes, or counts in a dry run. Then the answer says that there are more. A commit takes
/// about thirty.
pub(crate) const PRUNED_AT_ONCE: usize = 10_000;

/// Pause before a watch that was refused or lost is set up again. Meanwhile the source is only polled.
pub(crate) const WATCH_RETRY: Duration = Duration::from_secs(60);

/// Attempts to set up a watch while somebody makes or removes folders.
pub(crate) const WATCH_ATTEMPTS: usize = 5;

/// Pause before the use of a token or session is submitted again. Uses are recorded by days and hours.
pub(crate) const NOTE_REST: Duration = Duration::from_secs(60);

/// Pause before a trigger is checked again after that failed, usually because of a full disk. Other triggers are checked
/// meanwhile.
pub(crate) const TRIGGER_REST: Duration = Duration::from_secs(5);

/// The same pause after the decision panicked. It will probably panic again, with some lines in the log.
pub(crate) const DEFECT_REST: Duration = Duration::from_secs(60);

/// Evaluations of an expression beside the committer before the committer evaluates it itself, because its inputs keep
/// changing.
pub(crate) const EVALUATED_BESIDE: usize = 2;

/// The highest static cost of a project's turn, unless it is a single expression: as much as one may cost, about a tenth of
/// a second. The results are committed together.
pub(crate) const TURN_COST: u64 = workflow::limits::EXPRESSION_COST;

/// The first retry after a failed look; doubles up to the source's interval.
pub(crate) const FIRST_RETRY: Duration = Duration::from_secs(1);

/// How much longer than its interval a source may wait, so that the sources of one host are not fetched at the same
/// time.
pub(crate) const JITTER_PERCENT: u32 = 10;

/// Jobs a poll may name as held: more than any runner's capacity.
pub(crate) const HOLDING: usize = 2_000;

/// Pause before a task that panicked is restarted. It doubles up to [`LAST_RESTART`].
pub(crate) const FIRST_RESTART: Duration = Duration::from_secs(1);

/// The longest pause before a task that panicked is restarted. Nobody else does its work, and the cause may be gone.
pub(crate) const LAST_RESTART: Duration = Duration::from_secs(60);

/// The longest log of a job by default: more than anybody reads, and little disk space. A loop that prints fills it in
/// seconds.
pub const LOG_LIMIT: u64 = 256 * 1024 * 1024;

/// Refused sign-ins are written to the audit log this long after the first: one commit a minute, whoever calls.
pub(crate) const REFUSED_SIGN_INS: Duration = Duration::from_secs(60);

/// Addresses that get a line of their own then; one more line is for all others. In a flood from many addresses the log grows
/// by some ten megabytes a day, and its lines still show the time and the size of the flood.
pub(crate) const REFUSED_SIGN_IN_ADDRESSES: usize = 32;

/// The lifetime of a sign-in link: long enough to carry it to another machine.
pub const SIGN_IN_LINK: TimeDelta = TimeDelta::minutes(15);

/// Unused sign-in links of one token: one for each browser of a person.
pub(crate) const SIGN_IN_LINKS_OF_TOKEN: usize = 5;

/// Unused sign-in links of all tokens, in some hundred kilobytes.
pub(crate) const SIGN_IN_LINKS: usize = 1_000;
