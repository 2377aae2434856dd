//! Checks a scan's folder: the head, the records beside it, the history and the ledger.

use std::collections::BTreeMap;

use model::retention::Retention;
use model::{LedgerRecord, ScanHead, Tail};
use store::Key;
use store::look::Role;

use super::check::{Check, Checked, join};
use super::damaged_lines::DamagedLines;
use super::finding::Code;
use super::history;
use super::lines::each_line;
use crate::layout::Layout;
use crate::record::Typed;

/// The pages of a history or a ledger, by number.
pub(super) type Pages = BTreeMap<u64, Key>;

/// Checks the folder of a scan.
pub(super) fn check(check: &mut Check<'_>, folder: &str) {
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
    let mut retention = None;
    for key in &beside {
        if let Some(Typed::Retention(record)) = check.record(key).map(|checked| checked.typed) {
            retention = Some(record);
        }
    }
    let Some(key) = head else {
        if !(history.is_empty() && ledger.is_empty() && beside.is_empty()) {
            let path = join(folder, "head.json");
            check.find(Code::RecordMissing, path, "the scan has a past");
        }
        return;
    };
    let Some(Checked {
        typed: Typed::ScanHead(head),
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
    let retention = retention.unwrap_or_else(|| Retention::new(head.workflow, head.scan.clone()));
    history::check(check, &head, &retention, &history);
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

fn check_ledger(check: &mut Check<'_>, head: &ScanHead, pages: &Pages) {
    for (page, key) in pages {
        let mut damaged = DamagedLines::new(Code::LedgerLine, key);
        let end = end_of(*page, head.ledger);
        let read = each_line(check.look, key, end, |at, line| {
            if let Err(error) = serde_json::from_slice::<LedgerRecord>(line) {
                damaged.add(at, error);
            }
        });
        damaged.finish(check);
        check_end(check, key, read, *page, head.ledger, &LEDGER);
    }
    if head.ledger.bytes > 0 && !pages.contains_key(&head.ledger.page) {
        let key = Layout::ledger(&head.key(), head.ledger.page);
        check.find(Code::LedgerShort, key, "it is missing");
    }
}

/// The findings about the end of a page.
pub(super) struct PageCodes {
    pub(super) short: Code,
    pub(super) long: Code,
}

const LEDGER: PageCodes = PageCodes {
    short: Code::LedgerShort,
    long: Code::LedgerLong,
};

/// Where the lines of a page end that count.
pub(super) fn end_of(page: u64, tail: Tail) -> u64 {
    if page == tail.page {
        tail.bytes
    } else {
        u64::MAX
    }
}

/// Whether the page has all that its head says.
pub(super) fn check_end(
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
