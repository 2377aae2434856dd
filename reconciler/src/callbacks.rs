//! Records what callback servers hear, and removes what is old.
//!
//! The listeners send each hit into a bounded channel and never wait. One task takes the hits, leaves out the surplus of a flood,
//! and commits the rest: at once when it was idle, and otherwise a few times a second.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::future::join_all;
use model::callback::{
    CallbackId, CallbackTag, Heard, IndexedPage, Minted, NewInteraction, Planted, Request,
    RequestType, Sampling, Share,
};
use model::decide::{
    ClearCallback, DeleteCallback, ExpireCallbackTokens, RecordInteractions, RemoveInteractions,
    RemoveMints,
};
use model::limits::INTERACTION_PAGES_REMOVED;
use model::{Callback, Timestamp};
use state::{Room, SubmitError};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::{COUNTING_PAUSE, RECORDED_BYTES, RECORDING_PAUSE};
use crate::planted::Mints;

/// The part of the configuration of callbacks that the API shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackSettings {
    /// The domains below which the names of callback servers are.
    pub zones: Vec<String>,
    /// The directory of the authority that issues the certificate, if one does.
    pub authority: Option<String>,
}

/// A request to a callback server.
#[derive(Debug)]
pub struct CallbackHit {
    pub server: CallbackId,
    pub heard: Heard,
    pub raw: Vec<u8>,
}

impl CallbackHit {
    /// About the bytes that it takes in a commit. An escape has at most six bytes.
    fn weight(&self) -> usize {
        let texts = self.heard.request.texts();
        let texts: usize = texts.iter().map(|text| text.len()).sum();
        self.raw.len() + 6 * (texts + self.heard.answer.len()) + 400
    }
}

/// What was answered of a server and is no hit.
#[derive(Debug, Clone, Copy)]
pub struct Missed {
    pub server: CallbackId,
    /// They had a tag that is unknown or has ended.
    pub unknown_tags: u64,
    /// The channel had no room.
    pub dropped: u64,
}

/// Records hits until their channel is closed and empty. `missed` tells what else was answered since its last call.
pub async fn record_callbacks<H>(
    handle: Handle,
    mut hits: mpsc::Receiver<H>,
    read: impl Fn(H) -> Option<CallbackHit>,
    missed: impl Fn() -> Vec<Missed>,
) {
    let mut recorder = Recorder::default();
    let mut next_commit = Instant::now();
    let mut counts = tokio::time::interval(COUNTING_PAUSE);
    loop {
        let first = tokio::select! {
            first = hits.recv() => first,
            _ = counts.tick() => {
                recorder.count(missed());
                recorder.commit(&handle, true).await;
                continue;
            }
        };
        let Some(first) = first else { break };
        recorder.take(&handle, read(first)).await;
        while recorder.bytes < RECORDED_BYTES {
            // What waits already is taken even if the time is over.
            match timeout_at(next_commit, hits.recv()).await {
                Ok(Some(hit)) => recorder.take(&handle, read(hit)).await,
                Ok(None) | Err(_) => break,
            }
        }
        next_commit = Instant::now() + RECORDING_PAUSE;
        recorder.commit(&handle, false).await;
    }
    recorder.count(missed());
    recorder.commit(&handle, true).await;
}

#[derive(Default)]
struct Recorder {
    sampling: Sampling,
    mints: Mints,
    waiting: HashMap<CallbackId, Waiting>,
    /// The weight of what waits.
    bytes: usize,
}

/// What is to be recorded of a server.
#[derive(Default)]
struct Waiting {
    new: Vec<NewInteraction>,
    /// The places of the newest ones in `new`.
    same: HashMap<(IpAddr, Option<CallbackTag>, Request), usize>,
    left_out: u64,
    unknown_tags: u64,
    /// As of the last commit.
    share: Option<Share>,
}

impl Recorder {
    fn count(&mut self, missed: Vec<Missed>) {
        for it in missed {
            let waiting = self.waiting.entry(it.server).or_default();
            waiting.left_out += it.dropped;
            waiting.unknown_tags += it.unknown_tags;
        }
    }

