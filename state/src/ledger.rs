//! Reads a scan's ledger, newest record first.

use model::retention::Position;
use model::{LedgerRecord, ScanHead, Timestamp};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::reader::StoreReader;
use crate::warned::DamagedLines;

#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Newest first.
    pub records: Vec<LedgerRecord>,
    /// The next page has the records before this place. `None` at the end.
    pub next: Option<Position>,
    /// Lines that could not be read.
    pub damaged: Vec<DamagedLines>,
}

/// The newest records up to time `until` and before the place `before`, newest first. The run that the head still
/// counts comes after all others.
pub(crate) async fn newest(
    reader: &StoreReader,
    head: &ScanHead,
    until: Option<Timestamp>,
    before: Option<Position>,
    limit: usize,
) -> Result<Ledger, ReadError> {
    let tail = Position {
        page: head.ledger.page,
        at: head.ledger.bytes,
    };
    let is_wanted = |record: &LedgerRecord| until.is_none_or(|until| record.at <= until);
    let run = head.repeats.clone().and_then(|run| run.into_record());
    let run = run.filter(|record| before.is_none() && is_wanted(record));
    let mut ledger = Ledger {
        records: run.into_iter().collect(),
        ..Ledger::default()
    };
    // The place of the last returned record.
    let mut last = tail;
    let end = before.filter(|before| *before < tail).unwrap_or(tail);
    for page in (0..=end.page).rev() {
        let key = Layout::ledger(&head.key(), page);
        let Some(mut bytes) = reader.get(&key).await? else {
            // Only the page that is written next may be missing. All pages before another missing page were removed.
            if page == tail.page {
                continue;
            }
            break;
        };
        if page == end.page {
            bytes.truncate(usize::try_from(end.at).unwrap_or(usize::MAX));
            // An invented cursor may end within a line.
            let whole = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(whole.map_or(0, |end| end + 1));
        }
        let lines = bytes.split(|byte| *byte == b'\n').rev();
        let (mut at, mut unread) = (bytes.len() as u64 + 1, 0);
        for line in lines {
            // A line end follows each line except the last one, which is empty.
            at -= line.len() as u64 + 1;
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice::<LedgerRecord>(line) {
                Ok(record) if is_wanted(&record) => {
                    if ledger.records.len() >= limit {
                        ledger.next = Some(last);
                        break;
                    }
                    ledger.records.push(record);
                    last = Position { page, at };
                }
                Ok(_) => {}
                Err(error) => {
                    unread += 1;
                    reader.warned().warn(&key, at, error);
                }
            }
        }
        if unread > 0 {
            ledger.damaged.push(DamagedLines {
                file: key.to_string(),
                lines: unread,
            });
        }
        if ledger.next.is_some() {
            break;
        }
    }
    Ok(ledger)
}
