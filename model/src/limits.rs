//! Every limit of the domain, with its reason.

use chrono::TimeDelta;

/// Longest source name. It is the name of a folder and a part of every workflow's name.
pub const SOURCE_NAME_BYTES: usize = 64;

/// Longest name of a runner or token. It is shown in tables and stored with every job.
pub const NAME_CHARS: usize = 100;

/// The most capabilities that are kept for a runner. Its program has a handful.
pub const RUNNER_CAPABILITIES: usize = 50;

/// Labels of one runner, and characters of one label. They are compared at every offer.
pub const RUNNER_LABELS: usize = 50;

/// Jobs that one runner may run at once. A larger number is probably a mistake in the configuration.
pub const RUNNER_CAPACITY: u32 = 1_000;

/// Lifetime of a worker session token, and so of a job (specification, "Limits").
pub const WORKER_SESSION: TimeDelta = TimeDelta::hours(4);

/// Lifetime of a runner session token (specification, "Limits").
pub const RUNNER_SESSION: TimeDelta = TimeDelta::days(30);

/// Age at which a runner session token is renewed: a runner that connects once a week never loses its session, and not
/// every poll writes to the disk.
pub const RUNNER_RENEWAL: TimeDelta = TimeDelta::days(1);

/// How long the old runner session token stays valid after a renewal, because the response with the new token may be lost.
pub const RUNNER_RENEWAL_OVERLAP: TimeDelta = TimeDelta::minutes(10);

/// If a runner still uses its old session token this long after a renewal, it never received the new token: a response
/// takes seconds, and ten attempts fit into the overlap.
pub const RUNNER_RENEWAL_RETRY: TimeDelta = TimeDelta::minutes(1);

/// How long a worker token stays valid for logs and completion after anyone except the worker has ended the job.
pub const WORKER_LAST_WORDS: TimeDelta = TimeDelta::minutes(2);

/// Deletions of jobs by people in a scan's retention record: enough to see who deletes jobs, and few because the record
/// is written with every removal.
pub const REMEMBERED_DELETIONS: usize = 10;

/// Artifacts that one commit removes. Together with the records of their job and scan they fit into its 100 operations.
pub const ARTIFACTS_REMOVED: usize = 90;

/// Operations that the removal of jobs may add to one commit, which has at most 100. The others are for pages of the
/// history and the record of the scan.
pub const REMOVAL_OPERATIONS: usize = 90;

/// Pages of a history that one commit removes together with jobs. The lines of 100 jobs are in fewer pages, unless
/// pages were lost.
pub(crate) const PAGES_REMOVED: usize = 4;

/// The longest path of a blob, and the most names in a path. A client can show it, and its percent-encoded form is a
/// path on disk.
pub const BLOB_PATH_BYTES: usize = 1_024;
pub const BLOB_PATH_SEGMENTS: usize = 32;

/// Blobs and folders in one folder. Each new entry reads the folder.
pub const BLOB_FOLDER_ENTRIES: usize = 10_000;

/// The most old contents that are kept per blob.
pub const BLOB_VERSIONS: u8 = 20;

/// Longest lifetime of a link to a blob. A token is meant for longer access.
pub const BLOB_LINK_LIFE: TimeDelta = TimeDelta::days(7);

/// Links to blobs that may be open at once. Each is a live record.
pub const BLOB_LINKS: usize = 10_000;

/// Open links to blobs of one project.
pub const BLOB_LINKS_OF_PROJECT: usize = 1_000;

/// Expired links that one commit removes.
pub(crate) const BLOB_LINK_SWEEP: usize = 50;

/// Longest time until a blob expires. It keeps dates in range.
pub const BLOB_LIFE: TimeDelta = TimeDelta::days(3_650);

/// Lifetime of a registration token (design section 7).
pub const REGISTRATION: TimeDelta = TimeDelta::minutes(15);

/// Registration tokens of one project, or for all projects, that may exist at once. Each is a live record.
pub const OPEN_REGISTRATIONS: usize = 1_000;

/// Registration tokens of all projects together. A runner that registers is compared with each.
pub const ALL_OPEN_REGISTRATIONS: usize = 10_000;

/// Jobs that are scheduled or running at once. Each takes one to two kilobytes of memory, twice during a commit, and a
/// list reads all of them.
pub const UNFINISHED_JOBS: usize = 100_000;

/// The most unfinished jobs of one project: half of all, so that one project cannot block the others.
pub const UNFINISHED_JOBS_PER_PROJECT: usize = UNFINISHED_JOBS / 2;

