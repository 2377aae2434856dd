//! Payload groups as the caller sees them.

use std::sync::Arc;

use bytes::Bytes;
use model::{Payload, PayloadGroup, PayloadName};
use reconciler::NewPayload;
use state::Upload;

use super::{Shown, Visible};
use crate::failure::Failure;
use crate::limits::{RENDERS_AT_ONCE, RENDERS_OF_SHARE};
use crate::turns::{Turn, Turns};

pub(crate) type ShownGroup = Shown<Arc<PayloadGroup>>;

impl Visible {
    /// Begins to receive the body of a payload.
    pub(crate) async fn begin_payload(&self) -> Result<Upload, Failure> {
        Ok(self.acting()?.state().begin_upload().await?)
    }

    /// Stores a received body. Answers the payload, and whether it is a new version.
    pub(crate) async fn store_payload(
        &self,
        new: Shown<NewPayload>,
        body: Upload,
    ) -> Result<(Payload, bool), Failure> {
        Ok(self.acting()?.store_payload(new.0, body).await?)
    }

    /// The body of a version.
    pub(crate) async fn payload_body(
        &self,
        group: &ShownGroup,
        name: &PayloadName,
        version: u64,
    ) -> Result<Option<Bytes>, Failure> {
        Ok(self.state().payload(group.id, name, version).await?)
    }

    /// Waits for a turn to render.
    pub(crate) async fn render_turn(&self) -> Turn {
        static TURNS: Turns = Turns::new(RENDERS_AT_ONCE, RENDERS_OF_SHARE);
        TURNS.wait(self.principal().share()).await
    }

    pub(crate) async fn delete_payload_group(&self, group: &ShownGroup) -> Result<(), Failure> {
        Ok(self.acting()?.delete_payload_group(group.id).await?)
    }
}
