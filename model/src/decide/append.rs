//! Appends to a scan's history and ledger.

use serde::Serialize;

use super::Refusal;
use crate::JobId;
use crate::change::{Change, HistoryEntry, LedgerEntry};
use crate::history::HistoryLine;
use crate::ledger::{LedgerRecord, Outcome, Repeats};
use crate::limits::{HISTORY_PAGE_BYTES, LEDGER_PAGE_BYTES, LEDGER_PAGES};
use crate::scan_head::ScanHead;

impl ScanHead {
    pub(super) fn append_to_history(&mut self, line: HistoryLine) -> Result<HistoryEntry, Refusal> {
        let text = json_line(line.id, "history line", &line)?;
        let at = self.history.advance(text.len() as u64, HISTORY_PAGE_BYTES);
        Ok(HistoryEntry {
            scan: self.key(),
            page: at.page,
            at: at.bytes,
            line,
            text,
        })
    }

    /// Records a check in the ledger. If it created no job for the same reason as the previous check, only a counter is
    /// increased. The counter becomes a record when the outcome changes.
    pub(super) fn note(&mut self, record: LedgerRecord) -> Result<Vec<Change>, Refusal> {
        if let Outcome::NotMade { reason } = &record.outcome
            && let Some(repeats) = self
                .repeats
                .as_mut()
                .filter(|known| known.reason == *reason)
        {
            if repeats.count == 0 {
                repeats.first = record.at;
            }
            repeats.last = record.at;
            repeats.count += 1;
            return Ok(vec![self.repeats_changed()]);
        }
        let before = self.repeats.take();
        let had_repeats = before.is_some();
        let run = before.and_then(Repeats::into_record);
        if let Outcome::NotMade { reason } = &record.outcome {
            self.repeats = Some(Repeats {
                reason: reason.clone(),
                first: record.at,
                last: record.at,
                count: 0,
            });
        }
        let mut changes = Vec::new();
        for record in run.into_iter().chain([record]) {
            changes.extend(self.append_to_ledger(&record)?);
        }
        if had_repeats || self.repeats.is_some() {
            changes.push(self.repeats_changed());
        }
        Ok(changes)
    }

    fn repeats_changed(&self) -> Change {
        Change::Repeats(self.key(), self.repeats.clone())
    }

    fn append_to_ledger(&mut self, record: &LedgerRecord) -> Result<Vec<Change>, Refusal> {
        let text = json_line(self.latest_job, "ledger record", record)?;
        let before = self.ledger.page;
        let at = self.ledger.advance(text.len() as u64, LEDGER_PAGE_BYTES);
        let entry = LedgerEntry {
            scan: self.key(),
            page: at.page,
            at: at.bytes,
            text,
        };
        let full = (self.ledger.page > before)
            .then(|| self.ledger.page.checked_sub(LEDGER_PAGES + 1))
            .flatten();
        let removed = full.map(|page| Change::LedgerPageRemoved(self.key(), page));
        Ok(std::iter::once(Change::Ledger(entry))
            .chain(removed)
            .collect())
    }
}

fn json_line(job: JobId, record: &'static str, value: &impl Serialize) -> Result<String, Refusal> {
    let mut line = serde_json::to_string(value).map_err(|error| Refusal::Unwritable {
        job,
        record,
        problem: error.to_string(),
    })?;
    line.push('\n');
    Ok(line)
}