    async fn take(&mut self, handle: &Handle, hit: Option<CallbackHit>) {
        let Some(hit) = hit else { return };
        let mut weight = hit.weight();
        let CallbackHit { server, heard, raw } = hit;
        let waiting = self.waiting.entry(server).or_default();
        let same = (heard.address(), heard.tag, heard.request.clone());
        let before = waiting.same.get(&same);
        if let Some(before) = before.and_then(|place| waiting.new.get_mut(*place)) {
            // Queries that are sent again differ in their number. The body of a request may say something new.
            if heard.request.kind() == RequestType::Dns || before.raw == raw {
                before.repeats += 1;
                return;
            }
        }
        let share = *waiting.share.get_or_insert_with(|| {
            let share = |callback: &Arc<Callback>| callback.interactions.share();
            let known = handle
                .state()
                .read(|world| world.callback(server).map(share));
            known.unwrap_or(Share::Full)
        });
        match self.sampling.keep(heard.at, server, heard.tag, share) {
            Some(left_out) => {
                let planted = match heard.tag {
                    Some(tag) => self.mints.planted(handle, server, tag, heard.at).await,
                    None => Some(Planted::default()),
                };
                let Some(planted) = planted else { return };
                weight += serde_json::to_string(&planted).map_or(0, |json| json.len());
                self.bytes += weight;
                waiting.same.insert(same, waiting.new.len());
                waiting.new.push(NewInteraction {
                    heard,
                    planted,
                    left_out,
                    repeats: 0,
                    raw,
                });
            }
            None => waiting.left_out += 1,
        }
    }

    /// Records everything that waits. What cannot be recorded is counted with the next one of its tag. Counts alone are recorded
    /// rarely.
    async fn commit(&mut self, handle: &Handle, with_counts: bool) {
        self.bytes = 0;
        let is_low = handle.state().room() != Room::Enough;
        let mut records = Vec::new();
        for (server, waiting) in &mut self.waiting {
            waiting.share = None;
            waiting.same.clear();
            let has_counts = waiting.left_out + waiting.unknown_tags > 0;
            if waiting.new.is_empty() && !(with_counts && has_counts) {
                continue;
            }
            records.push(RecordInteractions {
                server: *server,
                new: Arc::new(std::mem::take(&mut waiting.new)),
                left_out: waiting.left_out,
                unknown_tags: waiting.unknown_tags,
            });
        }
        let submitted = join_all(records.into_iter().map(|record| async move {
            if is_low {
                return (record, Err(SubmitError::DiskLow));
            }
            let recorded = handle.state().record_interactions(record.clone()).await;
            (record, recorded)
        }));
        for (record, recorded) in submitted.await {
            let server = record.server;
            let waiting = self.waiting.entry(server).or_default();
            let Err(error) = recorded else {
                (waiting.left_out, waiting.unknown_tags) = (0, 0);
                index(handle, server).await;
                continue;
            };
            tracing::debug!(%server, %error, "interactions are not recorded");
            waiting.left_out += record.new.len() as u64;
            for new in &*record.new {
                self.sampling.lost(server, new.heard.tag, new.left_out);
            }
        }
        // Servers come and go.
        let state = handle.state();
        let is_there = |server| state.read(|world| world.callback(server).is_some());
        self.waiting.retain(|server, waiting| {
            waiting.left_out + waiting.unknown_tags > 0 && is_there(*server)
        });
    }
}

/// Gives closed pages their line in the index.
async fn index(handle: &Handle, server: CallbackId) {
    if let Err(error) = index_pages(handle, server).await {
        tracing::warn!(%server, %error, "the index of interactions is behind; this is retried");
    }
}

async fn index_pages(handle: &Handle, server: CallbackId) -> Result<(), RemovalError> {
    let (state, now) = (handle.state(), handle.now());
    while let Some(index) = state.unindexed_page(server, now).await? {
        let page = index.line.page;
        state.submit(index).await?;
        let next = |callback: &Arc<Callback>| callback.interactions.indexed;
        // Newer interactions came in the meantime. The page is closed later.
        if state.read(|world| world.callback(server).map(next)) == Some(page) {
            break;
        }
    }
    Ok(())
}

