//! Waiters for changes of one job or token. A change wakes only its own waiters.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The keys with waiters. A wake-up carries no data: the waiter reads the state again.
pub(crate) struct Watchers<K>(Mutex<Watched<K>>);

struct Watched<K> {
    senders: HashMap<K, watch::Sender<()>>,
    /// How many keys remained when keys without waiters were last removed.
    swept: usize,
}

impl<K> Default for Watchers<K> {
    fn default() -> Self {
        Self(Mutex::new(Watched {
            senders: HashMap::new(),
            swept: 0,
        }))
    }
}

impl<K: Eq + Hash> Watchers<K> {
    /// Wakes after each change. Closed when no more changes can come.
    pub(crate) fn subscribe(&self, key: K) -> watch::Receiver<()> {
        let mut watched = self.lock();
        // Sweep when the number has doubled, so that the cost per subscriber stays constant.
        if watched.senders.len() > watched.swept * 2 {
            watched
                .senders
                .retain(|_, sender| sender.receiver_count() > 0);
            watched.swept = watched.senders.len();
        }
        let sender = watched
            .senders
            .entry(key)
            .or_insert_with(|| watch::Sender::new(()));
        sender.subscribe()
    }

    pub(crate) fn wake(&self, key: &K) {
        if let Some(sender) = self.lock().senders.get(key) {
            sender.send_replace(());
        }
    }

    /// Call this when no more changes can come.
    pub(crate) fn close(&self, key: &K) {
        self.lock().senders.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Watched<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::JobId;

    use super::*;

    fn job(n: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn a_change_wakes_only_its_waiters() {
        let watchers = Watchers::default();
        let (one, other) = (watchers.subscribe(job(1)), watchers.subscribe(job(2)));
        watchers.wake(&job(1));
        assert!(one.has_changed().unwrap());
        assert!(!other.has_changed().unwrap());
        watchers.close(&job(2));
        assert!(other.has_changed().is_err());
    }

    #[test]
    fn keys_without_waiters_are_removed() {
        let watchers = Watchers::default();
        let kept = watchers.subscribe(job(0));
        for n in 1..1_000 {
            drop(watchers.subscribe(job(n)));
        }
        assert!(watchers.lock().senders.len() < 10);
        watchers.wake(&job(0));
        assert!(kept.has_changed().unwrap());
    }
}
