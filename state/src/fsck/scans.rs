//! Checks a scan's folder: the head, the records next to it, the history and the ledger.

use std::collections::BTreeMap;

use model::retention::Retention;
use model::{LedgerRecord, ScanHead};
use store::look::Role;

use super::check::{Check, Checked, join};
use super::finding::Code;
use super::history;
use super::pages::{PageCodes, Pages, each_record, pages};
use crate::heads::PROCESSED_LOST;
use crate::layout::{Layout, RecordPlace};
use crate::record::Typed;

const LEDGER: PageCodes = PageCodes {
    line: Code::LedgerLine,
    short: Code::LedgerShort,
    long: Code::LedgerLong,
};

pub(super) fn check(check: &mut Check<'_>, folder: &str) {
    let (mut head, mut records) = (None, Vec::new());
    let (mut history, mut ledger) = (Pages::new(), Pages::new());
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match (entry.role, entry.name.as_str()) {
            (Role::File(key), _) => match RecordPlace::parse(&key) {
                Some(RecordPlace::Head) => head = Some(key),
                Some(RecordPlace::Digests | RecordPlace::Repeats | RecordPlace::Retention) => {
                    records.push(key);
                }
                // A scan can be suspended before its first job.
                Some(RecordPlace::ScanSuspension) => drop(check.record(&key)),
                Some(_) | None => check.unknown(&path),
            },
            (Role::Folder, "history") => history = pages(check, &path),
            (Role::Folder, "ledger") => ledger = pages(check, &path),
            _ => check.unknown(&path),
        }
    }
    let (mut retention, mut processed) = (None, BTreeMap::new());
    for key in &records {
        match check.record(key).map(|checked| checked.typed) {
            Some(Typed::Retention(record)) => retention = Some(record),
            Some(Typed::Digests(record)) => processed = record.processed,
            Some(_) | None => {}
        }
    }
    let Some(key) = head else {
        if !(history.is_empty() && ledger.is_empty() && records.is_empty()) {
            let path = RecordPlace::Head.path_in(folder);
            check.find(Code::RecordMissing, path, "missing, but the scan has files");
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
    let head = ScanHead { processed, ..head };
    if head.lacks_processed() {
        let key = Layout::digests(&head.key());
        check.find(Code::RecordMissing, key, PROCESSED_LOST);
    }
    let retention = retention.unwrap_or_else(|| Retention::new(head.workflow, head.scan.clone()));
    history::check(check, &head, &retention, &history);
    let last = Layout::ledger(&head.key(), head.ledger.page);
    each_record(
        check,
        &ledger,
        head.ledger,
        last,
        &LEDGER,
        |_, _: LedgerRecord| (),
    );
}
