//! Reading a scan's ledger, newest record first.

use model::{LedgerRecord, ScanHead, Timestamp};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::reader::StoreReader;
use crate::warned::DamagedLines;

/// Records of a scan's ledger.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Newest first.
    pub records: Vec<LedgerRecord>,
    /// Lines that could not be read.
    pub damaged: Vec<DamagedLines>,
}

/// The newest records that are not later than `until`, newest first. The run that the head still counts comes first.
pub(crate) async fn newest(
    reader: &StoreReader,
    head: &ScanHead,
    until: Option<Timestamp>,
    limit: usize,
) -> Result<Ledger, ReadError> {
    let is_wanted = |record: &LedgerRecord| until.is_none_or(|until| record.at <= until);
    let run = head.repeats.clone().and_then(|run| run.into_record());
    let mut damaged = Vec::new();
    let mut records: Vec<LedgerRecord> = run.into_iter().filter(is_wanted).take(limit).collect();
    for page in (0..=head.ledger.page).rev() {
        if records.len() >= limit {
            break;
        }
        let key = Layout::ledger(&head.key(), page);
        let Some(mut bytes) = reader.get(&key).await? else {
            // Only the page that is written next may be missing. Below the first missing page everything has been removed.
            if page == head.ledger.page {
                continue;
            }
            break;
        };
        if page == head.ledger.page {
            bytes.truncate(usize::try_from(head.ledger.bytes).unwrap_or(usize::MAX));
        }
        let lines = bytes.split(|byte| *byte == b'\n').rev();
        let (mut at, mut unread) = (bytes.len() + 1, 0);
        for line in lines {
            // A line end follows each line except the last one, which is empty.
            at -= line.len() + 1;
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice::<LedgerRecord>(line) {
                Ok(record) if is_wanted(&record) => records.push(record),
                Ok(_) => {}
                Err(error) => {
                    unread += 1;
                    reader.warned().warn(&key, at as u64, error);
                }
            }
            if records.len() == limit {
                break;
            }
        }
        if unread > 0 {
            damaged.push(DamagedLines {
                file: key.to_string(),
                lines: unread,
            });
        }
    }
    Ok(Ledger { records, damaged })
}
