//! Reading a scan's ledger, newest record first.

use model::{LedgerRecord, ScanHead, Timestamp};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::reader::StoreReader;

/// The newest records that are not later than `until`, newest first. The run that the head still counts comes first.
pub(crate) async fn newest(
    reader: &StoreReader,
    head: &ScanHead,
    until: Option<Timestamp>,
    limit: usize,
) -> Result<Vec<LedgerRecord>, ReadError> {
    let is_wanted = |record: &LedgerRecord| until.is_none_or(|until| record.at <= until);
    let run = head.repeats.clone().and_then(|run| run.into_record());
    let mut records: Vec<LedgerRecord> = run.into_iter().filter(is_wanted).take(limit).collect();
    for page in (0..=head.ledger.page).rev() {
        if records.len() >= limit {
            break;
        }
        let key = Layout::ledger(&head.key(), page);
        let Some(mut bytes) = reader.get(&key).await? else {
            // Only the page that is written next may be missing; below it, older ones have been removed.
            if page == head.ledger.page {
                continue;
            }
            break;
        };
        if page == head.ledger.page {
            bytes.truncate(usize::try_from(head.ledger.bytes).unwrap_or(usize::MAX));
        }
        let lines = bytes.split(|byte| *byte == b'\n').rev();
        for line in lines.filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<LedgerRecord>(line) {
                Ok(record) if is_wanted(&record) => records.push(record),
                Ok(_) => {}
                // Not loud: every reader would say it again. A check tells of it.
                Err(error) => {
                    tracing::debug!(%key, %error, "a line of a ledger cannot be read and is left out");
                }
            }
            if records.len() == limit {
                break;
            }
        }
    }
    Ok(records)
}
