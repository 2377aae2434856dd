//! What is known of minted tags that are hit: their records are on disk, and the last ones are kept in memory.

use std::collections::HashMap;
use std::sync::Arc;

use model::Timestamp;
use model::callback::{CallbackId, CallbackTag, Mint, Planted, PlantedPayload};

use crate::handle::Handle;
use crate::limits::MINTS_KNOWN;

#[derive(Default)]
pub(crate) struct Mints {
    /// None if the record cannot be read.
    known: HashMap<(CallbackId, u32), Option<Arc<Mint>>>,
}

impl Mints {
    /// What was planted with a tag. None if the tag is not answered any more, since a record may stay longer than its tags.
    pub(crate) async fn planted(
        &mut self,
        handle: &Handle,
        server: CallbackId,
        tag: CallbackTag,
        now: Timestamp,
    ) -> Option<Planted> {
        let read = |world: &model::World| world.callback(server)?.minted_tag(tag);
        let Some((number, line)) = handle.state().read(read) else {
            return Some(Planted::default());
        };
        let mint = match self.mint(handle, server, number).await {
            Some(mint) if mint.is_over(now) => return None,
            Some(mint) => mint,
            None => return Some(Planted::default()),
        };
        let mut planted = Planted::from(&*mint);
        if let Some(group) = &mint.group {
            let found = handle.state().minted_line(server, number, line).await;
            let found = found.inspect_err(|error| {
                tracing::warn!(%server, number, %error, "an interaction lacks its payload");
            });
            if let Ok(Some((payload, version, target))) = found {
                let group = group.clone();
                let payload = PlantedPayload {
                    group,
                    payload,
                    version,
                };
                planted = planted.rendered(payload, target.as_deref());
            }
        }
        Some(planted)
    }

    async fn mint(
        &mut self,
        handle: &Handle,
        server: CallbackId,
        number: u32,
    ) -> Option<Arc<Mint>> {
        if let Some(known) = self.known.get(&(server, number)) {
            return known.clone();
        }
        let read = handle.state().mint(server, number).await;
        let read = read.inspect_err(|error| {
            tracing::warn!(%server, number, %error, "interactions lack what was planted");
        });
        let mint = read.ok().flatten().map(Arc::new);
        if self.known.len() >= MINTS_KNOWN {
            self.known.clear();
        }
        self.known.insert((server, number), mint.clone());
        mint
    }
}
