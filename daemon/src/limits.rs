//! Every bound of this package, with its reason.

use std::time::Duration;

/// Shortest time between two looks at a source: a host that is asked more often takes it for an attack.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// What still runs after the drain is given this long before it is dropped: everything that matters was waited for.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(2);
