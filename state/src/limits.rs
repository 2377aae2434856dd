//! Every limit of this package, with its reason.

use std::time::Duration;

/// Commands in the queue of the committer. If it is full, callers wait before they queue, which bounds memory.
pub(crate) const WAITING_COMMANDS: usize = 4_096;

/// Commands that may share one commit. Refusals add nothing to a batch, so without this limit many of them would delay
/// the other answers.
pub(crate) const ROUND_COMMANDS: usize = 1_024;

/// Live records that one thread decodes at once during a start: a millisecond.
pub(crate) const DECODED_AT_ONCE: usize = 256;

/// An unsynced end of a log up to this size is stored in the commit that completes the job, instead of a sync of its
/// own.
pub(crate) const LOG_TAIL_BYTES: u64 = 64 * 1024;

/// The runner's own records after the cut of a log: some hundred lines on why steps ended.
pub(crate) const AFTER_CUT_BYTES: u64 = 64 * 1024;

/// A log is synced at least this often while it grows.
pub(crate) const LOG_SYNC: Duration = Duration::from_secs(1);

/// Ended jobs in memory: the newest pages of a list, in about two megabytes. A record has at most 64 KiB of context and
/// 64 KiB of inputs.
pub(crate) const ENDED_JOBS: usize = 512;

/// Bytes of a log or history that are read at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// Pieces of histories whose lines are cached: about a megabyte. A page of a list needs at most one piece for each of
/// its jobs.
pub(crate) const READ_PIECES: usize = 128;

/// Bytes of a log that are sent to a reader at once. For a slow reader, several such pieces are in memory.
pub(crate) const LOG_PIECE: usize = 64 * 1024;

/// Days whose audit log is kept: a year, which most regulations require.
pub(crate) const AUDIT_DAYS: u64 = 365;

/// Days whose events and deliveries are kept.
pub(crate) const EVENT_DAYS: u64 = 30;

/// Pieces of the audit log, of the events or of the deliveries that one page may read. Then the page ends, even if it has too few lines. Together 32 MiB.
pub(crate) const LEDGER_PIECES: usize = 128;

/// Bytes of a log that are searched at once. Larger pieces do not fit into the processor's cache.
pub(crate) const SEARCH_BYTES: usize = 512 * 1024;

/// Bytes of text in one page of matches: the page ends after the text that exceeds it. Escapes may increase the bytes
/// sixfold, and clients accept 32 MiB.
pub(crate) const FOUND_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Expiry records that are read at once: each costs a commit, and other commands wait meanwhile.
pub(crate) const EXPIRIES_AT_ONCE: usize = 100;

/// Bytes of a history that are read at once, from its end backwards: some sixty lines, about a page of a list.
pub(crate) const HISTORY_PIECE_BYTES: usize = 16 * 1024;

/// Bytes that are read before a piece to find where its first line begins: nearly every line is shorter.
pub(crate) const LINE_BEGIN_BYTES: usize = 1024;

/// The approximate number of lines in such a piece.
pub(crate) const LINES_OF_A_PIECE: usize = 64;

/// Pieces of a history that are read for the newest jobs of a scan. A few pieces hold all jobs that expressions can
/// use; more are needed only if nearly all jobs were skipped. Together 4 MiB.
pub(crate) const RECENT_PIECES: usize = 256;

/// Pieces of histories that one list may read without finding a wanted job. Then the page ends early. Together 32 MiB,
/// which takes a few tenths of a second.
pub(crate) const FRUITLESS_PIECES: usize = 2_048;

/// Bytes of an upload that are written together: data arrives in small pieces, and each write costs a change of thread.
/// Each upload takes somewhat more memory than this.
pub(crate) const UPLOAD_BYTES: usize = 512 * 1024;

/// Longest text of one log record as stored; runners split longer lines.
pub(crate) const LOG_TEXT_BYTES: usize = 256 * 1024;

/// Longest name in a path. A longer name is shortened and gets a hash: file systems allow 255 bytes.
pub(crate) const NAME_BYTES: usize = 120;

/// Tips in one folder: folders stay below about 10,000 entries.
pub(crate) const TIPS_PER_FOLDER: u64 = 1_000;

/// Mints of a callback server in one folder.
pub(crate) const MINTS_PER_FOLDER: u32 = 1_000;

/// A lower bound for the length of a log line: the shortest line has an empty text.
pub(crate) const LEAST_LINE_BYTES: u64 = 60;

/// Files whose damage was logged once and is not logged again. Ten thousand damaged files mean a damaged disk.
pub(crate) const WARNED_FILES: usize = 10_000;

/// Longest line of a log, a history or a ledger. Real lines are far shorter, and a file that lost its line ends must
/// not fill memory.
pub(crate) const LINE_BYTES: usize = 4 * 1024 * 1024;

/// How often a check reads a part that changes during each attempt: commits come in bursts.
pub(crate) const CHECK_TRIES: u32 = 8;

/// The pause before a check reads a changed part again.
pub(crate) const CHECK_PAUSE: Duration = Duration::from_millis(25);

/// Damaged lines of one file that are reported one by one; the rest are counted.
pub(crate) const REPORTED_LINES: u64 = 5;

/// Revisions that are read to find the revision that removed a scan: a request waits for this, and a text may have 1
/// MiB.
pub(crate) const REVISIONS_LOOKED_AT: usize = 50;

/// Commits whose changes are kept for followers. A follower that falls behind further reads the world instead.
pub(crate) const FEED_COMMITS: usize = 1_024;

/// The total number of changes of these commits. A settled record takes a few KiB.
pub(crate) const FEED_CHANGES: usize = 8_192;

/// Bytes that are read of the file with the first token: more than a token has.
pub(crate) const FIRST_TOKEN_BYTES: usize = 256;

/// Files of an artifact that can be listed, and bytes of the zip directory: each page of a list reads the whole
/// directory. Folders of dependencies can have this many files.
pub(crate) const ARTIFACT_ENTRIES: u64 = 100_000;
pub(crate) const DIRECTORY_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of such a directory that are read at once: more than the largest entry.
pub(crate) const DIRECTORY_PIECE_BYTES: usize = 256 * 1024;
