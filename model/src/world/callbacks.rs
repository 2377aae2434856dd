//! Callback servers and their names that are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::notify::NotifyName;

use super::World;
use crate::ProjectId;
use crate::callback::{
    Callback, CallbackCertificate, CallbackId, CallbackTag, CallbackToken, CallbackTokens,
};

#[derive(Debug, Clone, Default)]
pub(super) struct Callbacks {
    servers: BTreeMap<CallbackId, Arc<Callback>>,
    tokens: BTreeMap<CallbackId, CallbackTokens>,
    /// Servers with interactions that a scan has not considered yet.
    unconsidered: BTreeSet<CallbackId>,
    certificate: Option<Arc<CallbackCertificate>>,
    /// Counts the changes of what is answered.
    version: u64,
}

impl Callbacks {
    pub(super) fn put(&mut self, callback: &Arc<Callback>) {
        if callback.unconsidered.is_empty() || callback.is_deleted {
            self.unconsidered.remove(&callback.id);
        } else {
            self.unconsidered.insert(callback.id);
        }
        let before = self.servers.insert(callback.id, callback.clone());
        let live = |it: &Arc<Callback>| it.minted.as_ref().map(|minted| minted.live.clone());
        let is_same = |before: &Arc<Callback>| {
            before.is_deleted == callback.is_deleted
                && before.rules == callback.rules
                && live(before) == live(callback)
        };
        if !before.as_ref().is_some_and(is_same) {
            self.version += 1;
        }
    }

    pub(super) fn remove(&mut self, id: CallbackId) {
        self.servers.remove(&id);
        self.tokens.remove(&id);
        self.unconsidered.remove(&id);
        self.version += 1;
    }

    pub(super) fn put_certificate(&mut self, new: &Arc<CallbackCertificate>) {
        self.certificate = Some(new.clone());
    }

    pub(super) fn add_token(&mut self, token: &Arc<CallbackToken>) {
        let tokens = self.tokens.entry(token.server).or_default();
        Arc::make_mut(tokens).insert(token.tag, token.clone());
        self.version += 1;
    }

    pub(super) fn remove_token(&mut self, server: CallbackId, tag: CallbackTag) {
        if let Some(tokens) = self.tokens.get_mut(&server) {
            Arc::make_mut(tokens).remove(&tag);
            self.version += 1;
        }
    }
}

impl World {
    /// Callback servers, except those that are deleted.
    pub fn callbacks(&self) -> impl Iterator<Item = &Arc<Callback>> {
        let all = self.callbacks.servers.values();
        all.filter(|callback| !callback.is_deleted)
    }

    pub fn callback(&self, id: CallbackId) -> Option<&Arc<Callback>> {
        self.any_callback(id)
            .filter(|callback| !callback.is_deleted)
    }

    /// A callback server, also if it is deleted and its files are being removed.
    pub(crate) fn any_callback(&self, id: CallbackId) -> Option<&Arc<Callback>> {
        self.callbacks.servers.get(&id)
    }

    pub fn callback_of(&self, project: ProjectId, name: &NotifyName) -> Option<&Arc<Callback>> {
        let mut of_project = self.callbacks().filter(|it| it.project == project);
        of_project.find(|callback| callback.name == *name)
    }

    /// Callback servers with interactions that a scan has not considered yet.
    pub(crate) fn callbacks_with_unconsidered(&self) -> impl Iterator<Item = &Arc<Callback>> {
        let servers = self.callbacks.unconsidered.iter();
        servers.filter_map(|id| self.callback(*id))
    }

    /// Callback servers whose files are being removed.
    pub fn deleted_callbacks(&self) -> impl Iterator<Item = CallbackId> {
        let all = self.callbacks.servers.values();
        all.filter(|callback| callback.is_deleted)
            .map(|callback| callback.id)
    }

    /// What an authority has issued for callback servers.
    pub const fn callback_certificate(&self) -> Option<&Arc<CallbackCertificate>> {
        self.callbacks.certificate.as_ref()
    }

    /// The names of a callback server that were made one by one.
    pub fn callback_tokens(&self, server: CallbackId) -> impl Iterator<Item = &Arc<CallbackToken>> {
        let tokens = self.callbacks.tokens.get(&server);
        tokens.into_iter().flat_map(|tokens| tokens.values())
    }

    pub fn callback_token(
        &self,
        server: CallbackId,
        tag: CallbackTag,
    ) -> Option<&Arc<CallbackToken>> {
        self.callbacks.tokens.get(&server)?.get(&tag)
    }

    /// The servers that are answered, with their names.
    pub fn answered_callbacks(&self) -> impl Iterator<Item = (Arc<Callback>, CallbackTokens)> {
        self.callbacks().map(|callback| {
            let tokens = self.callbacks.tokens.get(&callback.id);
            (callback.clone(), tokens.cloned().unwrap_or_default())
        })
    }

    /// Changes whenever [`Self::answered_callbacks`] does.
    pub const fn callbacks_version(&self) -> u64 {
        self.callbacks.version
    }
}
