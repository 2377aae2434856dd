//! Every bound of this package, with its reason.

use std::time::Duration;

/// Shortest time between two looks at a source: a host that is asked more often takes it for an attack.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// What still runs after the drain is given this long before it is dropped: everything that matters was waited for.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(2);

/// Longest key file that is read: a key has under a hundred bytes, and a mistaken path must not fill memory.
pub(crate) const KEY_FILE_BYTES: u64 = 4 * 1024;
