//! Ledgers with one file for each day, and the end of each ledger. Old days are removed.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use bytes::Bytes;
use chrono::{Days, NaiveDate};
use model::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Append, Batch, Key, Piece};

use crate::error::ReadError;
use crate::layout::RecordPlace;
use crate::limits::{LEDGER_PIECES, READ_BYTES};
use crate::reader::StoreReader;

pub(crate) trait DayLedger: Serialize {
    /// How many days are kept before the newest day.
    const DAYS: u64;

    const PLACE: RecordPlace;

    fn file(day: NaiveDate) -> Key;
}

#[derive(Debug, Clone)]
pub(crate) struct Tail<L> {
    days: BTreeSet<NaiveDate>,
    /// The length of the last day's file.
    bytes: u64,
    lines: PhantomData<fn() -> L>,
}

impl<L> Tail<L> {
    pub(crate) const fn new(days: BTreeSet<NaiveDate>, bytes: u64) -> Self {
        Self {
            days,
            bytes,
            lines: PhantomData,
        }
    }
}

impl<L: DayLedger> Tail<L> {
    pub(crate) async fn read(reader: &StoreReader) -> Result<Self, ReadError> {
        let days = days::<L>(reader).await?;
        let last = days.last().map(|day| L::file(*day));
        let bytes = match last {
            None => 0,
            Some(key) => {
                let end = reader.piece(&key, u64::MAX, 1).await?;
                end.map_or(0, |Piece { at, bytes }| at + bytes.len() as u64)
            }
        };
        Ok(Self::new(days, bytes))
    }

    /// Adds lines to the batch. Returns the new end, if there are any lines. The first line of a day removes old days.
    pub(crate) fn append<'l>(
        &self,
        now: Timestamp,
        records: impl IntoIterator<Item = &'l L>,
        batch: &mut Batch,
    ) -> Result<Option<Self>, serde_json::Error>
    where
        L: 'l,
    {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(None);
        }
        // Setting the clock back does not reopen an earlier day.
        let last = self.days.last().copied();
        let day = last.map_or(now.date_naive(), |last| last.max(now.date_naive()));
        let mut days = self.days.clone();
        let at = if last == Some(day) { self.bytes } else { 0 };
        if days.insert(day)
            && let Some(oldest) = day.checked_sub_days(Days::new(L::DAYS))
        {
            let kept = days.split_off(&oldest);
            batch.deletes.extend(days.into_iter().map(L::file));
            days = kept;
        }
        let bytes = at + lines.len() as u64;
        batch.appends.push(Append {
            ledger: L::file(day),
            at,
            bytes: lines.into(),
        });
        Ok(Some(Self::new(days, bytes)))
    }
}

