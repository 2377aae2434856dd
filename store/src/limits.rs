//! All limits of this package, each with its reason.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Longest path segment of a key: file systems allow 255 bytes, and temporary names and suffixes need some.
pub const SEGMENT_BYTES: usize = 200;

/// Longest key: a path of 1,024 bytes that a user chose has three times as many once it is percent-encoded. Below
/// `PATH_MAX` (4,096), so that any root leaves room for it.
pub const KEY_BYTES: usize = 3_200;

/// Operations of one batch: the limit of a transaction in some distributed engines.
pub const BATCH_OPERATIONS: usize = 100;

/// Keys and contents of one batch: keeps the one sync short and stays below a distributed engine's request size.
pub const BATCH_BYTES: usize = 1024 * 1024;

/// Largest file that `get` loads: records are small, and a large object asked for by mistake must not fill memory.
pub const GET_BYTES: u64 = 64 * 1024 * 1024;

/// Content of acknowledged batches that may wait for the tree: enough to smooth bursts, and quickly redone.
pub(crate) const PENDING_BYTES: usize = 8 * 1024 * 1024;

/// Acknowledged batches that may wait for the tree: bounds the memory of many tiny ones.
pub(crate) const PENDING_BATCHES: usize = 4096;

/// How long a batch may wait for others before it is written to the tree, unless somebody needs the tree. A record
/// that is replaced several times meanwhile is written once.
pub(crate) const GATHER: Duration = Duration::from_millis(200);

/// Number of waiting batches at which gathering ends: far below the limits at which the writer waits.
pub(crate) const GATHERED_BATCHES: usize = PENDING_BATCHES / 8;
pub(crate) const GATHERED_BYTES: usize = PENDING_BYTES / 8;

/// Bytes appended to a growing file before writeback starts: large writes, and little work left for a sync.
pub(crate) const WRITEBACK_BYTES: u64 = 8 * 1024 * 1024;

/// Size of the first segment of a new store: quick to fill, so that a start is quick.
pub(crate) const FIRST_SEGMENT_BYTES: u64 = 1024 * 1024;

/// Size of every other segment: some tens of thousands of records between two changes of file.
pub(crate) const SEGMENT_BYTES_ON_DISK: u64 = 16 * 1024 * 1024;

/// Spare segments: enough to record the ends of running work while the disk is full.
pub(crate) const SPARE_SEGMENTS: usize = 2;

/// Journal that makes a checkpoint due: a redo of this size takes a second or less.
pub(crate) const CHECKPOINT_BYTES: u64 = 16 * 1024 * 1024;

/// Time after a change that makes a checkpoint due: bounds how far the tree on disk is behind.
pub(crate) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);

/// Journal that a hold may keep: a backup reads it into memory as a whole.
pub(crate) const HOLD_JOURNAL_BYTES: u64 = 1024 * 1024 * 1024;

/// Pause between two tries to take a hold: the writer locks its file only for a moment.
pub(crate) const HOLD_PAUSE: Duration = Duration::from_millis(20);

/// Times that a backup reads the journal again because something was deleted before it was copied. Each round covers
/// only the changes during the round before, so a few are enough.
pub(crate) const BACKUP_ROUNDS: usize = 64;

/// Epochs that a restored store skips: more than the original can have used since the backup, so that no earlier
/// writer has an epoch of the restored store.
pub(crate) const COPY_EPOCHS: u64 = 1_000_000;

/// Free space below which the disk is getting full, as a share of it: a person has time to make room.
pub(crate) const LOW_WATER_PERCENT: u64 = 5;

/// The same in bytes, where a share would be more than jobs are likely to need.
pub(crate) const LOW_WATER_BYTES: u64 = 1024 * 1024 * 1024;

/// The same in files: five times `WATERMARK_FILES`.
pub(crate) const LOW_WATER_FILES: u64 = 20_480;

/// Free space below which new work is refused, as a share of the disk; kept for finishing work.
pub(crate) const WATERMARK_PERCENT: u64 = 1;

/// The same in bytes, where a share would be more than finishing work can need.
pub(crate) const WATERMARK_BYTES: u64 = 16 * 1024 * 1024;

/// Free files below which new work is refused, where a share would be more: the ends of a thousand jobs, with a few
/// new files each.
pub(crate) const WATERMARK_FILES: u64 = 4096;

/// How long a measurement of free space is used: each measurement costs a system call.
pub(crate) const SPACE_MEASURED_EVERY: Duration = Duration::from_secs(1);

/// Payload of one journal record: a full batch with its framing, doubled; a longer length field is damage.
pub(crate) const RECORD_PAYLOAD_BYTES: usize = 2 * BATCH_BYTES;

/// Largest segment read at recovery: a segment is held in memory while it is scanned.
pub(crate) const SEGMENT_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Longest small control file (`FORMAT`, `LOCK`, `CHECKPOINT`, `BACKUP`) that is read: each holds one line.
pub(crate) const CONTROL_FILE_BYTES: u64 = 64 * 1024;

/// Number of files from which several threads write a group of batches. Fewer files leave the other processors to
/// requests.
pub(crate) const PARALLEL_APPLY: usize = 256;

/// Threads that write many files: the content is in memory, so more threads gain nothing.
pub(crate) const APPLY_THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Number of files from which several threads redo the journal. A start has few other things to do.
pub(crate) const PARALLEL_REDO: usize = 64;

/// Threads that write the files of a large redo: folders must be read from the disk first, and a disk serves several
/// reads at once.
pub(crate) const REDO_THREADS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// Threads that read the records of a list: each read may wait for the disk, which serves several reads at once.
pub(crate) const RECORDS_THREADS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// Threads that read the lengths of many files: more than for records, because each file is less work.
pub(crate) const LENGTHS_THREADS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// Folders that are read together without a live index: enough to keep the threads busy.
pub(crate) const FOLDERS_AT_ONCE: usize = 256;

/// Threads that read the tree without a live index: as for a redo.
pub(crate) const READING_THREADS: NonZeroUsize = REDO_THREADS;

/// Size of a write from which a second thread hashes the bytes: each thread then works for some tens of microseconds,
/// more than starting a thread costs.
pub(crate) const LARGE_WRITE: usize = 256 * 1024;

/// Allocations of this size return to the operating system when they are freed. glibc keeps smaller
/// ones, up to a threshold that grows to at most 32 MiB. Unused memory costs nothing.
pub(crate) const GIVEN_BACK_BYTES: usize = 33 * 1024 * 1024;

/// Attempts of a read during concurrent appends before it blocks the writer for one read.
pub(crate) const OPTIMISTIC_READS: usize = 4;

/// Attempts to create a file while another thread removes its folder as empty.
pub(crate) const FOLDER_RACES: usize = 16;

/// Bytes copied at once.
pub(crate) const COPY_BYTES: usize = 1024 * 1024;

/// Tries to read a store while checkpoints change its journal: a try is quicker than the seconds between two
/// checkpoints.
pub(crate) const READ_TRIES: usize = 16;

/// Longest `/proc/locks` that is read: it has a line of some fifty bytes for each lock of the system.
pub(crate) const LOCKS_BYTES: usize = 4 * 1024 * 1024;

/// A piece of a large object that is read at once to check it.
pub(crate) const OBJECT_PIECE_BYTES: usize = 256 * 1024;
