//! A workflow's folder: its record, its revisions with their texts, and its scans with heads, histories and ledgers.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{JobState, LedgerRecord, RevisionRecord, ScanHead, Tail, Totals, WorkflowRecord};
use serde::Deserialize;
use store::Key;
use store::look::Role;
use workflow::{TemplatePolicy, sha256};

use super::check::{Check, Checked, join};
use super::ended::{EndState, EndedJob};
use super::finding::Code;
use super::lines::each_line;
use super::told::Told;
use crate::layout::Layout;
use crate::typed::Typed;

/// Checks the folder of a workflow.
pub(crate) fn check(check: &mut Check<'_>, folder: &str) {
    let mut record = None;
    let mut scans = Vec::new();
    let mut revisions = Vec::new();
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match (entry.role, entry.name.as_str()) {
            (Role::File(key), "workflow.json") => record = Some(key),
            (Role::Folder, "revisions") => revisions = folders(check, &path),
            (Role::Folder, "scans") => scans = folders(check, &path),
            _ => check.unknown(&path),
        }
    }
    let mut newest = 0;
    for folder in &revisions {
        newest = newest.max(check_revision(check, folder).unwrap_or(0));
    }
    let record = match record {
        Some(key) => match check.record(&key).map(|checked| checked.typed) {
            Some(Typed::Workflow(workflow)) => Some(workflow),
            Some(_) | None => None,
        },
        None => {
            if !revisions.is_empty() {
                let path = join(folder, "workflow.json");
                check.find(Code::RecordMissing, path, "the workflow has revisions");
            }
            None
        }
    };
    if let Some(workflow) = &record {
        check_newest(check, workflow, newest);
    }
    for folder in &scans {
        check_scan(check, folder);
    }
}

/// The folders in a folder that holds nothing else.
fn folders(check: &mut Check<'_>, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match entry.role {
            Role::Folder => found.push(path),
            _ => check.unknown(&path),
        }
    }
    found
}

/// A workflow's newest revision must be there.
fn check_newest(check: &mut Check<'_>, workflow: &WorkflowRecord, newest: u64) {
    if !check.facts.revisions.contains(&workflow.revision.id) {
        let what = format!(
            "it is the newest revision of `{}`, and not readable",
            workflow.name
        );
        let key = Layout::revision(workflow.id, &workflow.revision);
        check.find(Code::RecordMissing, key, what);
    }
    if newest > workflow.revision.number {
        let what = format!(
            "revision {} is the newest it knows, and there is a revision {newest}",
            workflow.revision.number
        );
        check.find(Code::RecordAhead, Layout::workflow(workflow.id), what);
    }
}

/// Checks a revision, and answers its number.
fn check_revision(check: &mut Check<'_>, folder: &str) -> Option<u64> {
    let (mut record, mut text) = (None, None);
    for entry in check.entries(folder) {
        match (entry.role, entry.name.as_str()) {
            (Role::File(key), "revision.json") => record = Some(key),
            (Role::File(key), "workflow.yaml") => text = Some(key),
            (_, name) => check.unknown(&join(folder, name)),
        }
    }
    let Some(key) = record else {
        let path = join(folder, "revision.json");
        check.find(Code::RecordMissing, path, "the revision has a folder");
        return None;
    };
    let Some(Typed::Revision(revision)) = check.record(&key).map(|checked| checked.typed) else {
        return None;
    };
    check.facts.revisions.push(revision.reference.id);
    check_text(check, &revision, text);
    Some(revision.reference.number)
}

fn check_text(check: &mut Check<'_>, revision: &RevisionRecord, text: Option<Key>) {
    let key = Layout::revision_text(revision.workflow.id, &revision.reference);
    let Some(bytes) = text.and_then(|key| check.content(&key)) else {
        check.find(Code::RevisionText, key, "it is missing");
        return;
    };
    let found = sha256(&bytes);
    if found != revision.text.sha256 {
        check.find(Code::RevisionText, key, format!("its SHA-256 is {found}"));
        return;
    }
    let is_valid = std::str::from_utf8(&bytes)
        .is_ok_and(|text| workflow::parse(&revision.file, text, TemplatePolicy::Warn).is_ok());
    if !is_valid {
        check.find(Code::RevisionText, key, "it is no valid workflow any more");
    }
}

