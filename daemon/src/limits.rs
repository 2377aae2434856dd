//! Every bound of this package, with its reason.

use std::time::Duration;

/// Shortest time between two looks at a source: a host that is asked more often takes it for an attack.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// What still runs after the drain is given this long before it is dropped: everything that matters was waited for.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(2);

/// Time between two words of progress to a person at a terminal.
pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// Longest key file that is read: a key has under a hundred bytes, and a mistaken path must not fill memory.
pub(crate) const KEY_FILE_BYTES: u64 = 4 * 1024;

/// Time between two looks of `up` at its folder. A file is committed once it is the same in two of them, so that one
/// which is still being written is not; a save counts within what a person feels as at once.
pub(crate) const FOLDER_LOOK: Duration = Duration::from_millis(150);

/// How deep `up` looks into its folder: as deep as a workflow's name is sensible.
pub(crate) const FOLDER_DEPTH: usize = 16;

/// New jobs that `up` tells of at once; more than these nobody reads, and the oldest are passed over.
pub(crate) const TOLD_JOBS: usize = 100;

/// Records of a ledger among which `up` looks for the one that made a job: it is among the newest.
pub(crate) const TOLD_RECORDS: usize = 10;
