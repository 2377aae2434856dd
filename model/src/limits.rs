//! Every limit of the domain, with its reason.

use chrono::TimeDelta;

/// Longest source name: it is a folder name and a part of every workflow's name.
pub const SOURCE_NAME_BYTES: usize = 64;

/// Longest name of a runner or token: shown in tables and stored with every job.
pub const NAME_CHARS: usize = 100;

/// Labels of one runner, and characters of one label: they are compared at every offer.
pub const RUNNER_LABELS: usize = 50;

/// Jobs one runner may run at once: more is a wrong setting, not a large machine.
pub const RUNNER_CAPACITY: u32 = 1_000;

/// A worker session token's life, and with it a job's (specification, "Limits").
pub const WORKER_SESSION: TimeDelta = TimeDelta::hours(4);

/// A runner session token's life (specification, "Limits").
pub const RUNNER_SESSION: TimeDelta = TimeDelta::days(30);

/// A runner session token is renewed once this much of its life has gone, so that a runner seen once a week never
/// loses its session and the disk is not written at every poll.
pub const RUNNER_RENEWAL: TimeDelta = TimeDelta::days(1);

/// How long the old runner session token stays valid after a renewal: the answer that carried the new one may be lost.
pub const RUNNER_RENEWAL_OVERLAP: TimeDelta = TimeDelta::minutes(10);

/// A runner that still comes with its old session token this long after a renewal never got the new one: an answer is
/// on its way for seconds, and ten tries fit into the overlap.
pub const RUNNER_RENEWAL_RETRY: TimeDelta = TimeDelta::minutes(1);

/// A worker token stays valid for logs and completion this long after its job was ended by somebody else.
pub const WORKER_LAST_WORDS: TimeDelta = TimeDelta::minutes(2);

/// Deletions of jobs by people that a scan's retention record names: enough to see who cleans up, and the record is
/// written with every removal.
pub const REMEMBERED_DELETIONS: usize = 10;

/// Artifacts that one commit removes: with the record of their job and of their scan they fit into its 100 operations.
pub const ARTIFACTS_REMOVED: usize = 90;

/// Operations that the removal of jobs may add to one commit, which holds 100; the rest is for pages of the history and
/// the record of the scan.
pub const REMOVAL_OPERATIONS: usize = 90;

/// A registration token's life (design section 7).
pub const REGISTRATION: TimeDelta = TimeDelta::minutes(15);

/// Registration tokens that may wait at once: each is a live record.
pub const OPEN_REGISTRATIONS: usize = 1_000;

/// Jobs that are scheduled or running at once: each is a record in memory of one to two kilobytes, held twice while a
/// commit is on its way, and a list looks at all of them.
pub const UNFINISHED_JOBS: usize = 100_000;

/// Jobs of one scan that wait for a runner: a tenth of all, so that a program that dispatches one scan in a loop does
/// not keep the others from starting.
pub const SCHEDULED_JOBS_PER_SCAN: usize = 10_000;

/// Personal access tokens: each is a live record, and a program that makes one for every call is a mistake to be told.
pub const TOKENS: usize = 10_000;

/// Registration tokens that have run out and are removed along with one new one or one runner: more than one, so that
/// they cannot pile up, and few enough for the batch they share.
pub const REGISTRATION_SWEEP: usize = 20;

/// An offer lapses after this long without a claim (design section 4).
pub const OFFER: TimeDelta = TimeDelta::seconds(10);

/// A runner unheard for this long has lost its jobs (design section 4).
pub const RUNNER_SILENCE: TimeDelta = TimeDelta::minutes(2);

/// Inputs of one job that stand in its record; larger ones are an object of the job (design section 6).
pub const INLINE_PAYLOAD_BYTES: usize = 64 * 1024;

/// Diagnostics kept of one stale file: enough to fix it, not enough to fill a record.
pub const STALE_DIAGNOSTICS: usize = 100;

/// Diagnostics of all stale files of a source together, as JSON: its record shares a batch of 1 MiB with that of
/// a tip, and both are stored pretty-printed, which may double them.
pub const STALE_DIAGNOSTICS_BYTES: usize = 96 * 1024;

/// Stale files of a source together with their diagnostics, as JSON, for the same reason.
pub const STALE_FILES_BYTES: usize = 192 * 1024;

/// Verdicts on the files of one tip, as JSON, for the same reason.
pub const TIP_VERDICTS_BYTES: usize = 192 * 1024;

