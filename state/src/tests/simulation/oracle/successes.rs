//! Checks that each success is considered exactly by the scans that it wakes, with the newest results.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cause, JobId, Order, Outcome, ScanKey, World};
use workflow::Scan;

use super::{News, OfScan, Oracle, is_success};
use crate::tests::simulation::scenario::{reader_and_read, woken_by};

/// An expression that is in effect.
pub(super) struct Consumer {
    expression: String,
    /// The first check that saw this expression.
    since: u64,
    /// The newest check that saw an evaluation.
    checked: Option<u64>,
    /// The newest check that saw an evaluation which made a job.
    made: Option<u64>,
    /// How often each success made a job.
    causes: BTreeMap<JobId, usize>,
}

impl Consumer {
    /// The expression after `before`. A changed or new expression begins now.
    pub(super) fn following(before: Option<Self>, scan: Option<&Scan>, round: u64) -> Option<Self> {
        let expression = scan?.on.expr.as_ref()?.source().to_owned();
        before
            .filter(|before| before.expression == expression)
            .or(Some(Self {
                expression,
                since: round,
                checked: None,
                made: None,
                causes: BTreeMap::new(),
            }))
    }

    /// True for expressions that are true after each waking success, until a job is claimed.
    fn is_true_after_success(&self) -> bool {
        self.expression.contains("is_available") || self.expression.contains("'succeeded'")
    }
}

impl Oracle {
    pub(super) fn check_evaluations(&mut self, key: &ScanKey, news: &News) {
        let round = self.round;
        for record in &news.records {
            if let Some(evaluation) = &record.evaluation {
                for (scan, read) in &evaluation.scans {
                    self.check_read(key, scan, &read.successes);
                }
            }
            if let Cause::Activation { .. } = &record.cause {
                let (reader, _) = reader_and_read();
                assert_eq!(
                    *key, reader,
                    "only the reader is evaluated at an activation: {record:?}"
                );
            }
            if let Cause::Success { scan, job } = &record.cause {
                let of = ScanKey {
                    workflow: key.workflow,
                    scan: scan.parse().unwrap(),
                };
                assert!(
                    woken_by(&of).any(|woken| woken == *key),
                    "{} is not woken by {scan}: {record:?}",
                    key.scan
                );
                let known = self.jobs.get(job);
                let is_known = known.is_some_and(|known| {
                    is_success(&known.record) && known.record.scan_key() == of
                });
                assert!(is_known, "{job} is not a success of {scan}: {record:?}");
            }
        }
        let Some(of_scan) = self.scans.get_mut(key) else {
            return;
        };
        let resumptions = of_scan.resumptions;
        let Some(consumer) = &mut of_scan.consumer else {
            return;
        };
        if !news.records.is_empty() || news.counted > 0 {
            consumer.checked = Some(round);
        }
        for record in &news.records {
            if let (Outcome::Made { .. }, Cause::Success { job, .. }) =
                (&record.outcome, &record.cause)
            {
                consumer.made = Some(round);
                let times = consumer.causes.entry(*job).or_default();
                *times += 1;
                assert!(
                    *times <= 1 + resumptions,
                    "{} has {times} jobs because of {job}",
                    key.scan
                );
            }
        }
    }

    /// An expression reads the newest two successes of a scan. Successes that this check sees first may be later.
    fn check_read(&self, key: &ScanKey, scan: &str, read: &[JobId]) {
        let of = ScanKey {
            workflow: key.workflow,
            scan: scan.parse().unwrap(),
        };
        let Some(OfScan { successes, .. }) = self.scans.get(&of) else {
            return;
        };
        let new = successes.iter().rev();
        let is_new = |job: &&JobId| self.jobs[*job].ended == Some(self.round);
        let before = successes.len() - new.take_while(is_new).count();
        // The order of several new successes is unknown.
        let known: BTreeSet<_> = successes[before.saturating_sub(2)..].iter().collect();
        let is_fresh = match before {
            0 => true,
            _ if successes.len() == before => read.iter().eq(successes.iter().rev().take(2)),
            _ => !read.is_empty(),
        };
        assert!(
            is_fresh && read.iter().all(|job| known.contains(job)),
            "{} reads {read:?} of {scan}, which has {successes:?}",
            key.scan
        );
    }

    pub(super) fn check_successes_at_rest(&self, world: &World) {
        for (scan, of_scan) in &self.scans {
            let head = world.head(scan);
            let in_head = head.and_then(|head| head.successes.first());
            assert_eq!(
                in_head.map(|success| success.job),
                of_scan.successes.last().copied(),
                "the newest success of {}",
                scan.scan
            );
            let Some(newest) = in_head else {
                continue;
            };
            let ended = self.jobs[&newest.job].ended;
            for woken in woken_by(scan) {
                let Some(of_woken) = self.scans.get(&woken) else {
                    continue;
                };
                let Some(consumer) = &of_woken.consumer else {
                    continue;
                };
                if Some(consumer.since) >= ended {
                    continue;
                }
                let is_claimed = self.is_claimed_after(&woken, newest.order);
                let is_checked = consumer.checked >= ended;
                assert!(
                    is_claimed || is_checked,
                    "{} did not consider {} of {}",
                    woken.scan,
                    newest.job,
                    scan.scan
                );
                if consumer.is_true_after_success() && !of_woken.is_suspended {
                    assert!(
                        is_claimed || consumer.made >= ended,
                        "{} has made no job for {} of {}",
                        woken.scan,
                        newest.job,
                        scan.scan
                    );
                }
            }
        }
    }

    /// Whether a job of the scan was claimed after `order`.
    fn is_claimed_after(&self, scan: &ScanKey, order: Order) -> bool {
        let mut jobs = self.jobs.values().map(|known| &known.record);
        jobs.any(|job| {
            job.scan_key() == *scan && job.state.run().is_some_and(|run| run.claimed > order)
        })
    }
}
