//! Checks that each kept interaction is considered exactly once by each scan that its server starts.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Cause, JobId, Outcome, ScanHead, ScanKey};
use tokio::time::Instant;
use workflow::Scan;

use super::{News, Oracle};
use crate::{InteractionFilter, InteractionPlace, State};

/// A scan that a callback server starts.
pub(super) struct Listener {
    /// Only later interactions count.
    after: u64,
    /// It has considered the interactions up to this one.
    last: u64,
}

impl Listener {
    /// The trigger after `before`. A new one begins after the newest interaction.
    pub(super) fn following(
        before: Option<Self>,
        scan: Option<&Scan>,
        newest: u64,
    ) -> Option<Self> {
        scan?.on.callback.as_ref()?;
        before.or(Some(Self {
            after: newest,
            last: newest,
        }))
    }
}

/// The kept interactions, with the job that made the name and its scan, if a job has.
pub(super) type Kept = BTreeMap<u64, Option<(JobId, ScanKey)>>;

pub(super) fn newest(kept: &Kept) -> u64 {
    kept.last_key_value().map_or(0, |(number, _)| *number)
}

impl Oracle {
    /// Reads the interactions since the last check.
    pub(super) async fn read_interactions(&mut self, state: &State) {
        let server = state.read(|world| world.callbacks().next().map(|server| server.id));
        let Some(server) = server else {
            return;
        };
        let (filter, later) = (
            InteractionFilter::default(),
            Instant::now() + Duration::from_secs(9),
        );
        loop {
            let after = InteractionPlace::After(newest(&self.kept));
            let page = state
                .interactions(server, &filter, after, 100, later)
                .await
                .unwrap();
            let new = page.interactions.into_iter().map(|it| {
                let by = it.planted.job.map(|by| (by.id, by.scan));
                (it.number, by)
            });
            self.kept.extend(new);
            if page.next.is_none() {
                return;
            }
        }
    }

    pub(super) fn check_interactions(&mut self, key: &ScanKey, head: &ScanHead, news: &News) {
        let (kept, jobs) = (&self.kept, &self.jobs);
        let of_scan = self.scans.get_mut(key);
        let Some(listener) = of_scan.and_then(|of_scan| of_scan.listener.as_mut()) else {
            let is_heard = |cause: &Cause| matches!(cause, Cause::Interactions { .. });
            let mut records = news.records.iter();
            assert!(
                !records.any(|it| is_heard(&it.cause)),
                "{} has no server",
                key.scan
            );
            return;
        };
        let is_own =
            |by: &Option<(JobId, ScanKey)>| by.as_ref().is_some_and(|(_, scan)| scan == key);
        for record in &news.records {
            let Cause::Interactions {
                first,
                last,
                count,
                own,
                ..
            } = &record.cause
            else {
                continue;
            };
            let due: Vec<_> = kept.range(listener.last + 1..=*last).collect();
            let of_own = due.iter().filter(|(_, by)| is_own(by)).count() as u64;
            assert_eq!(
                (
                    due.first().map(|(number, _)| **number),
                    due.len() as u64,
                    of_own
                ),
                (Some(*first), *count, *own),
                "{} has considered up to {}: {record:?}",
                key.scan,
                listener.last
            );
            listener.last = *last;
            match &record.outcome {
                Outcome::Made { job } => {
                    self.heard += 1;
                    assert!(count > own, "its own names have started {}", key.scan);
                    let others = due.iter().rev().filter(|(_, by)| !is_own(by));
                    let planted = others.filter_map(|(_, by)| by.as_ref()).next();
                    let cause = jobs[job].record.callback.as_ref().unwrap();
                    let expected = (*first, *last, count - own, planted.map(|(job, _)| *job));
                    assert_eq!((cause.first, cause.last, cause.count, cause.job), expected);
                }
                Outcome::NotMade { .. } | Outcome::Skipped { .. } => {
                    assert_eq!(count, own, "{} was not started: {record:?}", key.scan);
                }
            }
        }
        // Repeated looks at own names are only counted.
        let considered = head.interactions.map_or(0, |considered| considered.last);
        if considered > listener.last {
            let mut due = kept.range(listener.last + 1..=considered);
            assert!(
                news.counted > 0 && due.all(|(_, by)| is_own(by)),
                "{} skips interactions",
                key.scan
            );
            listener.last = considered;
        }
        assert!(listener.last <= newest(kept), "{} is ahead", key.scan);
    }

    /// At rest, a scan has considered everything unless it is suspended.
    pub(super) fn check_interactions_at_rest(&self) {
        for (key, of_scan) in &self.scans {
            if let Some(listener) = &of_scan.listener {
                let is_done = listener.last >= newest(&self.kept).max(listener.after);
                assert!(
                    is_done || of_scan.is_suspended,
                    "{} has considered up to {}, not {}",
                    key.scan,
                    listener.last,
                    newest(&self.kept)
                );
            }
        }
    }
}
