//! The newest finished jobs of a scan, for expressions that read jobs.

use std::collections::{BTreeMap, BTreeSet};

use workflow::limits::{HISTORY_JOBS, HISTORY_SUCCESSES};

use crate::history::HistoryLine;
use crate::{EndState, JobId};

/// The finished jobs of a scan that expressions can read: the newest jobs without skipped jobs, the newest successes,
/// and the successes that ended last. They are read from the history when first needed, and then kept up to date.
#[derive(Debug, Clone, Default)]
pub struct Recent {
    lines: BTreeMap<JobId, HistoryLine>,
}

impl Recent {
    /// Adds a finished job. Jobs that are too old are dropped.
    pub fn add(&mut self, line: HistoryLine) {
        if line.state == EndState::Skipped {
            return;
        }
        self.lines.insert(line.id, line);
        if self.lines.len() <= HISTORY_JOBS + 2 * HISTORY_SUCCESSES {
            return;
        }
        let is_success = |line: &&HistoryLine| line.state == EndState::Succeeded;
        let successes = || self.lines.values().rev().filter(is_success);
        // `last_success()` is the success that ended last, even if it ran for long.
        let mut by_end: Vec<_> = successes()
            .map(|line| (line.finished_at, line.id))
            .collect();
        by_end.sort_unstable();
        let kept: BTreeSet<JobId> = (self.lines.keys().rev().copied().take(HISTORY_JOBS))
            .chain(successes().map(|line| line.id).take(HISTORY_SUCCESSES))
            .chain(
                by_end
                    .iter()
                    .rev()
                    .map(|(_, id)| *id)
                    .take(HISTORY_SUCCESSES),
            )
            .collect();
        self.lines.retain(|id, _| kept.contains(id));
    }

    /// Removes a deleted job. False if expressions can now read an older job that is not in memory.
    pub(crate) fn remove(&mut self, job: JobId) -> bool {
        let was_whole = self.lines.len() < HISTORY_JOBS;
        self.lines.remove(&job).is_none() || was_whole
    }

    /// The jobs, newest first.
    pub fn lines(&self) -> impl Iterator<Item = &HistoryLine> {
        self.lines.values().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::line;

    #[test]
    fn the_newest_jobs_and_successes_are_kept_without_skipped_jobs() {
        let mut recent = Recent::default();
        recent.add(line(1, EndState::Succeeded));
        recent.add(line(2, EndState::Succeeded));
        recent.add(line(3, EndState::Succeeded));
        for number in 4..300 {
            recent.add(line(
                number,
                if number % 2 == 0 {
                    EndState::Failed
                } else {
                    EndState::Skipped
                },
            ));
        }
        let kept: Vec<&HistoryLine> = recent.lines().collect();
        let failed = kept
            .iter()
            .filter(|line| line.state == EndState::Failed)
            .count();
        assert!((HISTORY_JOBS..=HISTORY_JOBS + 2 * HISTORY_SUCCESSES).contains(&failed));
        assert_eq!(kept[0].id, line(298, EndState::Failed).id);
        let successes: Vec<JobId> = kept
            .iter()
            .filter(|line| line.state == EndState::Succeeded)
            .map(|line| line.id)
            .collect();
        assert_eq!(
            successes,
            [
                line(3, EndState::Succeeded).id,
                line(2, EndState::Succeeded).id
            ]
        );
    }

    #[test]
    fn the_success_that_ended_last_is_kept_even_if_it_began_early() {
        let mut recent = Recent::default();
        for number in 2..300 {
            recent.add(line(number, EndState::Succeeded));
        }
        let long = HistoryLine {
            finished_at: crate::Timestamp::MAX_UTC,
            ..line(1, EndState::Succeeded)
        };
        recent.add(long.clone());
        for number in 300..600 {
            recent.add(line(number, EndState::Failed));
        }
        assert_eq!(recent.lines().last().map(|line| line.id), Some(long.id));
    }
}
