//! The audit log: one line for each change that somebody made with a credential of a person, in the commit of the
//! change. So there is no such change without its line, and no line without its change.
//!
//! A file has the lines of one day. Old days are removed with the first line of a new one.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use chrono::{Days, NaiveDate};
use model::decide::{Command, Decision, Refusal, Urgency};
use model::{Moment, SessionId, Timestamp, TokenId, World};
use serde::{Deserialize, Serialize};
use store::{Append, Batch, Key, Piece};
use uuid::Uuid;

use crate::error::{ReadError, SubmitError};
use crate::layout::{Folders, Layout};
use crate::limits::{AUDIT_DAYS, AUDIT_PIECES, READ_BYTES};
use crate::reader::StoreReader;
use crate::state::State;

/// Who asked for a change, how and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub token: TokenId,
    /// The name of the token at that time.
    pub name: String,
    /// The session of a browser, if it was made with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub address: IpAddr,
    /// What was asked: the method and the path of the request.
    pub method: String,
    pub path: String,
    /// The request's id in the daemon's log.
    pub request: Uuid,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// The request for which a change is made. Its first commit has its line.
#[derive(Debug)]
pub(crate) struct Audited {
    entry: AuditEntry,
    is_noted: AtomicBool,
}

impl Audited {
    /// The entry, the first time.
    fn take(&self) -> Option<&AuditEntry> {
        (!self.is_noted.swap(true, Ordering::Relaxed)).then_some(&self.entry)
    }
}

/// A request that changes nothing by itself.
#[derive(Debug, Clone)]
struct NoChange;

impl Command for NoChange {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision {
            changes: Vec::new(),
            answer: (),
        })
    }
}

impl State {
    /// The same state for one request of a person: the first of its commits has the request's line in the audit log.
    #[must_use]
    pub fn audited(&self, entry: AuditEntry) -> Self {
        self.serving(Arc::new(Audited {
            entry,
            is_noted: AtomicBool::new(false),
        }))
    }

    /// Notes the request in the audit log, though no commit is made for it: it only causes something, or its change is not
    /// in records.
    pub async fn note_request(&self) -> Result<(), SubmitError> {
        self.submit(NoChange).await
    }

    /// Lines of the audit log, newest first, from a place on.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        from: Option<AuditPlace>,
        limit: usize,
    ) -> Result<AuditPage, ReadError> {
        page(self.reader(), filter, from, limit).await
    }
}

/// Where the audit log ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuditTail {
    /// The days that have a file.
    days: BTreeSet<NaiveDate>,
    /// The length of the last day's file.
    bytes: u64,
}

impl AuditTail {
    /// Finds the end of the log.
    pub(crate) async fn read(reader: &StoreReader) -> Result<Self, ReadError> {
        let days = days(reader).await?;
        let last = days.last().map(|day| Layout::audit(*day));
        let bytes = match last {
            None => 0,
            Some(key) => {
                let end = reader.piece(&key, u64::MAX, 1).await?;
                end.map_or(0, |Piece { at, bytes }| at + bytes.len() as u64)
            }
        };
        Ok(Self { days, bytes })
    }

    /// Adds the line of a request to the batch with its change, unless an earlier batch has it. Returns where the log ends
    /// then.
    pub(crate) fn note(
        &self,
        now: Timestamp,
        audited: &Audited,
        batch: &mut Batch,
    ) -> Option<Self> {
        let entry = audited.take()?.clone();
        let record = AuditRecord { at: now, entry };
        let mut line = match serde_json::to_vec(&record) {
            Ok(line) => line,
            Err(error) => {
                tracing::error!(%error, "a line of the audit log cannot be written as JSON");
                return None;
            }
        };
        line.push(b'\n');
        // A clock that was set back does not reopen an earlier day.
        let last = self.days.last().copied();
        let day = last.map_or(now.date_naive(), |last| last.max(now.date_naive()));
        let mut days = self.days.clone();
        let at = if last == Some(day) { self.bytes } else { 0 };
        if days.insert(day)
            && let Some(oldest) = day.checked_sub_days(Days::new(AUDIT_DAYS))
        {
            let kept = days.split_off(&oldest);
            batch.deletes.extend(days.into_iter().map(Layout::audit));
            days = kept;
        }
        let bytes = at + line.len() as u64;
        batch.appends.push(Append {
            ledger: Layout::audit(day),
            at,
            bytes: line.into(),
        });
        Some(Self { days, bytes })
    }
}

/// Where a page of the audit log begins: before this byte of the day's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPlace {
    pub day: NaiveDate,
    pub before: u64,
}

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Of the token with this id or name.
    pub token: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl AuditFilter {
    fn takes(&self, record: &AuditRecord) -> bool {
        let is_of = |token: &String| {
            record.entry.name == *token || record.entry.token.to_string() == *token
        };
        self.token.as_ref().is_none_or(is_of)
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at <= until)
    }
}

/// Lines of the audit log, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub records: Vec<AuditRecord>,
    /// Where the next page begins; absent at the end of the log.
    pub next: Option<AuditPlace>,
}

