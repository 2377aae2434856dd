//! From an answered query or request to a reported hit.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, watch};

use crate::hit::Hit;
use crate::ids::{ServerId, Tag};
use crate::limits::FAIR_HITS;
use crate::start::Clock;
use crate::table::{Found, Table};

pub(crate) struct Reporter {
    table: watch::Receiver<Arc<Table>>,
    hits: mpsc::Sender<Hit>,
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
            clock,
            minute: Mutex::default(),
            totals,
        }
    }

    /// Counts an answer. Returns the known id that the texts name.
    pub(crate) fn find(&self, texts: &[&[u8]]) -> Option<(ServerId, Option<Tag>)> {
        self.totals.answered.fetch_add(1, Ordering::Relaxed);
        let table = self.table.borrow();
        let count = match table.find(texts, self.now()) {
            Found::Known(server, tag) => return Some((server, tag)),
            Found::UnknownTag(counts) => &counts.unknown_tag,
            Found::UnknownServer => &self.totals.unknown,
        };
        count.fetch_add(1, Ordering::Relaxed);
        None
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Sends a hit, or counts it as dropped.
    pub(crate) fn report(&self, hit: Hit) {
        let server = hit.server;
        let is_full = self.is_flood(&hit) && self.hits.capacity() <= self.hits.max_capacity() / 2;
        if !is_full && self.hits.try_send(hit).is_ok() {
            return;
        }
        if let Some(known) = self.table.borrow().servers.get(&server) {
            known.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
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