impl Handle {
    pub fn callbacks(&self) -> Option<&CallbackSettings> {
        self.settings().callbacks.as_ref()
    }

    /// Deletes a callback server. Its files are removed afterwards.
    pub async fn delete_callback(&self, server: CallbackId) -> Result<(), SubmitError> {
        self.state().submit(DeleteCallback { server }).await?;
        let state = self.own_state().clone();
        // The hourly check continues what is interrupted here.
        tokio::spawn(async move {
            while matches!(state.submit(ClearCallback { server }).await, Ok(true)) {}
        });
        Ok(())
    }
}

/// Removes old interactions, expired names, and the files of deleted servers.
pub(crate) async fn remove_old(handle: &Handle, now: Timestamp) -> Result<(), RemovalError> {
    let state = handle.state();
    let (servers, deleted) = state.read(|world| {
        let servers: Vec<_> = world.callbacks().map(|it| (it.id, it.keep_days)).collect();
        (servers, world.deleted_callbacks().collect::<Vec<_>>())
    });
    for server in deleted {
        while state.submit(ClearCallback { server }).await? {}
    }
    if !servers.is_empty() {
        while state.submit(ExpireCallbackTokens { now }).await? {}
    }
    for (server, keep_days) in servers {
        // A server with damaged files does not keep the others.
        if let Err(error) = remove_of(handle, server, keep_days, now).await {
            tracing::warn!(%server, %error, "old interactions are not removed");
        }
    }
    Ok(())
}

async fn remove_of(
    handle: &Handle,
    server: CallbackId,
    keep_days: Option<u32>,
    now: Timestamp,
) -> Result<(), RemovalError> {
    index_pages(handle, server).await?;
    remove_mints(handle, server, now).await?;
    match keep_days {
        Some(days) => remove_pages(handle, server, now - TimeDelta::days(days.into())).await,
        None => Ok(()),
    }
}

/// Removes the oldest mints whose tags have expired. A mint that lives longer keeps the records of later ones.
async fn remove_mints(
    handle: &Handle,
    server: CallbackId,
    now: Timestamp,
) -> Result<(), RemovalError> {
    let state = handle.state();
    loop {
        let minted = |callback: &Arc<Callback>| callback.minted.clone();
        let minted = state.read(|world| world.callback(server).and_then(minted));
        let Some(Minted { next, live }) = minted else {
            return Ok(());
        };
        let first = live.oldest;
        let mut until = first;
        while until < next && u64::from(until - first) < INTERACTION_PAGES_REMOVED {
            if !live.never.contains(&until)
                && let Some(mint) = state.mint(server, until).await?
                && !mint.is_over(now)
            {
                break;
            }
            until += 1;
        }
        if until == first {
            return Ok(());
        }
        let remove = RemoveMints {
            server,
            first,
            until,
        };
        state.submit(remove).await?;
    }
}

/// Removes the pages whose newest interaction is older.
async fn remove_pages(
    handle: &Handle,
    server: CallbackId,
    before: Timestamp,
) -> Result<(), RemovalError> {
    let oldest = || {
        let state = handle.state();
        state.read(|world| Some(world.callback(server)?.interactions.oldest))
    };
    loop {
        let first = oldest();
        let pages = handle.state().oldest_pages(server).await?.into_iter();
        let old = pages.take_while(|page| page.until < before);
        let pages: Vec<IndexedPage> = old.take(INTERACTION_PAGES_REMOVED as usize).collect();
        if pages.is_empty() {
            return Ok(());
        }
        let count = pages.len();
        let remove = RemoveInteractions { server, pages };
        handle.state().submit(remove).await?;
        if oldest() == first {
            tracing::warn!(%server, "the index of interactions is damaged; old ones stay");
            return Ok(());
        }
        tracing::info!(%server, pages = count, "old interactions are removed");
    }
}

#[cfg(test)]
mod tests;