/// Reads the newest lines before a place.
async fn page(
    reader: &StoreReader,
    filter: &AuditFilter,
    from: Option<AuditPlace>,
    limit: usize,
) -> Result<AuditPage, ReadError> {
    let mut page = AuditPage::default();
    let mut pieces = 0;
    for day in days(reader).await?.into_iter().rev() {
        let mut before = match from {
            Some(from) if day > from.day => continue,
            Some(from) if day == from.day => from.before,
            _ => u64::MAX,
        };
        if filter.until.is_some_and(|until| day > until.date_naive()) {
            continue;
        }
        if filter.since.is_some_and(|since| day < since.date_naive()) {
            return Ok(page);
        }
        let key = Layout::audit(day);
        while before > 0 {
            if pieces == AUDIT_PIECES {
                page.next = Some(AuditPlace { day, before });
                return Ok(page);
            }
            pieces += 1;
            let Some((at, lines)) = lines_before(reader, &key, before).await? else {
                break;
            };
            before = at;
            for (at, line) in lines.into_iter().rev() {
                // A line that somebody has damaged is left out.
                let Ok(record) = serde_json::from_slice::<AuditRecord>(&line) else {
                    continue;
                };
                if !filter.takes(&record) {
                    continue;
                }
                page.records.push(record);
                if page.records.len() == limit {
                    page.next = Some(AuditPlace { day, before: at });
                    return Ok(page);
                }
            }
        }
    }
    Ok(page)
}

/// The lines right before a byte, each with its place, and the place of the first one.
async fn lines_before(
    reader: &StoreReader,
    key: &Key,
    before: u64,
) -> Result<Option<(u64, Vec<(u64, Bytes)>)>, ReadError> {
    let Some(Piece { at, bytes }) = reader.piece(key, before, READ_BYTES).await? else {
        return Ok(None);
    };
    // A line is much shorter than a piece. Without a line end nothing here is a line.
    let first = match at {
        0 => 0,
        _ => bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1),
    };
    let mut lines = Vec::new();
    let mut begin = first;
    for (end, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if end >= begin {
            lines.push((at + begin as u64, bytes.slice(begin..end)));
            begin = end + 1;
        }
    }
    let begin = if lines.is_empty() { 0 } else { first };
    Ok(Some((at + begin as u64, lines)))
}

/// The days that have a file.
async fn days(reader: &StoreReader) -> Result<BTreeSet<NaiveDate>, ReadError> {
    let names = reader.children(&Folders::audit()).await?;
    let day = |name: &String| name.strip_suffix(".jsonl")?.parse().ok();
    Ok(names.iter().filter_map(day).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use model::TokenId;
    use store::Epoch;

    use super::*;

    pub(crate) fn audited(name: &str) -> Audited {
        let entry = AuditEntry {
            token: TokenId::from_uuid(Uuid::from_u128(7)),
            name: name.to_owned(),
            session: None,
            address: "192.0.2.1".parse().unwrap(),
            method: "POST".to_owned(),
            path: "/v0/jobs/x/cancel".to_owned(),
            request: Uuid::from_u128(9),
        };
        let is_noted = AtomicBool::new(false);
        Audited { entry, is_noted }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_request_has_one_line_and_lines_follow_each_other() {
        let noon = at("2026-11-20T12:00:00Z");
        let mut batch = Batch::new(Epoch(1));
        let request = audited("a");
        let first = AuditTail::default()
            .note(noon, &request, &mut batch)
            .unwrap();
        assert_eq!(first.note(noon, &request, &mut batch), None);
        let second = first.note(noon, &audited("b"), &mut batch).unwrap();
        let [one, two] = &batch.appends[..] else {
            panic!("{batch:?}")
        };
        assert_eq!((one.at, two.at), (0, one.bytes.len() as u64));
        assert_eq!(one.ledger.as_str(), "audit/2026-11-20.jsonl");
        assert_eq!(second.bytes, two.at + two.bytes.len() as u64);
    }

    #[test]
    fn a_new_day_has_a_new_file_and_removes_what_is_too_old() {
        let mut batch = Batch::new(Epoch(1));
        let days = ["2024-02-01", "2025-11-20", "2025-11-21"];
        let tail = AuditTail {
            days: days.iter().map(|day| day.parse().unwrap()).collect(),
            bytes: 100,
        };
        let next = tail.note(at("2026-11-21T00:00:00Z"), &audited("a"), &mut batch);
        assert_eq!(batch.appends[0].at, 0);
        let deleted: Vec<_> = batch.deletes.iter().map(Key::as_str).collect();
        assert_eq!(
            deleted,
            ["audit/2024-02-01.jsonl", "audit/2025-11-20.jsonl"]
        );
        assert_eq!(next.unwrap().days.len(), 2);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_reopen_a_day() {
        let mut batch = Batch::new(Epoch(1));
        let tail = AuditTail {
            days: ["2026-11-20".parse().unwrap()].into(),
            bytes: 100,
        };
        tail.note(at("2026-11-19T23:59:59Z"), &audited("a"), &mut batch);
        assert_eq!(batch.appends[0].ledger.as_str(), "audit/2026-11-20.jsonl");
        assert_eq!(batch.appends[0].at, 100);
    }
}