/// The pages of a history or a ledger, by number.
type Pages = BTreeMap<u64, Key>;

fn check_scan(check: &mut Check<'_>, folder: &str) {
    let (mut head, mut beside) = (None, Vec::new());
    let (mut history, mut ledger) = (Pages::new(), Pages::new());
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match (entry.role, entry.name.as_str()) {
            (Role::File(key), "head.json") => head = Some(key),
            (Role::File(key), "digests.json" | "repeats.json" | "retention.json") => {
                beside.push(key)
            }
            (Role::Folder, "history") => history = pages(check, &path),
            (Role::Folder, "ledger") => ledger = pages(check, &path),
            _ => check.unknown(&path),
        }
    }
    for key in &beside {
        check.record(key);
    }
    let Some(key) = head else {
        if !(history.is_empty() && ledger.is_empty() && beside.is_empty()) {
            let path = join(folder, "head.json");
            check.find(Code::RecordMissing, path, "the scan has a past");
        }
        return;
    };
    let Some(Checked {
        typed: Typed::Head(head),
        ..
    }) = check.record(&key)
    else {
        return;
    };
    if let Some(cursor) = head.cron_cursor.filter(|cursor| *cursor > check.now) {
        check.find(
            Code::ClockAhead,
            &key,
            format!("its schedule was looked at up to {cursor}"),
        );
    }
    check_history(check, &head, &history);
    check_ledger(check, &head, &ledger);
}

fn pages(check: &mut Check<'_>, folder: &str) -> Pages {
    let mut pages = Pages::new();
    for entry in check.entries(folder) {
        let number = entry
            .name
            .strip_suffix(".jsonl")
            .and_then(|number| number.parse().ok());
        match (entry.role, number) {
            (Role::File(key), Some(number)) if entry.name == format!("{number}.jsonl") => {
                pages.insert(number, key);
            }
            _ => check.unknown(&join(folder, &entry.name)),
        }
    }
    pages
}

/// What a check needs of a line of a history.
#[derive(Deserialize)]
pub(crate) struct HistoryLine {
    pub(crate) id: model::JobId,
    pub(crate) state: String,
    finished_at: model::Timestamp,
    #[serde(default)]
    pub(crate) bytes: u64,
}

fn check_history(check: &mut Check<'_>, head: &ScanHead, pages: &Pages) {
    let scan = Arc::new(head.key());
    let mut totals = Totals::default();
    let mut newest = None;
    let mut successes = Vec::new();
    let mut ended = Vec::new();
    // Every page from the first on must be there and readable, or the lines are not all there are.
    let mut is_whole = (0..head.history.page).all(|page| pages.contains_key(&page));
    for (page, key) in pages {
        let mut told = Told::new(Code::HistoryLine, key);
        let end = end_of(*page, head.history);
        let read = each_line(check.look, key, end, |at, line| {
            let read = serde_json::from_slice::<HistoryLine>(line)
                .map_err(|error| error.to_string())
                .and_then(|line| {
                    let state = EndState::named(&line.state)
                        .ok_or_else(|| format!("`{}` is no end of a job", line.state))?;
                    Ok((line, state))
                });
            match read {
                Ok((line, state)) => {
                    totals.count(&line.state, line.bytes);
                    newest = newest.max(Some(line.id));
                    if line.state == JobState::SUCCEEDED {
                        successes.push(line.id);
                    }
                    let at = line.finished_at;
                    ended.push(EndedJob {
                        job: line.id,
                        scan: scan.clone(),
                        state,
                        at,
                    });
                }
                Err(problem) => told.add(at, problem),
            }
        });
        is_whole &= told.is_empty();
        told.finish(check);
        is_whole &= check_end(check, key, read, *page, head.history, &HISTORY);
        // Only the newest two are compared.
        let surplus = successes.len().saturating_sub(2);
        successes.drain(..surplus);
    }
    check.facts.ended.append(&mut ended);
    is_whole &= head.history.bytes == 0 || pages.contains_key(&head.history.page);
    if head.history.bytes > 0 && !pages.contains_key(&head.history.page) {
        let key = Layout::history(&head.key(), head.history.page);
        check.find(Code::HistoryShort, key, "it is missing");
    }
    if !is_whole {
        check.facts.cut.push(head.key());
    }
    check_totals(check, head, &totals, is_whole);
    let key = Layout::head(&head.key());
    if let Some(newest) = newest.filter(|newest| *newest > head.latest_job) {
        let what = format!(
            "job {newest} has ended, and {} is the newest it knows",
            head.latest_job
        );
        check.find(Code::HeadBehind, &key, what);
    }
    successes.reverse();
    let known: Vec<_> = head.successes.iter().map(|success| success.job).collect();
    if is_whole && successes != known {
        let what = format!(
            "its newest successes are {}, and those of its history {}",
            list(&known),
            list(&successes)
        );
        check.find(Code::HeadSuccesses, &key, what);
    }
}

