//! Checks that a scan has processed exactly the result that its newest successful job (the one claimed last) read, and
//! that no result is lost.

use std::collections::BTreeMap;

use model::{JobState, Processed, Run, ScanHead, ScanKey, World};

use super::{Known, Oracle, is_success};
use crate::tests::simulation::scenario::reader_and_read;

impl Oracle {
    /// The jobs of a scan.
    fn jobs_of<'a>(&'a self, scan: &'a ScanKey) -> impl Iterator<Item = &'a Known> {
        let is_of = |known: &&Known| {
            (known.record.workflow.id, &known.record.scan) == (scan.workflow, &scan.scan)
        };
        self.jobs.values().filter(is_of)
    }

    /// The success that the reader has processed, according to its jobs.
    fn processed(&self) -> Option<Processed> {
        let (reader, read) = reader_and_read();
        let successes = self
            .jobs_of(&reader)
            .filter(|known| is_success(&known.record));
        let processed = successes.filter_map(|known| {
            let run: &Run = known.record.state.run()?;
            let history = run.context.scans.get(read.scan.as_str())?;
            assert!(history.news.is_some(), "{history:?}");
            let (job, digests) = history
                .newest_success_ids
                .first()
                .zip(history.newest_successes.first())?;
            Some(Processed {
                success: job.parse().unwrap(),
                claimed: run.claimed,
                digests: digests.clone(),
            })
        });
        processed.max_by_key(|processed| processed.claimed)
    }

    /// The head of a scan names the successful job that the scan has processed, even after a crash.
    pub(super) fn check_processed(&self, head: &ScanHead) {
        let (reader, read) = reader_and_read();
        let expected = (head.key() == reader)
            .then(|| self.processed())
            .flatten()
            .map(|processed| (read.scan, processed));
        let expected: BTreeMap<_, _> = expected.into_iter().collect();
        assert_eq!(
            head.processed, expected,
            "the processed success of {}",
            head.scan
        );
    }

    /// The newest success is processed, unless the job that should process it has failed or was cancelled.
    pub(super) fn check_news_at_rest(&self, world: &World) {
        let (reader, read) = reader_and_read();
        let of_reader = self.scans.get(&reader);
        let waiting_reader = of_reader.filter(|it| it.consumer.is_some() && !it.is_suspended);
        let newest = world.head(&read).and_then(|head| head.successes.first());
        let (Some(_), Some(newest)) = (waiting_reader, newest) else {
            return;
        };
        let processed = self.processed();
        let processed = processed.and_then(|it| it.digests.get("out").cloned());
        let digest = newest.digests.get("out").cloned();
        if digest.is_none() || digest == processed {
            return;
        }
        let gave_up = self.jobs_of(&reader).any(|known| {
            let state = &known.record.state;
            let is_later = state.run().is_none_or(|run| run.claimed > newest.order);
            let has_failed = matches!(state, JobState::Failed { .. } | JobState::Cancelled { .. });
            is_later && has_failed && known.ended >= self.jobs[&newest.job].ended
        });
        assert!(
            gave_up,
            "{} is lost: {digest:?} is news, and {processed:?} was processed",
            newest.job
        );
    }
}