/// Longest message of a failure or an error text of a step in a record.
pub const MESSAGE_CHARS: usize = 2_000;

/// Error texts of all steps of a job together: its record must fit a batch however many steps fail.
pub const STEP_ERRORS_BYTES: usize = 64 * 1024;

/// Longest content digest of an artifact: `sha256:` and 64 digits, with room for a longer algorithm.
pub const CONTENT_DIGEST_BYTES: usize = 160;

/// A page of a scan's history is closed at this size: a reader never loads more than this for one look.
pub const HISTORY_PAGE_BYTES: u64 = 1024 * 1024;

/// A page of a scan's ledger is closed at this size.
pub const LEDGER_PAGE_BYTES: u64 = 256 * 1024;

/// Pages of a scan's ledger that are kept beside the one that is written: together they hold more than the newest 1,000
/// records of ordinary expressions (design section 4).
pub const LEDGER_PAGES: u64 = 4;

/// Clauses of one expression in a ledger record: what decided is among the first, and a record must stay small.
pub const CLAUSES: usize = 40;

/// Characters of a text or value in a ledger record.
pub const CLAUSE_CHARS: usize = 200;

/// Jobs of one expression in a ledger record: one that goes through every job of several scans reads hundreds, and the
/// newest say enough.
pub const JOBS_READ: usize = 100;

/// Scans that the end of a job looks at in the same commit.
pub const FOLLOWERS: usize = 20;

/// Operations that those looks may add to the commit: it holds 100, and a look takes up to five. The rest is for the
/// job itself and the end of its log.
pub const FOLLOWERS_OPERATIONS: usize = 80;

/// Bytes that those looks may add to the commit, which holds 1 MiB.
pub const FOLLOWERS_BYTES: usize = 512 * 1024;

/// Scans of which a ledger record says what was known: an expression that computes names may read all there are.
pub const SCANS_READ: usize = 20;

/// Slots of a schedule that one look makes jobs of with `catch_up: all` (design section 3).
pub const CATCH_UP: usize = 10;

/// Missed slots that are counted one by one: beyond it the number tells nothing more, and the committer has others to
/// serve.
pub const SLOTS_COUNTED: u64 = 1_000;

/// A slot that comes to be looked at later than this was missed: the daemon did not run, or the clock was set.
pub const SLOT_LATE: TimeDelta = TimeDelta::minutes(1);

/// The clock is taken to have jumped when it is so much ahead or behind of what has passed: more than a wrong turn of
/// daylight saving time, which must make no slot come twice.
pub const CLOCK_JUMP: TimeDelta = TimeDelta::hours(1);

/// A schedule that was looked at further ahead of the clock than this goes on from now: what waits for less comes by
/// itself, and slots do not come twice.
pub const CURSOR_AHEAD: TimeDelta = TimeDelta::days(1);

/// The frozen context of a job in its record, as JSON (design section 4).
pub const CONTEXT_BYTES: usize = 64 * 1024;

/// Longest value of a var or secret: a key file or a certificate chain fits many times over, and larger data belongs
/// into a file that a step fetches.
pub const VALUE_BYTES: usize = 64 * 1024;

/// Vars of one project, and secrets: each is a part of one record.
pub const PROJECT_VALUES: usize = 1_000;

/// Names and values of all vars of a project, as JSON: a scan may name them all, and what it names is frozen into its
/// job's record, where no more than this may stand (design section 4).
pub const VARS_BYTES: usize = INLINE_PAYLOAD_BYTES;

/// Values of all secrets of a project: their record must fit a batch in hexadecimal, and the masker of a job that names
/// them all is about fifty times as large.
pub const SECRETS_BYTES: u64 = 128 * 1024;

/// Shortest secret, in characters: a shorter one occurs in every text, so masking it would tell it.
pub const SECRET_CHARS: usize = 3;

/// Lines at which common programs break base64: `openssl`, and `base64` as MIME has it.
pub const BASE64_LINES: [usize; 2] = [64, 76];

/// Shortest rest of such a line that is masked, in characters: a shorter one occurs in other texts.
pub const BASE64_REST_CHARS: usize = 8;

/// How long a repeated request finds the answer of the first (design section 7).
pub const IDEMPOTENCY: TimeDelta = TimeDelta::hours(24);

/// Records that have run out and are removed along with one new one: two, so that they cannot pile up.
pub const IDEMPOTENCY_SWEEP: usize = 2;

/// Jobs that the reason of a waiting job names; the others are counted. A person looks at one or two.
pub const NAMED_JOBS: usize = 3;
