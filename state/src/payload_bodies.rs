//! The bodies of payloads. Each version is an object, which the commit of its record adopts.

use bytes::Bytes;
use model::decide::StorePayload;
use model::limits::PAYLOAD_BYTES;
use model::{Payload, PayloadGroupId, PayloadName};
use store::Staged;
use workflow::sha256;

use crate::blocking::on_volume;
use crate::encode::adopt;
use crate::error::{ReadError, SubmitError};
use crate::layout::Layout;
use crate::state::State;

impl State {
    /// Stores a version of a payload. Answers the payload, and whether it is a new version.
    pub async fn store_payload(
        &self,
        store: StorePayload,
        body: Staged,
    ) -> Result<(Payload, bool), SubmitError> {
        let (group, name) = (store.group, store.name.clone());
        self.submit_with(store, None, move |decision, batch| {
            if let (payload, true) = &decision.answer {
                let version = payload.edit.version;
                adopt(batch, Layout::payload(group, &name, version), body.clone());
            }
        })
        .await
    }

    /// The body of a version. None if there is no such version.
    pub async fn payload(
        &self,
        group: PayloadGroupId,
        name: &PayloadName,
        version: u64,
    ) -> Result<Option<Bytes>, ReadError> {
        let newest = |world: &model::World| {
            let payload = world.payload_group(group)?.payloads.get(name)?;
            Some(payload.clone()).filter(|payload| payload.has(version))
        };
        let Some(known) = self.read(newest) else {
            return Ok(None);
        };
        let key = Layout::payload(group, name, version);
        let path = key.clone();
        let found = on_volume(self.volume(), move |volume| {
            let fail = |source| ReadError::file(&key, source);
            let opened = volume.open_object(&key).map_err(fail)?;
            let longest = usize::try_from(PAYLOAD_BYTES).unwrap_or(usize::MAX);
            opened
                .map(|file| file.read_at(0, longest).map_err(fail))
                .transpose()
        });
        let Some(body) = found.await? else {
            // It was deleted in the meantime.
            return match self.read(newest) {
                Some(_) => Err(ReadError::damaged(path, "it is missing")),
                None => Ok(None),
            };
        };
        // Only the digest of the newest version is in memory.
        if version == known.edit.version && sha256(&body) != known.sha256 {
            return Err(ReadError::damaged(
                path,
                "it has another SHA-256 than was stored",
            ));
        }
        Ok(Some(body.into()))
    }
}
