//! What is remembered of the jobs that were removed from a scan, compared with what is there: with the lines of its
//! history, and in the end with the folders of jobs.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use model::retention::{FinishedJob, Position, Retention, Stock};
use model::{EndState, HistoryLine, JobId, ScanHead, ScanKey, Tail, Totals};
use store::DiskError;
use store::look::Look;

use super::check::Check;
use super::finding::Code;
use crate::envelope;
use crate::layout::Layout;

/// Where jobs are that were put aside.
const QUARANTINE: &str = "quarantine/jobs";

/// What is remembered of removed jobs.
pub(super) enum Removed {
    /// No job was removed.
    Nothing,
    Known(Retention),
    /// There is a record, and it says nothing that can be read.
    Unreadable,
}

/// What the lines of a history say of the jobs that were not removed.
pub(super) struct Kept<'a> {
    removed: &'a Removed,
    /// Jobs whose lines stand behind the place up to which the history was read.
    ahead: Totals,
    /// Jobs that had to stay, and whose lines were not met before that place so far.
    passed: HashMap<JobId, &'a FinishedJob>,
    /// Jobs that had to stay, and of which their lines say something else.
    differ: Vec<JobId>,
    is_between_lines: bool,
}

impl<'a> Kept<'a> {
    pub(super) fn new(removed: &'a Removed) -> Self {
        let passed = match removed {
            Removed::Known(retention) => retention.passed_over.as_slice(),
            Removed::Nothing | Removed::Unreadable => &[],
        };
        Self {
            removed,
            ahead: Totals::NONE,
            passed: passed.iter().map(|job| (job.id, job)).collect(),
            differ: Vec::new(),
            is_between_lines: false,
        }
    }

    fn from(&self) -> Position {
        match self.removed {
            Removed::Known(retention) => retention.from,
            Removed::Nothing | Removed::Unreadable => Position::default(),
        }
    }

    /// The pages that are closed and may have a job in them.
    pub(super) fn pages(&self, end: Tail) -> impl Iterator<Item = u64> + use<> {
        let passed: Vec<u64> = self.passed.values().map(|job| job.page).collect();
        let ahead: Range<u64> = self.from().page..end.page;
        ahead.chain(passed.into_iter().filter(move |page| *page < end.page))
    }

    /// Takes a line of the history, with its place and its length.
    pub(super) fn take(&mut self, at: Position, length: u64, line: &HistoryLine) {
        let end = Position {
            at: at.at + length,
            ..at
        };
        let from = self.from();
        self.is_between_lines |= from == at || from == end;
        if at >= from {
            self.ahead.count(line.state, line.bytes);
        } else if let Some(passed) = self.passed.remove(&line.id) {
            // Artifacts may have been removed since.
            let is_same = passed.state == line.state
                && passed.finished_at == line.finished_at
                && passed.page == at.page
                && passed.bytes <= line.bytes;
            if !is_same {
                self.differ.push(line.id);
            }
        }
    }

    /// Compares what is remembered with all lines there are and with the head. What fits is compared with the folders
    /// of jobs later.
    pub(super) fn finish(self, check: &mut Check<'_>, head: &ScanHead) {
        let scan = head.key();
        let problem = match self.removed {
            Removed::Unreadable => return,
            Removed::Nothing => None,
            Removed::Known(retention) => {
                let misfit = self.misfit(retention, head.history);
                let misfit = misfit.map(|what| (Code::RetentionDiffers, what));
                misfit.or_else(|| Some((Code::RetentionTotals, self.miscount(retention, head)?)))
            }
        };
        match problem {
            Some((code, what)) => check.find(code, Layout::retention(&scan), what),
            None => {
                let kept = match self.removed {
                    Removed::Known(retention) => stock(head, Some(retention)),
                    Removed::Nothing | Removed::Unreadable => stock(head, None),
                };
                check.facts.counted.push((scan, kept));
            }
        }
    }

    /// Why the record is not one of this history.
    fn misfit(&self, retention: &Retention, end: Tail) -> Option<String> {
        let from = retention.from;
        let end = Position {
            page: end.page,
            at: end.bytes,
        };
        if from > end {
            return Some(format!(
                "it has read byte {} of page {}, and the history ends at byte {} of page {}",
                from.at, from.page, end.at, end.page
            ));
        }
        if from.at > 0 && !self.is_between_lines {
            let Position { page, at } = from;
            return Some(format!(
                "it has read page {page} up to byte {at}, where no line ends"
            ));
        }
        if let Some(unmet) = self.passed.keys().min() {
            return Some(format!(
                "it says that job {unmet} had to stay, and no line before that place names it"
            ));
        }
        let differs = self.differ.first()?;
        Some(format!(
            "what it says of job {differs} is not what the history says"
        ))
    }

