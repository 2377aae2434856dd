//! Every bound of this package, with its reason.

use std::time::Duration;

/// Shortest time between two looks at a source. A host may take more frequent requests for an attack.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// How long remaining tasks may run after the drain. The drain has waited for everything that matters.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(2);

/// Time between two updates of a progress line.
pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// Longest key file. A key has fewer than a hundred bytes, and a wrong path must not fill memory.
pub(crate) const KEY_FILE_BYTES: u64 = 4 * 1024;

/// Time between two looks of `up` at its folder. A file is committed once two looks find it the same, so a file that is
/// still being written is left alone. A person feels the delay as immediate.
pub(crate) const FOLDER_LOOK: Duration = Duration::from_millis(150);

/// How deep `up` looks into its folder: deeper than any sensible workflow name.
pub(crate) const FOLDER_DEPTH: usize = 16;

/// New jobs that `up` reports at once. Nobody reads more; the oldest are left out.
pub(crate) const PRINTED_JOBS: usize = 100;

/// Records of a ledger in which `up` looks for the one that made a job. It is among the newest.
pub(crate) const SEARCHED_RECORDS: usize = 10;
