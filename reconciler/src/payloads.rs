//! Storing payloads, and removing them.

use model::decide::{
    ClearPayloadGroup, DeletePayloadGroup, MintTags, NewMint, Precondition, StorePayload,
};
use model::{Actor, Payload, PayloadGroupId, PayloadName};
use state::{MintedLines, SubmitError, Upload};
use workflow::hex;

use crate::error::BlobError;
use crate::handle::Handle;

/// A version of a payload, without its body.
#[derive(Debug, Clone)]
pub struct NewPayload {
    pub group: PayloadGroupId,
    pub name: PayloadName,
    /// Its content type.
    pub media_type: String,
    pub expects: Precondition,
    pub actor: Actor,
}

impl Handle {
    /// Stores a version of a payload whose body was received. Answers the payload, and whether it is a new version.
    pub async fn store_payload(
        &self,
        new: NewPayload,
        body: Upload,
    ) -> Result<(Payload, bool), BlobError> {
        let body = body.finish().await?;
        let store = StorePayload {
            group: new.group,
            name: new.name,
            media_type: new.media_type,
            size: body.size(),
            sha256: hex(&body.sha256()),
            expects: new.expects,
            actor: new.actor,
        };
        Ok(self.state().store_payload(store, body).await?)
    }

    /// Mints a tag for each line of a render.
    pub async fn mint_lines(
        &self,
        mint: MintTags,
        lines: &MintedLines,
    ) -> Result<NewMint, BlobError> {
        let upload = self.state().begin_upload().await?;
        let staged = upload.write(lines.encode()).await?.finish().await?;
        Ok(self.state().mint_lines(mint, staged).await?)
    }

    /// Deletes a payload group. Its files are removed afterwards.
    pub async fn delete_payload_group(&self, group: PayloadGroupId) -> Result<(), SubmitError> {
        self.state().submit(DeletePayloadGroup { group }).await?;
        let state = self.own_state().clone();
        // The hourly check continues what is interrupted here.
        tokio::spawn(async move {
            while matches!(state.submit(ClearPayloadGroup { group }).await, Ok(true)) {}
        });
        Ok(())
    }
}

/// Removes the files of deleted payload groups.
pub(crate) async fn clear_payload_groups(handle: &Handle) -> Result<(), SubmitError> {
    let state = handle.state();
    let deleted: Vec<_> = state.read(|world| world.deleted_payload_groups().collect());
    for group in deleted {
        while state.submit(ClearPayloadGroup { group }).await? {}
    }
    Ok(())
}
