//! Checks every line of a scan's history, and compares the history with its head.

use std::sync::Arc;

use model::retention::Retention;
use model::{EndState, HistoryLine, JobId, ScanHead, Totals};

use super::check::Check;
use super::facts::EndedJob;
use super::finding::Code;
use super::pages::{PageCodes, Pages, each_record};
use crate::layout::Layout;

const HISTORY: PageCodes = PageCodes {
    line: Code::HistoryLine,
    short: Code::HistoryShort,
    long: Code::HistoryLong,
};

pub(super) fn check(check: &mut Check<'_>, head: &ScanHead, retention: &Retention, pages: &Pages) {
    let scan = Arc::new(head.key());
    let mut counted = Totals::default();
    let mut newest = None;
    let mut successes = Vec::new();
    let mut ended = Vec::new();
    let visit = |position, line: HistoryLine| {
        counted.count(line.state, line.bytes);
        newest = newest.max(Some(line.id));
        if line.state == EndState::Succeeded {
            successes.push(line.id);
            // Only the newest two are compared.
            if successes.len() > 2 {
                successes.remove(0);
            }
        }
        // Readers skip lines of jobs that were removed.
        if retention.may_hold(line.id, position) {
            ended.push(EndedJob {
                job: line.id,
                scan: scan.clone(),
                state: line.state,
                at: line.finished_at,
            });
        }
    };
    let last = Layout::history(&scan, head.history.page);
    let is_read = each_record(check, pages, head.history, last, &HISTORY, visit);
    check.facts.learned.ended.append(&mut ended);
    // The history is whole if every page that may hold a job exists and is readable.
    let is_whole = is_read
        && (0..head.history.page)
            .all(|page| retention.is_done_with(page) || pages.contains_key(&page));
    if !is_whole {
        check.facts.learned.cut.insert(head.key());
    }
    let has_all = is_whole && (0..head.history.page).all(|page| pages.contains_key(&page));
    let fits = check_totals(check, head, &counted, has_all);
    let key = Layout::head(&head.key());
    if let Some(newest) = newest.filter(|newest| *newest > head.latest_job) {
        let what = format!(
            "job {newest} has ended, but the newest job that the head knows is {}",
            head.latest_job
        );
        check.find(Code::HeadBehind, &key, what);
    }
    successes.reverse();
    let known: Vec<_> = head.successes.iter().map(|success| success.job).collect();
    // A deleted success may have no line, because its page may have been removed.
    let are_known = if head.renamed_from.is_some() {
        // After a rename, earlier successes are in the history of the old name.
        let own: Vec<_> = known.iter().filter(|job| successes.contains(job)).collect();
        successes.iter().take(own.len()).eq(own)
    } else if has_all {
        known == successes
    } else {
        known.starts_with(&successes)
    };
    if is_whole && !are_known {
        let what = format!(
            "its newest successes are {}, but its history has {}",
            list(&known),
            list(&successes)
        );
        check.find(Code::HeadSuccesses, &key, what);
    }
    if fits {
        let left = head.totals.without(&retention.removed);
        check.facts.learned.counted.insert(head.key(), left);
    }
}

/// A head counts all jobs of its scan. The history may have fewer lines, because pages were removed, but never more.
/// Returns whether the counts match.
fn check_totals(check: &mut Check<'_>, head: &ScanHead, counted: &Totals, has_all: bool) -> bool {
    let known = &head.totals;
    let jobs = EndState::ALL.map(|state| {
        let what = format!("{state} jobs");
        (what, known.of(state), counted.of(state))
    });
    let bytes = ("bytes of its jobs".to_owned(), known.bytes, counted.bytes);
    let mut fits = true;
    for (what, known, counted) in jobs.into_iter().chain([bytes]) {
        if counted > known || (has_all && counted < known) {
            let what = format!("it counts {known} {what}, but its history has {counted}");
            check.find(Code::HeadTotals, Layout::head(&head.key()), what);
            fits = false;
        }
    }
    fits
}

fn list(jobs: &[JobId]) -> String {
    if jobs.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<_> = jobs.iter().map(ToString::to_string).collect();
    names.join(", ")
}