    /// Why the counters of the record do not add up. What ended is what was removed, and what is there: the jobs behind
    /// the place up to which the history was read, but for those that people deleted, and those that had to stay.
    fn miscount(&self, retention: &Retention, head: &ScanHead) -> Option<String> {
        let mut lines = self.ahead;
        for passed in &retention.passed_over {
            lines.count(passed.state, passed.bytes);
        }
        for state in EndState::ALL {
            let (ended, removed) = (head.totals.of(state), retention.removed.of(state));
            let Some(kept) = ended.checked_sub(removed) else {
                return Some(format!(
                    "it counts {removed} {state} jobs, and {ended} have ended so"
                ));
            };
            let Some(deleted) = lines.of(state).checked_sub(kept) else {
                let there = lines.of(state);
                return Some(format!(
                    "by it {kept} {state} jobs are left, and the history has {there}"
                ));
            };
            let said = retention.gone_ahead.get(&state).copied().unwrap_or(0);
            if deleted != said {
                return Some(format!(
                    "by it {deleted} {state} jobs were deleted ahead of it, and it says {said}"
                ));
            }
        }
        let (all, removed) = (head.totals.bytes, retention.removed.bytes);
        let is_possible = all
            .checked_sub(removed)
            .is_some_and(|kept| kept <= lines.bytes);
        (!is_possible).then(|| {
            let there = lines.bytes;
            format!("it counts {removed} bytes of {all}, and the history has {there}")
        })
    }
}

/// What there is of a scan's finished jobs by its counters.
fn stock(head: &ScanHead, retention: Option<&Retention>) -> Stock {
    let kept = match retention {
        Some(retention) => head.totals.without(&retention.removed),
        None => head.totals,
    };
    Stock {
        jobs: kept.jobs(),
        bytes: kept.bytes,
    }
}

/// Compares the counters of all scans with the folders of jobs. A scan whose counters have changed since they were
/// looked at is left out: so may its folders have. And so is one of which a job was put aside, where it is known to be.
pub(super) fn check(check: &mut Check<'_>) {
    let known = check.known;
    let Some(aside) = check.readable(QUARANTINE, set_aside(check.look)) else {
        return;
    };
    let aside = aside.into_iter().filter_map(|job| known.ended.get(job));
    let aside: BTreeSet<&ScanKey> = aside.map(|line| line.scan.as_ref()).collect();
    for (scan, counted) in &known.counted {
        let there = known.there.get(scan).copied().unwrap_or_default();
        if there == *counted || known.doubtful.contains(scan) || aside.contains(scan) {
            continue;
        }
        if stock_now(check.look, scan) == Some(*counted) {
            let what = format!(
                "it counts {} finished jobs with {} bytes that are left, and there are {} with {}",
                counted.jobs, counted.bytes, there.jobs, there.bytes
            );
            check.find(Code::KeptDiffers, Layout::head(scan), what);
        }
    }
}

/// The jobs of which something is in quarantine: below the folders of a day, an hour and a shard.
fn set_aside(look: &Look) -> Result<Vec<JobId>, DiskError> {
    let mut folders = vec![QUARANTINE.to_owned()];
    for _ in ["day", "hour", "shard", "job"] {
        let mut inside = Vec::new();
        for folder in folders {
            let files = look.files(&folder)?.into_iter();
            inside.extend(files.map(|(name, _)| format!("{folder}/{name}")));
        }
        folders = inside;
    }
    let names = folders.iter().filter_map(|path| path.rsplit('/').next());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

fn stock_now(look: &Look, scan: &ScanKey) -> Option<Stock> {
    let head = look.get(&Layout::head(scan)).ok()??;
    let head: ScanHead = envelope::open(&head).ok()?;
    let retention = look.get(&Layout::retention(scan)).ok()?;
    let retention = match retention {
        Some(bytes) => Some(envelope::open::<Retention>(&bytes).ok()?),
        None => None,
    };
    Some(stock(&head, retention.as_ref()))
}
