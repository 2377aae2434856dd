//! Keeping logs durable: they grow beside the journal.

use tokio::time::Instant;

use crate::blocking::on_volume;
use crate::limits::LOG_SYNC;
use crate::state::State;

impl State {
    /// Syncs what is appended to logs, at most every second, for as long as the daemon runs.
    pub async fn keep_logs_durable(&self) {
        loop {
            self.logs().shared.dirty.notified().await;
            tokio::time::sleep(LOG_SYNC).await;
            let logs = self.logs().clone();
            let now = Instant::now();
            match on_volume(self.volume(), move |_| logs.sync(now)).await {
                Ok(true) => {}
                Ok(false) => self.logs().shared.dirty.notify_one(),
                Err(error) => tracing::error!(%error, "a log cannot be synced"),
            }
        }
    }
}
