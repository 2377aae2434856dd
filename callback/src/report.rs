//! From an answered query or request to a reported hit.

use std::collections::HashMap;
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Semaphore, mpsc, watch};

use crate::hit::{Hit, Kind};
use crate::ids::{ServerId, Tag};
use crate::limits::{FAIR_HITS, QUEUED_BYTES};
use crate::start::Clock;
use crate::table::{Found, Server, Table};

pub(crate) struct Reporter {
    table: watch::Receiver<Arc<Table>>,
    hits: mpsc::Sender<Hit>,
    room: Arc<Semaphore>,
    clock: Clock,
    minute: Mutex<Minute>,
    totals: Arc<Totals>,
}

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) answered: AtomicU64,
    /// Of these, the ones that named no known server.
    pub(crate) unknown: AtomicU64,
}

/// What the texts of a query or request name.
pub(crate) struct Named {
    pub(crate) id: ServerId,
    pub(crate) tag: Option<Tag>,
    pub(crate) server: Server,
}

/// The hits of each tag in the current minute. Only known ids are in it, so it has an end.
struct Minute {
    since: Instant,
    hits: HashMap<(ServerId, Option<Tag>), u32>,
    has_dropped: bool,
}

impl Default for Minute {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            hits: HashMap::new(),
            has_dropped: false,
        }
    }
}

impl Reporter {
    pub(crate) fn new(
        table: watch::Receiver<Arc<Table>>,
        hits: mpsc::Sender<Hit>,
        clock: Clock,
        totals: Arc<Totals>,
    ) -> Self {
        Self {
            table,
            hits,
            room: Arc::new(Semaphore::new(QUEUED_BYTES)),
            clock,
            minute: Mutex::default(),
            totals,
        }
    }

    /// Counts an answer. Returns the known id that the texts name.
    pub(crate) fn find(&self, texts: &[&[u8]]) -> Option<Named> {
        self.totals.answered.fetch_add(1, Ordering::Relaxed);
        let table = self.table.borrow();
        let count = match table.find(texts, self.now()) {
            Found::Known(id, tag) => {
                let server = table.servers.get(&id)?.clone();
                return Some(Named { id, tag, server });
            }
            Found::UnknownTag(counts) => &counts.unknown_tag,
            Found::UnknownServer => &self.totals.unknown,
        };
        count.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// A hit of this moment.
    pub(crate) fn hit(
        &self,
        named: &Named,
        peer: SocketAddr,
        kind: Kind,
        answer: String,
        rule: Option<String>,
    ) -> Hit {
        Hit {
            at: self.now(),
            peer,
            server: named.id,
            tag: named.tag,
            kind,
            answer,
            rule,
            room: None,
        }
    }

    /// Sends a hit of a server, or counts it as dropped, unless the server ignores it.
    pub(crate) fn report(&self, of: &Server, mut hit: Hit) {
        let server = hit.server;
        if of.rules.ignore.has(&hit) {
            return;
        }
        let is_half_full = || {
            self.hits.capacity() <= self.hits.max_capacity() / 2
                || self.room.available_permits() <= QUEUED_BYTES / 2
        };
        if !(self.is_flood(&hit) && is_half_full()) {
            let room = self.room.clone();
            hit.room = room.try_acquire_many_owned(hit.weight()).ok();
            if hit.room.is_some() && self.hits.try_send(hit).is_ok() {
                return;
            }
        }
        of.counts.dropped.fetch_add(1, Ordering::Relaxed);
        // Strangers decide how often this happens.
        if !mem::replace(&mut self.minute().has_dropped, true) {
            tracing::warn!(%server, "hits of callback servers are dropped, because they come faster than they are recorded");
        }
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        self.minute.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_flood(&self, hit: &Hit) -> bool {
        let mut minute = self.minute();
        if minute.since.elapsed() >= Duration::from_secs(60) {
            *minute = Minute::default();
        }
        let hits = minute.hits.entry((hit.server, hit.tag)).or_default();
        *hits = hits.saturating_add(1);
        *hits > FAIR_HITS
    }
}
