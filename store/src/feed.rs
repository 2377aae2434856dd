//! The change feed: which keys each acknowledged batch changed. The feed remembers a bounded number of batches and
//! never waits for a reader; one that falls too far behind is told so and reads the present state instead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::batch::Seq;
use crate::key::Key;
use crate::limits::FEED_BATCHES;

/// One acknowledged batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub seq: Seq,
    /// The keys it put, deleted or appended to, in order.
    pub keys: Arc<[Key]>,
}

/// The changes after `from` are no longer remembered, or are not of this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "changes after {from} are not available, only those after {oldest}; read the present state instead"
)]
pub struct Compacted {
    pub from: Seq,
    /// The earliest position that can be watched from.
    pub oldest: Seq,
}

/// A reader's position in the feed.
#[derive(Debug)]
pub struct Changes {
    feed: Arc<Mutex<Ring>>,
    wake: watch::Receiver<()>,
    position: Seq,
}

impl Changes {
    /// The next batch, waiting for one; `None` when the store has been closed. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Change>, Compacted> {
        loop {
            // Marked before the look, so that a change in between wakes the wait.
            self.wake.mark_unchanged();
            let found = lock(&self.feed).after(self.position)?;
            if let Some(change) = found {
                self.position = change.seq;
                return Ok(Some(change));
            }
            if self.wake.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// The sequence number of the last batch answered, or where the watch began.
    pub fn position(&self) -> Seq {
        self.position
    }
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Feed {
    ring: Arc<Mutex<Ring>>,
    wake: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Ring {
    /// Everything up to here is forgotten.
    floor: Seq,
    changes: VecDeque<Change>,
}

impl Feed {
    /// A feed that knows nothing before `floor`.
    pub(crate) fn new(floor: Seq) -> Self {
        let ring = Ring {
            floor,
            changes: VecDeque::new(),
        };
        Self {
            ring: Arc::new(Mutex::new(ring)),
            wake: watch::Sender::new(()),
        }
    }

    pub(crate) fn push(&self, change: Change) {
        {
            let mut ring = lock(&self.ring);
            ring.changes.push_back(change);
            if ring.changes.len() > FEED_BATCHES {
                ring.forget_oldest();
            }
        }
        self.wake.send_replace(());
    }

    pub(crate) fn watch(&self, from: Seq) -> Result<Changes, Compacted> {
        let ring = lock(&self.ring);
        let newest = ring.changes.back().map_or(ring.floor, |change| change.seq);
        if from < ring.floor || from > newest {
            return Err(Compacted {
                from,
                oldest: ring.floor,
            });
        }
        Ok(Changes {
            feed: self.ring.clone(),
            wake: self.wake.subscribe(),
            position: from,
        })
    }

    /// Forgets everything, as if no reader had kept up.
    pub(crate) fn compact(&self) {
        let mut ring = lock(&self.ring);
        while !ring.changes.is_empty() {
            ring.forget_oldest();
        }
    }
}

impl Ring {
    fn forget_oldest(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.floor = change.seq;
        }
    }

    fn after(&self, position: Seq) -> Result<Option<Change>, Compacted> {
        if position < self.floor {
            return Err(Compacted {
                from: position,
                oldest: self.floor,
            });
        }
        let at = self
            .changes
            .partition_point(|change| change.seq <= position);
        Ok(self.changes.get(at).cloned())
    }
}

/// A panic elsewhere cannot leave a ring half changed, so its lock stays usable.
fn lock(ring: &Mutex<Ring>) -> MutexGuard<'_, Ring> {
    ring.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(seq: u64) -> Change {
        Change {
            seq: Seq(seq),
            keys: Arc::from([Key::new(format!("k{seq}")).unwrap()]),
        }
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_and_blocks_nobody() {
        let feed = Feed::new(Seq(0));
        let mut slow = feed.watch(Seq(0)).unwrap();
        for seq in 1..=FEED_BATCHES as u64 + 2 {
            feed.push(change(seq));
        }
        assert_eq!(
            slow.next().await,
            Err(Compacted {
                from: Seq(0),
                oldest: Seq(2)
            })
        );
        let mut fresh = feed.watch(Seq(2)).unwrap();
        assert_eq!(fresh.next().await, Ok(Some(change(3))));
        assert_eq!(
            feed.watch(Seq(1)).unwrap_err(),
            Compacted {
                from: Seq(1),
                oldest: Seq(2)
            }
        );
    }

    #[tokio::test]
    async fn a_waiting_reader_wakes_for_a_change_and_for_the_end() {
        let feed = Feed::new(Seq(7));
        let mut changes = feed.watch(Seq(7)).unwrap();
        let reader = tokio::spawn(async move { (changes.next().await, changes.next().await) });
        tokio::task::yield_now().await;
        feed.push(change(8));
        drop(feed);
        assert_eq!(reader.await.unwrap(), (Ok(Some(change(8))), Ok(None)));
    }

    #[test]
    fn a_position_of_the_future_is_not_of_this_store() {
        assert!(Feed::new(Seq(7)).watch(Seq(8)).is_err());
        assert!(Feed::new(Seq(7)).watch(Seq(6)).is_err());
    }
}
