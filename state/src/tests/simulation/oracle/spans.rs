//! Checks that clock changes do not shorten or extend sessions of workers and runners, or the time for which a request
//! is stored.

use std::collections::HashSet;

use chrono::TimeDelta;
use model::{Holder, JobState, Timestamp, World};

use super::{Now, Oracle};
use crate::tests::simulation::time::MINUTE;

/// A clock change below a minute is not recognized, and the next process starts with the changed clock.
const UNSEEN: i64 = MINUTE + 1;

impl Oracle {
    /// The clock was set while nobody could notice. All spans are measured again.
    pub(in crate::tests::simulation) fn clock_is_unknown(&mut self) {
        self.left.clear();
    }

    pub(super) fn check_spans(&mut self, world: &World, now: Now) {
        let Some(time) = now.time else {
            return;
        };
        let known: HashSet<Holder> = world.holders().into_iter().collect();
        let before = std::mem::take(&mut self.left);
        for (holder, end) in ends(world) {
            let left = end - time;
            // Expiry times that an unknown clock has set do not move with later clocks.
            if let Some((at, before)) = before.get(&holder).filter(|_| known.contains(&holder)) {
                let passed = TimeDelta::milliseconds(now.steady - at);
                let gained = left + passed - *before;
                let is_kept = gained.num_milliseconds().abs() < UNSEEN;
                assert!(is_kept, "the span of {holder:?} has grown by {gained}");
            }
            self.left.insert(holder, (now.steady, left));
        }
    }
}

/// All records that expire, with their expiry times.
fn ends(world: &World) -> Vec<(Holder, Timestamp)> {
    let jobs = world.running().filter_map(|job| match &job.state {
        JobState::Running { run } => Some((Holder::Job(job.id), run.expires_at)),
        JobState::Scheduled
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => None,
    });
    let runners = world.runners();
    let runners = runners.map(|it| (Holder::Runner(it.id), it.session.expires_at));
    let requests = world
        .idempotency_over(Timestamp::MAX_UTC)
        .filter_map(|key| {
            let request = world.idempotency(key)?;
            Some((Holder::Idempotency(key.to_owned()), request.expires_at))
        });
    jobs.chain(runners).chain(requests).collect()
}