/// The most unfinished jobs that one token has dispatched: a program in a loop leaves space for all others.
pub const UNFINISHED_JOBS_PER_SHARE: usize = UNFINISHED_JOBS / 4;

/// Jobs of one scan that wait for a runner: a tenth of all, so that dispatching one scan in a loop cannot block other
/// scans.
pub const SCHEDULED_JOBS_PER_SCAN: usize = 10_000;

/// Personal access tokens. Each is a live record. The limit stops a program that creates a token for every call.
pub const TOKENS: usize = 30_000;

/// Tokens of one user. Who replaces old tokens needs fewer.
pub const TOKENS_OF_USER: usize = 100;

/// Users, deleted ones included. Each is a live record.
pub const USERS: usize = 20_000;

/// Characters of a user's name.
pub const USER_NAME_CHARS: usize = 64;

/// Records of a user that one commit removes: sessions, and then tokens, links and invitations, each of which may have a
/// condition and its event. They fit into the 100 operations of a commit. Further ones follow in commits of their own.
pub const SESSIONS_REMOVED: usize = 20;
pub const RECORDS_OF_USER_REMOVED: usize = 15;

/// How long an invitation can be accepted: a long weekend.
pub const INVITATION: TimeDelta = TimeDelta::hours(72);

/// Open invitations that one person has made: more than a person sends in three days.
pub const INVITATIONS_OF_USER: usize = 100;

/// How long a link for a new password can be used.
pub const PASSWORD_RESET: TimeDelta = TimeDelta::hours(24);

/// How long after signing in one may give rights, make tokens and change the password in a session.
pub const RECENT_SIGN_IN: TimeDelta = TimeDelta::minutes(10);

/// Sessions of one person that were made without a token, or with one token: more than one person needs.
pub const SESSIONS: usize = 50;

/// Sessions of others that a sign-in looks at, to remove those that have ended.
pub const SESSION_SWEEP: usize = 100;

/// How long a browser stays signed in without being used, and how long at most.
pub const SESSION_IDLE: TimeDelta = TimeDelta::days(7);
pub const SESSION_LIFE: TimeDelta = TimeDelta::days(30);

/// The precision of a session's last use. Each update is a commit.
pub const SESSION_SEEN: TimeDelta = TimeDelta::hours(1);

/// Characters of a browser's description that are kept.
pub const SESSION_DEVICE_CHARS: usize = 200;

/// How long before its expiry the users of a token are reminded: long enough to replace the token everywhere.
pub const TOKEN_EXPIRES_SOON: TimeDelta = TimeDelta::days(7);

/// Open conditions of one project, and of the instance. Each is a live record, and a page lists them.
pub const OPEN_CONDITIONS: usize = 1_000;

/// Changes of conditions in one decision. The others follow in commits of their own.
pub(crate) const OBSERVED: usize = 20;

/// Changes of a decision with its conditions, and the records of the outbox about them. The commit has at most 100
/// operations, which include the lines of logs.
pub(crate) const DECISION_CHANGES: usize = 90;

/// Events of one decision. Only a job with more artifacts makes more.
pub(crate) const EVENTS: usize = 100;

/// Records of the outbox of one project, and of the instance. Further events are counted.
pub const OUTBOX: usize = 10_000;

/// Channels of one project, and of the instance.
pub const CHANNELS: usize = 100;

/// Bytes of a text in the target of a channel, and characters of its secret.
pub(crate) const CHANNEL_TEXT_BYTES: usize = 2_000;

/// Bytes of the certificates that a channel trusts.
pub(crate) const CHANNEL_CA_BYTES: usize = 32 * 1024;

/// Random bytes of a key for webhooks. As base64, its digits are 36 bytes.
pub(crate) const SIGNING_KEY_BYTES: usize = 24;

/// Recipients of a mail channel.
pub(crate) const RECIPIENTS: usize = 20;

/// Events and jobs that a line of the delivery log names.
pub const DELIVERY_NAMED: usize = 50;

/// Records that one plan of deliveries changes. A commit has at most 100 operations.
pub(crate) const DELIVERY_CHANGES: usize = 60;

/// Messages that one plan begins beyond these changes.
pub(crate) const MESSAGES_BEGUN: usize = 30;

/// Pauses before the retries of a message, in seconds. Later retries come each hour, for a day.
pub(crate) const DELIVERY_RETRIES: [u64; 5] = [10, 30, 120, 600, 1_800];

