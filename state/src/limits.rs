//! Every bound of this package, with its reason.

use std::time::Duration;

/// Commands that may wait for the committer: beyond this, callers wait before they queue, which bounds memory.
pub(crate) const WAITING_COMMANDS: usize = 4_096;

/// Commands that share one commit at most: refusals add nothing to a batch, and many of them must not delay the
/// other answers.
pub(crate) const ROUND_COMMANDS: usize = 1_024;

/// An unsynced end of a log up to this size rides inside the completing commit instead of costing a sync of its own.
pub(crate) const LOG_TAIL_BYTES: u64 = 64 * 1024;

/// The runner's own records behind the cut of a log that has reached its limit: some hundred lines on why steps ended.
pub(crate) const LAST_WORDS_BYTES: u64 = 64 * 1024;

/// A log is synced at least this often while it grows.
pub(crate) const LOG_SYNC: Duration = Duration::from_secs(1);

/// Ended jobs in memory: the newest pages of a list, in about two megabytes. A record has 64 KiB of context and as much of
/// inputs at most.
pub(crate) const ENDED_JOBS: usize = 512;

/// A piece of a log or history that is read at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// Pieces of histories whose lines are kept after they were read: about a megabyte. A page of a list needs one for each of
/// its jobs at the most.
pub(crate) const READ_PIECES: usize = 128;

/// A piece of a log on its way to a reader. A reader that is slow has several of them in memory.
pub(crate) const LOG_PIECE: usize = 64 * 1024;

/// Days whose audit log is kept: a year, which most rules ask for.
pub(crate) const AUDIT_DAYS: u64 = 365;

/// Pieces of the audit log that one page may read without finding enough lines; then it answers what it has, and where to
/// go on. Together 32 MiB.
pub(crate) const AUDIT_PIECES: usize = 128;

/// A piece of a log that is searched at once. Larger ones fall out of the processor's cache.
pub(crate) const SEARCH_BYTES: usize = 512 * 1024;

/// Bytes of texts that one page of matches shows; then the page ends after the text that passes it. Escapes may make six
/// times as many of them, and clients take 32 MiB.
pub(crate) const FOUND_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Expiries that are read at once: each costs a commit, and other commands wait meanwhile.
pub(crate) const EXPIRIES_AT_ONCE: usize = 100;

/// A piece of a history that is read at once, from its end backwards: some sixty lines, about a page of a list.
pub(crate) const HISTORY_PIECE_BYTES: usize = 16 * 1024;

/// What is read before a piece, where its first line begins: nearly every line is shorter.
pub(crate) const LINE_BEGIN_BYTES: usize = 1024;

/// Lines in such a piece, roughly.
pub(crate) const LINES_OF_A_PIECE: usize = 64;

/// Pieces of a history that are read for the newest jobs of a scan: a few hold as many as expressions can reach, so more
/// are needed only when nearly all of them are about skipped jobs. Together 4 MiB.
pub(crate) const RECENT_PIECES: usize = 256;

/// Pieces of histories that one list may read without finding a job it wants; then it answers what it has, and where to
/// go on. Together 32 MiB, which is a few tenths of a second.
pub(crate) const FRUITLESS_PIECES: usize = 2_048;

/// Pieces of an upload that are written together: a network brings them in small ones, and each write costs a change of
/// thread. Each upload takes somewhat more memory than this.
pub(crate) const UPLOAD_BYTES: usize = 512 * 1024;

/// Longest text of one log record as stored; runners split longer lines.
pub(crate) const LOG_TEXT_BYTES: usize = 256 * 1024;

/// Longest name in a path. A longer one is cut and gets a hash: file systems take 255 bytes.
pub(crate) const NAME_BYTES: usize = 120;

/// Tips in one folder: no folder passes about 10,000 entries.
pub(crate) const TIPS_PER_FOLDER: u64 = 1_000;

/// The shortest line of a log has an empty text.
pub(crate) const LEAST_LINE_BYTES: u64 = 60;

/// Files whose damage was logged and that are remembered: ten thousand damaged files mean a damaged disk.
pub(crate) const WARNED_FILES: usize = 10_000;

/// Longest line of a log, a history or a ledger: texts are bounded far below, and a file that lost its line ends must
/// not fill memory.
pub(crate) const LINE_BYTES: usize = 4 * 1024 * 1024;

/// How often a check reads a part of a state in use until it did not change meanwhile: commits come in bursts.
pub(crate) const CHECK_TRIES: u32 = 8;

/// Pause before a check reads a part again that has changed meanwhile.
pub(crate) const CHECK_PAUSE: Duration = Duration::from_millis(25);

/// Damaged lines of one file that are reported one by one; the rest is counted.
pub(crate) const REPORTED_LINES: u64 = 5;

/// Revisions that are read to find which revision removed a scan: a request waits for it, and a text may have 1 MiB.
pub(crate) const REVISIONS_LOOKED_AT: usize = 50;

/// Commits whose changes are kept for followers. A follower that is farther behind reads the world instead.
pub(crate) const FEED_COMMITS: usize = 1_024;

/// Changes of those commits together. A record that is no longer live takes a few KiB.
pub(crate) const FEED_CHANGES: usize = 8_192;

/// What is read of the file of the first token: more than a token has.
pub(crate) const FIRST_TOKEN_BYTES: usize = 256;

/// Files of an artifact that can be listed, and bytes of the directory that names them: each page reads all of it. A folder
/// of dependencies has as many.
pub(crate) const ARTIFACT_ENTRIES: u64 = 100_000;
pub(crate) const DIRECTORY_BYTES: usize = 32 * 1024 * 1024;

/// A piece of such a directory that is read at once: more than the largest entry.
pub(crate) const DIRECTORY_PIECE_BYTES: usize = 256 * 1024;
