//! The pages of a scan's history or ledger, line by line.

use std::collections::BTreeMap;

use model::TailEnd;
use model::retention::Position;
use serde::de::DeserializeOwned;
use store::Key;
use store::look::Role;

use super::check::{Check, join};
use super::damaged_lines::DamagedLines;
use super::finding::Code;
use super::lines::each_line;
use crate::layout::RecordPlace;

/// The pages of a history or a ledger, by number.
pub(super) type Pages = BTreeMap<u64, Key>;

pub(super) struct PageCodes {
    pub(super) line: Code,
    pub(super) short: Code,
    pub(super) long: Code,
}

pub(super) fn pages(check: &mut Check<'_>, folder: &str) -> Pages {
    let mut pages = Pages::new();
    for entry in check.entries(folder) {
        let page = match &entry.role {
            Role::File(key) => RecordPlace::parse(key).and_then(|place| place.word(key, "page")),
            _ => None,
        };
        match (entry.role, page) {
            (Role::File(key), Some(page)) => drop(pages.insert(page, key)),
            _ => check.unknown(&join(folder, &entry.name)),
        }
    }
    pages
}

/// Calls `visit` with every line. Reports unreadable lines, and pages that do not end where the head says. `newest` is
/// the key of the last page. Returns true if every page is readable to its end and the last page exists.
pub(super) fn each_record<L: DeserializeOwned>(
    check: &mut Check<'_>,
    pages: &Pages,
    tail: TailEnd,
    newest: Key,
    codes: &PageCodes,
    mut visit: impl FnMut(Position, L),
) -> bool {
    let mut is_whole = true;
    for (page, key) in pages {
        let page = *page;
        let mut damaged = DamagedLines::new(codes.line, key);
        let is_last = page == tail.page;
        let end = if is_last { tail.bytes } else { u64::MAX };
        let read = each_line(
            check.look,
            key,
            end,
            |at, line| match serde_json::from_slice(line) {
                Ok(line) => visit(Position { page, at }, line),
                Err(problem) => damaged.add(at, problem),
            },
        );
        is_whole &= damaged.is_empty();
        damaged.finish(check);
        let Some(read) = check.readable(key.as_str(), read) else {
            is_whole = false;
            continue;
        };
        if page > tail.page {
            let what = format!("according to the head, page {} is the last page", tail.page);
            check.find(codes.long, key, what);
        }
        if is_last {
            is_whole &= check_end(check, key, read.unwrap_or(0), tail.bytes, codes);
        }
    }
    if tail.bytes > 0 && !pages.contains_key(&tail.page) {
        check.find(codes.short, newest, "it is missing");
        is_whole = false;
    }
    is_whole
}

/// Whether the last page has all `bytes` that the head counts. `read` is the number of bytes found.
fn check_end(check: &mut Check<'_>, key: &Key, read: u64, bytes: u64, codes: &PageCodes) -> bool {
    let found = |found| format!("it has {found} bytes, but the head counts {bytes}");
    if read < bytes {
        check.find(codes.short, key, found(read));
        return false;
    }
    if let Ok(Some(length)) = check.look.length(key)
        && length > bytes
    {
        check.find(codes.long, key, found(length));
    }
    true
}