/// No retry comes later than this.
pub(crate) const LONGEST_RETRY: TimeDelta = TimeDelta::hours(2);

/// The longest pause that a receiver may ask for.
pub(crate) const RETRY_AFTER: TimeDelta = TimeDelta::hours(1);

/// Failed attempts after which a channel is reported.
pub(crate) const CHANNEL_FAILS_AFTER: u32 = 3;

/// Times of messages that a channel keeps for its pace.
pub(crate) const PACE_KEPT: usize = 30;

/// Unfinished jobs of a scan that its conditions consider, from each end of the queue.
pub(crate) const JOBS_CONSIDERED: usize = 32;

/// Characters of a note about a condition.
pub const CONDITION_NOTE_CHARS: usize = 500;

/// Longest silence about a condition. Who wants to hear nothing for longer changes the rule.
pub const LONGEST_SILENCE: TimeDelta = TimeDelta::days(30);

/// Default lifetime of a token: three months, so that forgotten tokens expire.
pub const TOKEN_LIFE: TimeDelta = TimeDelta::days(90);

/// Longest time for which a regenerated token's former secret is accepted: one day to replace it everywhere.
pub const TOKEN_OVERLAP: TimeDelta = TimeDelta::hours(24);

/// Expired registration tokens that the creation of a token or runner removes: more than one, so that they do not
/// accumulate, and few enough for the same batch.
pub const REGISTRATION_SWEEP: usize = 20;

/// How long an offer waits for its claim (design section 4).
pub const OFFER: TimeDelta = TimeDelta::seconds(10);

/// After this time of silence a runner loses its jobs (design section 4).
pub const RUNNER_SILENCE: TimeDelta = TimeDelta::minutes(2);

/// How long after the `timeout` of its scan the daemon ends a job. Before that, the runner stops the steps (10 s), runs
/// the clean-up steps (60 s), and has a minute for artifacts.
pub const TIMEOUT_END: TimeDelta = TimeDelta::minutes(2);

/// Inputs of a job in its record; larger inputs are an object of the job (design section 6).
pub const INLINE_PAYLOAD_BYTES: usize = 64 * 1024;

/// Names of workflows in the message about a removal that waits for an approval: enough to recognise it.
pub const HELD_NAMES: usize = 10;

/// The most diagnostics of one stale file: enough to fix it, and too few to fill a record.
pub const STALE_DIAGNOSTICS: usize = 100;

/// Diagnostics and excerpts of all stale files of a source together, as JSON. The source's record is written in one
/// batch of 1 MiB with the record of a tip, and pretty-printing may double their size.
pub const STALE_DIAGNOSTICS_BYTES: usize = 96 * 1024;

/// Stale files of a source together with their diagnostics, as JSON, for the same reason.
pub const STALE_FILES_BYTES: usize = 192 * 1024;

/// Verdicts on the files of one tip, as JSON, for the same reason.
pub const TIP_VERDICTS_BYTES: usize = 192 * 1024;

/// Files left out of a job's artifacts that its record lists. Other files are counted.
pub const LEFT_OUT_FILES: usize = 20;

/// Longest name of such a file in the record, and longest reason.
pub const LEFT_OUT_CHARS: usize = 200;

/// Longest message of a failure, and longest error text of a step, in a record.
pub const MESSAGE_CHARS: usize = 2_000;

/// Error texts of all steps of a job together. The job's record must fit into a batch even if many steps fail.
pub const STEP_ERRORS_BYTES: usize = 64 * 1024;

/// The most steps of a job whose definition cannot be read.
pub const MOST_STEPS: usize = 1000;

/// The most artifacts of a job whose definition cannot be read.
pub const UNDECLARED_ARTIFACTS: usize = 100;

/// Longest content digest of an artifact: `sha256:` and 64 digits, with space for a longer algorithm.
pub const CONTENT_DIGEST_BYTES: usize = 160;

/// A page of a scan's history is closed at this size. A reader loads one page at a time.
pub const HISTORY_PAGE_BYTES: u64 = 1024 * 1024;

/// A page of a scan's ledger is closed at this size.
pub const LEDGER_PAGE_BYTES: u64 = 256 * 1024;

/// Closed pages of a scan's ledger that are kept. Together with the open page, they have more than the newest 1,000
/// records of ordinary expressions (design section 4).
pub const LEDGER_PAGES: u64 = 4;

