//! Reads the record of a tip.

use model::{SourceName, TipRecord, TipRef};

use crate::layout::Layout;
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
}
