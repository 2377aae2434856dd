//! Storing payloads, and removing them.

use std::sync::Arc;

use bytes::Bytes;
use model::decide::{
    ClearPayloadGroup, DeletePayloadGroup, MintTags, NewMint, Precondition, StorePayload,
};
use model::limits::PAYLOAD_BYTES;
use model::payload::name_and_version;
use model::{Actor, Payload, PayloadGroupId, PayloadName, ProjectId};
use state::{MintedLines, SubmitError, Upload};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use workflow::hex;
use workflow::notify::NotifyName;

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

/// A version of a payload with its body.
#[derive(Debug, Clone)]
pub struct ServedPayload {
    /// With its version, as in `img.svg@3`.
    pub name: String,
    pub media_type: String,
    pub body: Bytes,
}

struct Held {
    body: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
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

    /// A payload that the callback servers of its project answer, such as `img.svg` or `img.svg@3`. It has a part of `room`, which
    /// counts bytes, as long as its body is there.
    pub async fn served_payload(
        &self,
        project: ProjectId,
        group: &str,
        named: &str,
        room: &Arc<Semaphore>,
    ) -> Option<ServedPayload> {
        let group = NotifyName::new(group).ok()?;
        let (name, version) = name_and_version(named)?;
        let (group, payload) = self.state().read(|world| {
            let group = world.payload_group_of(project, &group)?;
            let payload = group.payloads.get(&name).filter(|_| group.serve)?;
            Some((group.id, payload.clone()))
        })?;
        let newest = payload.edit.version;
        let version = version.unwrap_or(newest);
        let size = match version == newest {
            true => payload.size,
            false => PAYLOAD_BYTES,
        };
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let room = room.clone().acquire_many_owned(size).await.ok()?;
        let body = self.state().payload(group, &name, version).await;
        let body = body.inspect_err(|error| tracing::error!(%error, "a payload is not served"));
        Some(ServedPayload {
            name: format!("{name}@{version}"),
            media_type: payload.media_type,
            body: Bytes::from_owner(Held {
                body: body.ok()??,
                _room: room,
            }),
        })
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