/// Clauses of one expression in a ledger record. The first clauses decide, and a record must stay small.
pub const CLAUSES: usize = 40;

/// Characters of a text or value in a ledger record.
pub const CLAUSE_CHARS: usize = 200;

/// Jobs of one expression in a ledger record. An expression that reads every job of several scans reads hundreds; the
/// newest are enough.
pub const JOBS_READ: usize = 100;

/// Static cost of the expressions that one decision evaluates, in units of about 100 ns: a millisecond, in which all
/// other commands wait. It is enough for several expressions without nested iteration. Other expressions are evaluated
/// outside of the committer.
pub const EVALUATIONS_COST: u64 = 10_000;

/// Cost of reading the summary of a scan, in the same units.
pub(crate) const SCAN_READ_COST: u64 = 20;

/// Cost of reading a job, which is copied twice.
pub(crate) const JOB_READ_COST: u64 = 20;

/// Cost of reading an artifact of a job.
pub(crate) const ARTIFACT_READ_COST: u64 = 2;

/// Cost of reading the outputs of a job.
pub(crate) const OUTPUTS_READ_COST: u64 = 20;

/// Scans whose expressions are evaluated in the commit that ends a job.
pub const FOLLOWERS: usize = 20;

/// Operations that these evaluations may add to the commit, which has at most 100. Each evaluation needs up to five.
/// The others are for the job itself and the end of its log.
pub const FOLLOWERS_OPERATIONS: usize = 80;

/// Bytes that these evaluations may add to the commit, which has at most 1 MiB.
pub const FOLLOWERS_BYTES: usize = 512 * 1024;

/// Scans that a ledger record describes. An expression with computed names may read all scans.
pub const SCANS_READ: usize = 20;

/// Missed slots for which one evaluation makes jobs with `catch_up: all` (design section 3).
pub const CATCH_UP: usize = 10;

/// Missed slots that are counted one by one. A larger number has no use, and counting would delay the committer.
pub const SLOTS_COUNTED: u64 = 1_000;

/// A slot that is evaluated later than this is missed: the daemon did not run, or the clock was set.
pub const SLOT_LATE: TimeDelta = TimeDelta::minutes(1);

/// A larger change of the difference between wall clock and elapsed time is a jump of the clock. A wrong daylight
/// saving time is not larger, and must not run a slot twice.
pub const CLOCK_JUMP: TimeDelta = TimeDelta::hours(1);

/// Expiry times follow the wall clock once it differs this much from the world's time. A smaller difference is not
/// visible, and each move rewrites all these records.
pub const CLOCK_LAG: TimeDelta = TimeDelta::minutes(1);

/// A jump that expiry times do not follow yet is recorded again after this time. The next process continues the newer
/// of the two clocks when its own clock has reached it, so a recent record allows a longer downtime.
pub const CLOCK_NOTE: TimeDelta = TimeDelta::minutes(10);

/// Clocks in the record of jumps. Each followed jump adds a clock, which is removed when all expiry times are stored
/// again. More are needed only if storing fails repeatedly.
pub const CLOCKS: usize = 16;

/// A schedule that is further ahead of the clock is reset to now. Other schedules that are ahead wait, so that no slot
/// runs twice.
pub const CURSOR_AHEAD: TimeDelta = TimeDelta::days(1);

/// The frozen context of a job in its record, as JSON (design section 4).
pub const CONTEXT_BYTES: usize = 64 * 1024;

/// Longest value of a var or secret. A key file or a certificate chain is far smaller; larger data belongs in a file
/// that a step fetches.
pub const VALUE_BYTES: usize = 64 * 1024;

/// Vars of one project, and secrets of one project. All of them are in one record.
pub const PROJECT_VALUES: usize = 1_000;

/// Names and values of all vars of a project, as JSON. A scan may use all of them; they are then frozen into its job's
/// record, which has this much space (design section 4).
pub const VARS_BYTES: usize = INLINE_PAYLOAD_BYTES;

/// Values of all secrets of a project. Their record, in hexadecimal, must fit into a batch, and the masker of a job that
/// uses all of them takes 120 to 250 megabytes, and half as much again while it is built.
pub const SECRETS_BYTES: u64 = 128 * 1024;

/// Shortest secret, in characters. A shorter value occurs in every text, so masking it would reveal it.
pub const SECRET_CHARS: usize = 3;

/// Shortest line of a secret of several lines, and shortest value in such a line, that is masked alone, in characters. Shorter
/// texts, such as `done`, occur in other output.
pub const SECRET_LINE_CHARS: usize = 8;

