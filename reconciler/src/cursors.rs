//! Schedules that ran ahead of the clock: the clock was wrong then, or is wrong now.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use model::decide::Rewind;
use model::limits::{CLOCK_JUMP, CURSOR_AHEAD};
use model::{ScanKey, Timestamp};
use tokio::time::Instant;

use crate::clock::span;
use crate::handle::Handle;
use crate::limits::{AT_ONCE, TRIGGER_REST};

/// Moves every schedule that is far ahead back to the clock, except after a recent failure, and logs the schedules that
/// wait for the clock. `reported` is the time that was logged last. Returns the present time.
pub(crate) async fn check_cursors(
    handle: &Handle,
    reported: &mut Option<Timestamp>,
    resting: &mut HashMap<ScanKey, Instant>,
) -> Timestamp {
    let (now, _) = handle.clock().read_clocks();
    rewind(handle, now, resting).await;
    let (schedules, furthest) = handle.state().read(|world| {
        let mut ahead = world.followed_beyond(now + CLOCK_JUMP).peekable();
        let furthest = ahead.peek().map(|(cursor, _)| *cursor);
        (ahead.count(), furthest)
    });
    if let Some(until) = furthest.filter(|_| furthest != *reported) {
        tracing::warn!(
            schedules,
            %until,
            "schedules were evaluated ahead of the wall clock and wait until the clock gets there: is the clock right?"
        );
    }
    *reported = furthest;
    now
}

async fn rewind(handle: &Handle, now: Timestamp, resting: &mut HashMap<ScanKey, Instant>) {
    let far: Vec<ScanKey> = handle.state().read(|world| {
        let far = world.followed_beyond(now + CURSOR_AHEAD);
        let far = far.filter(|(_, scan)| !resting.contains_key(scan));
        far.map(|(_, scan)| scan.clone()).collect()
    });
    // Submit them together, so that they share commits.
    let rewound: Vec<_> = stream::iter(far)
        .map(|scan| async move {
            let rewind = Rewind { scan: scan.clone() };
            (scan, handle.state().submit(rewind).await)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let (mut schedules, mut furthest) = (0, now);
    for (scan, answer) in rewound {
        match answer {
            Ok(Some(until)) => {
                (schedules, furthest) = (schedules + 1, furthest.max(until));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(scan = %scan.scan, %error, "a schedule far ahead of the clock cannot be moved back");
                resting.insert(scan, Instant::now() + TRIGGER_REST);
            }
        }
    }
    if schedules > 0 {
        let behind = span(furthest - now);
        tracing::warn!(
            schedules,
            "the wall clock is {behind} behind the point up to which schedules had been followed: they continue from now"
        );
        handle.clock().doubt(schedules);
    }
}
