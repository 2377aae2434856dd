//! Reads the records of tips.

use model::{SourceName, TipRecord, TipRef};
use store::Key;

use crate::envelope;
use crate::error::ReadError;
use crate::layout::{Folders, Layout, RecordPlace};
use crate::limits::TIPS_PER_FOLDER;
use crate::state::State;

impl State {
    /// The record of a tip. `None` if it cannot be read: nothing depends on it, and its file may not be written yet.
    pub async fn tip_record(&self, source: &SourceName, tip: &TipRef) -> Option<TipRecord> {
        let key = Layout::tip(source, tip.number, &tip.commit);
        match self.reader().record(&key).await {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%key, %error, "the record of a tip cannot be read");
                None
            }
        }
    }

    /// At most `limit` tips of a source with a number up to `last`, newest first. Unreadable records are left out.
    pub async fn tips(
        &self,
        source: &SourceName,
        last: u64,
        limit: usize,
    ) -> Result<Vec<TipRecord>, ReadError> {
        let mut found = Vec::new();
        for thousand in (0..=last / TIPS_PER_FOLDER).rev() {
            let folder = Folders::tips(source, thousand);
            let numbered = |name: &String| {
                let key = folder.join(name)?;
                let number: u64 = RecordPlace::Tip.word(&key, "number")?;
                (number <= last).then_some((number, key))
            };
            let names = self.reader().children(&folder).await?;
            let mut keys: Vec<(u64, Key)> = names.iter().filter_map(numbered).collect();
            keys.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
            let keys = keys.into_iter().map(|(_, key)| key);
            found.extend(keys.take(limit - found.len()));
            if found.len() == limit {
                break;
            }
        }
        let bytes = self.reader().get_many(found.clone()).await?;
        let records = found.iter().zip(bytes).filter_map(|(key, bytes)| {
            let opened = envelope::open_at(key, &bytes?);
            opened
                .inspect_err(
                    |error| tracing::error!(%key, %error, "the record of a tip cannot be read"),
                )
                .ok()
        });
        Ok(records.collect())
    }
}