/// Line lengths of base64 in common programs: `openssl`, and MIME as in `base64`.
pub const BASE64_LINES: [usize; 2] = [64, 76];

/// Shortest last line of such base64 that is masked, in characters. A shorter line occurs in other texts.
pub const BASE64_REST_CHARS: usize = 8;

/// How long a repeated request gets the answer of the first request (design section 7).
pub const IDEMPOTENCY: TimeDelta = TimeDelta::hours(24);

/// Expired records that the creation of a record removes: two, so that they do not accumulate.
pub const IDEMPOTENCY_SWEEP: usize = 2;

/// Longest reason of a suspension or resumption, in characters: a sentence or two. It is repeated in the ledger and in jobs.
pub const SUSPENSION_REASON_CHARS: usize = 500;

/// Actions in a line of the audit log; other actions are counted. A line must stay much shorter than the blocks of 256
/// KiB in which the log is read.
pub const AUDIT_ACTIONS: usize = 50;

/// Characters of a text in the audit log. The names and paths of daily use are shorter.
pub const AUDIT_TEXT_CHARS: usize = 200;

/// Jobs that are listed in the reason of a waiting job; other jobs are counted.
pub const NAMED_JOBS: usize = 3;

/// Scans of older jobs that are listed in this reason.
pub const NAMED_SCANS: usize = 3;

/// Older jobs that are counted for this reason.
pub const COUNTED_JOBS: usize = 100;

/// Default pause before jobs of scans that trigger each other, from the second lap on.
pub const CYCLE_PAUSE: TimeDelta = TimeDelta::seconds(1);

/// The shortest pause. Without a pause, two scans with empty steps would keep the disk busy.
pub(crate) const CYCLE_PAUSE_LEAST: TimeDelta = TimeDelta::milliseconds(100);

/// Length of a chain of jobs that steps have started. From this length on, each new job waits for the pause; intended chains
/// are shorter.
pub(crate) const HOPS_BY_STEPS: u64 = 10;

/// A lap that takes at least this long is not quick: a schedule could have the same interval.
pub(crate) const QUICK_LAP: TimeDelta = TimeDelta::minutes(1);

/// Quick laps after which a circle is reported: more than a loop needs that ends when its work is done.
pub(crate) const CIRCLE_LAPS: u64 = 100;

/// Scans whose processed successes a scan's head keeps, unless one revision uses more. Revisions that people edit use
/// fewer over the years; generated revisions must not make the record grow.
pub(crate) const PROCESSED_SCANS: usize = 100;

/// Causes that a job lists. If more scans trigger it at once, the newest are enough.
pub(crate) const CAUSES: usize = 8;

/// The minimum number of digits of a part of a job's id. Fewer digits would soon match several jobs.
pub const ID_PART_DIGITS: usize = 4;

/// Former names of a scan whose jobs its expressions still read. Scans are rarely renamed, and each name is a history
/// to read.
pub const FORMER_NAMES: usize = 8;

/// Callback servers of one project. Each is a live record.
pub const CALLBACKS: usize = 20;

/// How long people are not told again of interactions of the same name, and of how many names they are told in this time.
pub(crate) const ANNOUNCED_SPAN: TimeDelta = TimeDelta::minutes(10);
pub(crate) const ANNOUNCED_NAMES: usize = 100;
pub(crate) const ANNOUNCED_TEXT_CHARS: usize = 300;

/// Scans that interactions of one server start. They stand in its record.
pub const CALLBACK_LISTENERS: usize = 100;

/// Names of one callback server that are made one by one. Each is a live record.
pub const CALLBACK_TOKENS: usize = 2_000;

/// How long such a name is answered unless its maker says otherwise. Late interactions are the valuable ones.
pub const CALLBACK_TOKEN_LIFE: TimeDelta = TimeDelta::days(90);

/// Characters of the note of such a name.
pub const CALLBACK_NOTE_CHARS: usize = 200;

/// Fixed answers of a callback server, and their bytes together: its record is written with each commit of interactions.
pub const CALLBACK_RULES: usize = 50;
pub const CALLBACK_RULE_BYTES: usize = 64 * 1024;

/// Headers of an answer, and values of one type of DNS.
pub(crate) const CALLBACK_RULE_HEADERS: usize = 50;
pub(crate) const CALLBACK_RECORDS: usize = 16;

