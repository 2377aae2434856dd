//! Schedules that were followed ahead of the clock: it was wrong then, or is now.

use std::collections::HashMap;

use chrono::TimeDelta;
use futures_util::{StreamExt, stream};
use model::decide::{Rewind, SkipSlots};
use model::limits::{CLOCK_JUMP, CURSOR_AHEAD};
use model::{ScanKey, Timestamp};

use crate::clock::jump;
use crate::handle::Handle;
use crate::limits::AT_ONCE;

/// What is known of such schedules.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    taken_back: HashMap<ScanKey, TakenBack>,
    /// How far ahead the log says that schedules are.
    told: Option<Timestamp>,
}

/// A schedule that goes on from an earlier time than it was followed to.
#[derive(Debug)]
struct TakenBack {
    /// Up to where it was followed.
    until: Timestamp,
    /// How far the wall clock was ahead of the steady one.
    ahead: TimeDelta,
}

impl Handle {
    /// Brings every schedule to where the clock is, and tells of those that wait for it. Gives the time.
    pub(crate) async fn mind_cursors(&self, cursors: &mut Cursors) -> Timestamp {
        let (now, steady) = self.look_at_clock();
        let ahead = now - steady;
        let come: Vec<(ScanKey, TakenBack)> = cursors
            .taken_back
            .extract_if(|_, back| back.until <= now)
            .collect();
        for (scan, back) in come {
            // Only a clock that was behind when the schedule was taken back gets there by a jump.
            if ahead - back.ahead > CLOCK_JUMP {
                let until = back.until;
                let skip = SkipSlots {
                    scan: scan.clone(),
                    until,
                };
                if let Err(error) = self.state().submit(skip).await {
                    tracing::warn!(scan = %scan.scan, %error, "a schedule cannot be put back to {until}");
                    cursors.taken_back.insert(scan, back);
                }
            }
        }
        self.rewind(cursors, now, ahead).await;
        let (schedules, furthest) = self.state().read(|world| {
            let mut ahead = world.followed_beyond(now + CLOCK_JUMP).peekable();
            let furthest = ahead.peek().map(|(cursor, _)| *cursor);
            (ahead.count(), furthest)
        });
        if let Some(until) = furthest.filter(|_| furthest != cursors.told) {
            tracing::warn!(
                schedules,
                %until,
                "schedules were followed ahead of the clock and wait until it is there: is it right?"
            );
        }
        cursors.told = furthest;
        now
    }

    async fn rewind(&self, cursors: &mut Cursors, now: Timestamp, ahead: TimeDelta) {
        let far: Vec<ScanKey> = self.state().read(|world| {
            let far = world.followed_beyond(now + CURSOR_AHEAD);
            far.map(|(_, scan)| scan.clone()).collect()
        });
        // Together, so that they share their commits.
        let rewound: Vec<_> = stream::iter(far)
            .map(|scan| async move {
                let rewind = Rewind { scan: scan.clone() };
                (scan, self.state().submit(rewind).await)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let (mut schedules, mut furthest) = (0, now);
        for (scan, answer) in rewound {
            match answer {
                Ok(Some(until)) => {
                    (schedules, furthest) = (schedules + 1, furthest.max(until));
                    cursors.taken_back.insert(scan, TakenBack { until, ahead });
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(scan = %scan.scan, %error, "a schedule far ahead of the clock cannot be taken back");
                }
            }
        }
        if schedules > 0 {
            let by = now - furthest;
            let jump = jump(by);
            tracing::warn!(
                schedules,
                "the wall clock is {jump} of where schedules had been followed to: they go on from now"
            );
            self.doubt_clock(by, schedules);
        }
    }
}