/// A head counts for the life of its scan, so lines may be fewer where pages are gone, and never more.
fn check_totals(check: &mut Check<'_>, head: &ScanHead, counted: &Totals, is_whole: bool) {
    let known = &head.totals;
    let pairs = [
        ("succeeded", known.succeeded, counted.succeeded),
        ("failed", known.failed, counted.failed),
        ("cancelled", known.cancelled, counted.cancelled),
        ("skipped", known.skipped, counted.skipped),
    ];
    for (name, known, counted) in pairs {
        if counted > known || (is_whole && counted < known) {
            let what = format!("it counts {known} jobs that {name}, and its history has {counted}");
            check.find(Code::HeadTotals, Layout::head(&head.key()), what);
        }
    }
}

fn check_ledger(check: &mut Check<'_>, head: &ScanHead, pages: &Pages) {
    for (page, key) in pages {
        let mut told = Told::new(Code::LedgerLine, key);
        let end = end_of(*page, head.ledger);
        let read = each_line(check.look, key, end, |at, line| {
            if let Err(error) = serde_json::from_slice::<LedgerRecord>(line) {
                told.add(at, error);
            }
        });
        told.finish(check);
        check_end(check, key, read, *page, head.ledger, &LEDGER);
    }
    if head.ledger.bytes > 0 && !pages.contains_key(&head.ledger.page) {
        let key = Layout::ledger(&head.key(), head.ledger.page);
        check.find(Code::LedgerShort, key, "it is missing");
    }
}

/// The findings about the end of a page.
struct PageCodes {
    short: Code,
    long: Code,
}

const HISTORY: PageCodes = PageCodes {
    short: Code::HistoryShort,
    long: Code::HistoryLong,
};

const LEDGER: PageCodes = PageCodes {
    short: Code::LedgerShort,
    long: Code::LedgerLong,
};

/// Where the lines of a page end that count.
fn end_of(page: u64, tail: Tail) -> u64 {
    if page == tail.page {
        tail.bytes
    } else {
        u64::MAX
    }
}

/// Whether the page has all that its head says.
fn check_end(
    check: &mut Check<'_>,
    key: &Key,
    read: Result<Option<u64>, store::DiskError>,
    page: u64,
    tail: Tail,
    codes: &PageCodes,
) -> bool {
    let Some(read) = check.readable(key.as_str(), read) else {
        return false;
    };
    if page > tail.page {
        check.find(
            codes.long,
            key,
            format!("its head says that page {} is the last", tail.page),
        );
        return true;
    }
    if page < tail.page {
        return true;
    }
    let read = read.unwrap_or(0);
    if read < tail.bytes {
        let what = format!("it has {read} bytes, and its head says {}", tail.bytes);
        check.find(codes.short, key, what);
        return false;
    }
    let length = check.look.length(key);
    if let Ok(Some(length)) = length
        && length > tail.bytes
    {
        let what = format!("it has {length} bytes, and its head says {}", tail.bytes);
        check.find(codes.long, key, what);
    }
    true
}

fn list(jobs: &[model::JobId]) -> String {
    if jobs.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<_> = jobs.iter().map(ToString::to_string).collect();
    names.join(", ")
}
