//! Callback servers as the caller sees them.

use std::sync::Arc;

use bytes::Bytes;
use model::callback::Interaction;
use model::decide::{MintTags, NewMint};
use model::{Callback, Job};
use state::{InteractionFilter, InteractionPage, InteractionPlace, MintedLines};
use tokio::time::Instant;

use super::{Shown, Visible};
use crate::failure::{Failure, job_token_over};
use crate::handlers::callbacks::off;
use crate::limits::INTERACTIONS_TIME;

pub(crate) type ShownCallback = Shown<Arc<Callback>>;

impl Visible {
    /// The zones of callback servers. None if callbacks are off.
    pub(crate) fn callback_zones(&self) -> Option<&[String]> {
        let settings = self.handle.callbacks()?;
        Some(&settings.zones)
    }

    /// Interactions of a callback server. The page ends early after a short time.
    pub(crate) async fn interactions(
        &self,
        callback: &ShownCallback,
        filter: &InteractionFilter,
        from: InteractionPlace,
        limit: usize,
    ) -> Result<InteractionPage, Failure> {
        let deadline = Instant::now() + INTERACTIONS_TIME;
        let state = self.state();
        let filter = InteractionFilter {
            heard_by: self.asking_job()?,
            ..filter.clone()
        };
        let page = state.interactions(callback.id, &filter, from, limit, deadline);
        Ok(page.await?)
    }

    /// The job that asks. It sees what its own names have heard, and what has started it.
    fn asking_job(&self) -> Result<Option<Arc<Job>>, Failure> {
        let Some(id) = self.principal().job() else {
            return Ok(None);
        };
        let job = self.state().read(|world| world.job(id).cloned());
        job.map(Some).ok_or_else(job_token_over)
    }

    pub(crate) async fn interaction(
        &self,
        callback: &ShownCallback,
        number: u64,
    ) -> Result<Option<(Interaction, Bytes)>, Failure> {
        let found = self.state().interaction(callback.id, number).await?;
        let job = self.asking_job()?;
        Ok(found.filter(|(it, _)| job.is_none_or(|job| job.hears(callback.id, it))))
    }

    pub(crate) async fn raw_request(
        &self,
        callback: &ShownCallback,
        of: &Interaction,
    ) -> Result<Bytes, Failure> {
        Ok(self.state().raw_request(callback.id, of).await?)
    }

    /// The number of the next interaction. None once the server is deleted.
    pub(crate) fn next_interaction(&self, callback: &ShownCallback) -> Option<u64> {
        self.read(|seen| Some(seen.callback(callback.id)?.interactions.next))
    }

    /// Mints a name for each line of a render.
    pub(crate) async fn mint_lines(
        &self,
        mint: Shown<MintTags>,
        lines: &MintedLines,
    ) -> Result<NewMint, Failure> {
        Ok(self.acting()?.mint_lines(mint.0, lines).await?)
    }

    /// Checks the zones. They belong to the instance and to no project.
    pub(crate) async fn check_callbacks(&self) -> Result<wire::CallbackCheck, Failure> {
        let check = self.callback_check.as_ref().ok_or_else(off)?;
        Ok(check.check().await)
    }

    pub(crate) async fn delete_callback(&self, callback: &ShownCallback) -> Result<(), Failure> {
        Ok(self.acting()?.delete_callback(callback.id).await?)
    }
}
