//! Every bound of this package, with its reason. Those of Git are in [`crate::git`].

use std::time::Duration;

use chrono::TimeDelta;

/// A poll is answered after this long even when there is nothing to say (design section 7): below the idle time-outs
/// of common proxies.
pub(crate) const POLL: Duration = Duration::from_secs(50);

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

/// After a start of the daemon a runner's process that went on comes back within this: its pauses between two attempts
/// are 5 s at most.
pub(crate) const RETURN: Duration = Duration::from_secs(10);

/// What a runner was told and has not acted upon is repeated at most this often: it polls again at once after every
/// answer, and a step may take ten seconds to stop.
pub(crate) const REPEAT: Duration = Duration::from_secs(1);

/// Deadlines are looked at again at least this often, so that a wall clock that was set forward is noticed.
pub(crate) const DEADLINE_LOOK: Duration = Duration::from_secs(30);

/// For so long after the wall clock jumped nothing is deleted by age, and no end follows it: whoever set it wrong, or a
/// time server, has put it right by then.
pub(crate) const CLOCK_DOUBT: TimeDelta = TimeDelta::hours(1);

/// Ends follow the wall clock once it is so far from the time they are counted by: less shows nowhere, and each time all
/// their records are written.
pub(crate) const CLOCK_LAG: TimeDelta = TimeDelta::minutes(1);

/// Commands a task submits at once: several commits' worth, so that they share syncs, and few enough to leave room in
/// the committer's queue for everybody else.
pub(crate) const AT_ONCE: usize = 128;

/// How often a dispatch is read against the newest revision: a push between reading and deciding is rare and one more
/// look settles it.
pub(crate) const DISPATCH_TRIES: usize = 5;

/// What has run out is looked at again at least this often: hours are counted by the wall clock, which may be set.
pub(crate) const EXPIRY_LOOK: Duration = Duration::from_secs(3_600);

/// Pause between two looks at what retention removes: jobs that end in the meantime share one.
pub(crate) const RETENTION_REST: Duration = Duration::from_secs(1);

/// Finished jobs of a scan that are read at once, oldest first: several commits' worth.
pub(crate) const JOBS_AHEAD: usize = 100;

/// Jobs that one request removes, or looks at without removing them; then it says that there are more. A commit takes
/// about thirty.
pub(crate) const PRUNED_AT_ONCE: usize = 10_000;

/// Pause before a watch that was refused or lost is set up again: the interval has taken over, so there is no hurry.
pub(crate) const WATCH_RETRY: Duration = Duration::from_secs(60);

/// Set-ups of a watch in a row that somebody making or removing folders meanwhile may spoil.
pub(crate) const WATCH_ATTEMPTS: usize = 5;

/// A trigger that could not be looked at, mostly for a full disk, is left alone for so long: others go on meanwhile.
pub(crate) const TRIGGER_REST: Duration = Duration::from_secs(5);

/// The first retry after a failed look; doubles up to the source's interval.
pub(crate) const FIRST_RETRY: Duration = Duration::from_secs(1);

/// How much longer than its interval a source may wait, so that sources of one host do not knock together.
pub(crate) const JITTER_PERCENT: u32 = 10;

/// Jobs a poll may name as held: more than any runner's capacity.
pub(crate) const HOLDING: usize = 2_000;

/// A task that panicked begins again after this long; doubles up to [`LAST_RESTART`].
pub(crate) const FIRST_RESTART: Duration = Duration::from_secs(1);

/// The longest pause before a task that panicked begins again: what broke it may be over, and nobody else does its
/// work.
pub(crate) const LAST_RESTART: Duration = Duration::from_secs(60);

/// The longest log of a job unless the configuration says otherwise: more than anybody reads, and little of a disk. A loop
/// that prints fills it in seconds.
pub const LOG_LIMIT: u64 = 256 * 1024 * 1024;