/// The lines right before an offset, each with its offset, and the offset of the first line.
pub(crate) async fn lines_before(
    reader: &StoreReader,
    key: &Key,
    before: u64,
) -> Result<Option<(u64, Vec<(u64, Bytes)>)>, ReadError> {
    let Some(Piece { at, bytes }) = reader.piece(key, before, READ_BYTES).await? else {
        return Ok(None);
    };
    // A line is much shorter than a piece. A piece without line ends is damaged and has no lines.
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

/// Where a page of such a ledger begins: before this byte of the day's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayPlace {
    pub day: NaiveDate,
    pub before: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayPage<L> {
    pub records: Vec<L>,
    /// Where the next page begins; absent at the end of the ledger.
    pub next: Option<DayPlace>,
}

/// Reads the newest lines before a place that a filter accepts, of the days of a span.
pub(crate) async fn day_page<L: DayLedger + DeserializeOwned>(
    reader: &StoreReader,
    (since, until): (Option<Timestamp>, Option<Timestamp>),
    takes: impl Fn(&L) -> bool,
    from: Option<DayPlace>,
    limit: usize,
) -> Result<DayPage<L>, ReadError> {
    let mut page = DayPage {
        records: Vec::new(),
        next: None,
    };
    let mut pieces = 0;
    for day in days::<L>(reader).await?.into_iter().rev() {
        let mut before = match from {
            Some(from) if day > from.day => continue,
            Some(from) if day == from.day => from.before,
            _ => u64::MAX,
        };
        if until.is_some_and(|until| day > until.date_naive()) {
            continue;
        }
        if since.is_some_and(|since| day < since.date_naive()) {
            return Ok(page);
        }
        let key = L::file(day);
        while before > 0 {
            if pieces == LEDGER_PIECES {
                page.next = Some(DayPlace { day, before });
                return Ok(page);
            }
            pieces += 1;
            let Some((at, lines)) = lines_before(reader, &key, before).await? else {
                break;
            };
            before = at;
            for (at, line) in lines.into_iter().rev() {
                // Damaged lines are skipped.
                let Ok(record) = serde_json::from_slice::<L>(&line) else {
                    continue;
                };
                if !takes(&record) {
                    continue;
                }
                page.records.push(record);
                if page.records.len() == limit {
                    page.next = Some(DayPlace { day, before: at });
                    return Ok(page);
                }
            }
        }
    }
    Ok(page)
}

pub(crate) async fn days<L: DayLedger>(
    reader: &StoreReader,
) -> Result<BTreeSet<NaiveDate>, ReadError> {
    let folder = L::file(NaiveDate::default()).folder();
    let days = reader.words(&folder, L::PLACE, "day").await?;
    Ok(days.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use store::Epoch;

    use super::*;
    use crate::audit::AuditRecord;
    use crate::audit::tests::{at, lines};

    type AuditTail = Tail<AuditRecord>;

    #[test]
    fn lines_follow_each_other() {
        let noon = at("2026-11-20T12:00:00Z");
        let mut batch = Batch::new(Epoch(1));
        let mut note = |tail: &AuditTail, names: &[&str]| {
            tail.append(noon, &lines(noon, names), &mut batch).unwrap()
        };
        let first = note(&AuditTail::new(BTreeSet::new(), 0), &["a", "b"]).unwrap();
        assert!(note(&first, &[]).is_none());
        let second = note(&first, &["c"]).unwrap();
        let [one, two] = &batch.appends[..] else {
            panic!("{batch:?}")
        };
        assert_eq!((one.at, two.at), (0, one.bytes.len() as u64));
        assert_eq!(one.ledger.as_str(), "audit/2026-11-20.jsonl");
        assert_eq!(second.bytes, two.at + two.bytes.len() as u64);
    }

    #[test]
    fn a_new_day_has_a_new_file_and_removes_old_days() {
        let mut batch = Batch::new(Epoch(1));
        let days = ["2024-02-01", "2025-11-20", "2025-11-21"];
        let tail = AuditTail::new(days.iter().map(|day| day.parse().unwrap()).collect(), 100);
        let midnight = at("2026-11-21T00:00:00Z");
        let next = tail.append(midnight, &lines(midnight, &["a"]), &mut batch);
        assert_eq!(batch.appends[0].at, 0);
        let deleted: Vec<_> = batch.deletes.iter().map(Key::as_str).collect();
        assert_eq!(
            deleted,
            ["audit/2024-02-01.jsonl", "audit/2025-11-20.jsonl"]
        );
        assert_eq!(next.unwrap().unwrap().days.len(), 2);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_reopen_a_day() {
        let mut batch = Batch::new(Epoch(1));
        let tail = AuditTail::new(["2026-11-20".parse().unwrap()].into(), 100);
        let before = at("2026-11-19T23:59:59Z");
        tail.append(before, &lines(before, &["a"]), &mut batch)
            .unwrap();
        assert_eq!(batch.appends[0].ledger.as_str(), "audit/2026-11-20.jsonl");
        assert_eq!(batch.appends[0].at, 100);
    }
}