/// Longest delay of an answer. It keeps one of few connections.
pub(crate) const CALLBACK_RULE_DELAY_MS: u64 = 30_000;

/// Addresses, user agents or types that a callback server ignores.
pub(crate) const CALLBACK_IGNORED: usize = 100;

/// Mints of one callback server that are kept: one for each job that has a name, until the name ends. Jobs are not kept from having
/// one; only others are refused.
pub const CALLBACK_MINTS: u32 = 500_000;

/// Mints of one callback server whose tags never expire. Their numbers are in its live record.
pub const CALLBACK_MINTS_FOR_EVER: usize = 100;
/// Pause after a first order of a certificate that failed; it doubles up to the other. Authorities allow about five failures an hour.
pub const CERTIFICATE_PAUSE: TimeDelta = TimeDelta::minutes(1);
pub const CERTIFICATE_PAUSE_MOST: TimeDelta = TimeDelta::days(1);

/// Days for which interactions are kept, unless the server says otherwise, and at most.
pub const INTERACTION_DAYS: u32 = 30;
pub const INTERACTION_DAYS_MOST: u32 = 3_650;

/// Interactions that one callback server keeps, and their bytes with raw requests. Then it records nothing more.
pub const INTERACTIONS: u64 = 1_000_000;
pub const INTERACTION_BYTES: u64 = 1024 * 1024 * 1024;

/// Interactions of one page: a list of a hundred reads at most two full pages, of half a megabyte each.
pub const INTERACTION_PAGE: u64 = 1_000;

/// A page ends after this many bytes of raw requests, so that a page of large requests can be searched in parts.
pub const INTERACTION_RAW_PAGE: u64 = 4 * 1024 * 1024;

/// Pages that one file of the index describes: a full server has at most two such files.
pub const INTERACTION_PAGES_INDEXED: u64 = 1_000;

/// Pages of interactions that one commit removes. Each has two files, and a commit has at most 100 operations.
pub const INTERACTION_PAGES_REMOVED: u64 = 40;

/// Bytes of a text in the line of an interaction.
pub const INTERACTION_TEXT_BYTES: usize = 2_000;

/// Hits of a tag that are kept each minute. Of more, a sample is kept.
pub(crate) const KEPT_A_MINUTE: u64 = 100;

/// The same while more than [`SAMPLED_ABOVE`] hits a second arrive, or the server is nearly full.
pub(crate) const KEPT_WHILE_BUSY: u64 = 10;

/// Hits in a second of all tags together, up to which the first hits of each tag are certainly kept.
pub(crate) const SAMPLED_ABOVE: u64 = 5_000;

/// Minutes after which it is forgotten how many hits of a tag were left out. The sum of the server has them.
pub(crate) const LEFT_OUT_MINUTES: i64 = 60;

/// Tags whose hits are counted: 10 MB. With more of them counting begins anew.
pub(crate) const SAMPLED_TAGS: usize = 100_000;

/// Payload groups of one project. Each is a live record.
pub const PAYLOAD_GROUPS: usize = 50;

/// Payloads of one group: its record stays below the 1 MiB of a commit.
pub const PAYLOADS: usize = 1_000;

/// Versions of one payload.
pub const PAYLOAD_VERSIONS: u64 = 1_000;

/// Bytes of one version.
pub const PAYLOAD_BYTES: u64 = 10 * 1024 * 1024;

/// Bytes of all versions of a project.
pub const PAYLOADS_BYTES: u64 = 1024 * 1024 * 1024;

/// Bytes of the name of a payload or variable.
pub const PAYLOAD_NAME_BYTES: usize = 64;

/// Variables of one group. Each is looked for at each byte of a payload.
pub const PAYLOAD_VARIABLES: usize = 20;

pub const PAYLOAD_PLACEHOLDER_BYTES: usize = 64;

/// Bytes of the default of a variable.
pub const PAYLOAD_DEFAULT_BYTES: usize = 4 * 1024;

/// Filters of one placeholder, so that a hostile text cannot make the search slow.
pub(crate) const PAYLOAD_FILTERS: usize = 4;

/// Bytes of the content type of a payload.
pub const PAYLOAD_TYPE_BYTES: usize = 100;

/// Lines of one render: payloads times targets. One mint has as many tags.
pub const RENDERED_LINES: u32 = 100_000;

/// Versions that one commit removes: a commit has at most 100 operations.
pub const PAYLOAD_VERSIONS_REMOVED: u64 = 90;
