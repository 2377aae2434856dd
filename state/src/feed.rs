//! The changes of each commit, for followers. The feed keeps the newest commits. A follower that falls behind them gets
//! [`ChangesGone`], reads the world and subscribes again. Publishing never waits for a follower.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Change;
use store::Seq;
use tokio::sync::watch;

use crate::limits::{FEED_CHANGES, FEED_COMMITS};

/// The changes of one commit, in the order of its decisions.
#[derive(Debug, Clone)]
pub struct Published {
    pub seq: Seq,
    /// Without the texts of revisions.
    pub changes: Arc<[Change]>,
}

/// The feed does not have the changes after this commit: they were dropped, or do not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the changes after commit {from} are not available, only changes after {oldest}; read the current state"
)]
pub struct ChangesGone {
    /// The commit after which the changes were requested.
    pub from: Seq,
    /// The earliest commit that can be requested.
    pub oldest: Seq,
}

/// A follower of the commits.
pub struct Subscription {
    feed: Arc<Feed>,
    wake: watch::Receiver<()>,
    /// The last commit that the follower got.
    place: Seq,
}

impl Subscription {
    /// The last commit that the follower got.
    pub fn place(&self) -> Seq {
        self.place
    }

    /// Waits for the next commit with changes. No commit is lost when the future is dropped.
    ///
    /// # Errors
    /// If the next commit is no longer kept. Later calls fail in the same way; the follower must subscribe again.
    pub async fn next(&mut self) -> Result<Published, ChangesGone> {
        loop {
            // Do this before reading the ring, so that a commit in between wakes the task.
            self.wake.mark_unchanged();
            if let Some(published) = self.feed.ring().after(self.place)? {
                self.place = published.seq;
                return Ok(published);
            }
            // This cannot fail: the feed owns the sender.
            let _ = self.wake.changed().await;
        }
    }
}

pub(crate) struct Feed {
    ring: Mutex<Ring>,
    wake: watch::Sender<()>,
}

struct Ring {
    commits: VecDeque<Published>,
    /// The number of changes in `commits`.
    changes: usize,
    /// Every later commit with changes is kept.
    floor: Seq,
    newest: Seq,
}

impl Feed {
    pub(crate) fn new(seq: Seq) -> Self {
        Self {
            ring: Mutex::new(Ring {
                commits: VecDeque::new(),
                changes: 0,
                floor: seq,
                newest: seq,
            }),
            wake: watch::Sender::new(()),
        }
    }

    /// Adds a commit and wakes the followers. Without a sequence number nothing was stored: no commit is added.
    pub(crate) fn publish(&self, seq: Option<Seq>, changes: Vec<Change>) {
        if let Some(seq) = seq {
            let kept: Arc<[Change]> = changes.into_iter().filter_map(kept).collect();
            self.ring().add(Published { seq, changes: kept });
        }
        self.wake.send_replace(());
    }

    pub(crate) fn changed(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }

    pub(crate) fn subscribe(self: &Arc<Self>, from: Seq) -> Result<Subscription, ChangesGone> {
        let wake = self.wake.subscribe();
        self.ring().after(from)?;
        Ok(Subscription {
            feed: self.clone(),
            wake,
            place: from,
        })
    }

    pub(crate) fn newest(&self) -> Seq {
        self.ring().newest
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The change as followers get it. Reading a history changes nothing, and texts may be large.
fn kept(change: Change) -> Option<Change> {
    match change {
        Change::Recent(..) => None,
        Change::Revision(revision, _) => Some(Change::Revision(revision, None)),
        change => Some(change),
    }
}

impl Ring {
    fn add(&mut self, published: Published) {
        self.newest = published.seq;
        if published.changes.is_empty() {
            return;
        }
        self.changes += published.changes.len();
        self.commits.push_back(published);
        while self.commits.len() > FEED_COMMITS
            || (self.changes > FEED_CHANGES && self.commits.len() > 1)
        {
            let Some(oldest) = self.commits.pop_front() else {
                return;
            };
            self.changes -= oldest.changes.len();
            self.floor = oldest.seq;
        }
    }

    /// The first commit after `place`.
    fn after(&self, place: Seq) -> Result<Option<Published>, ChangesGone> {
        if place < self.floor || place > self.newest {
            return Err(ChangesGone {
                from: place,
                oldest: self.floor,
            });
        }
        let next = self
            .commits
            .partition_point(|published| published.seq <= place);
        Ok(self.commits.get(next).cloned())
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use model::{Recent, ScanKey, TokenId, WorkflowId};

    use super::*;

    fn change() -> Change {
        Change::TokenRemoved(TokenId::from_uuid(uuid::Uuid::nil()))
    }

    fn read() -> Change {
        let scan = ScanKey {
            workflow: WorkflowId::from_uuid(uuid::Uuid::nil()),
            scan: "a".parse().unwrap(),
        };
        Change::Recent(scan, Arc::new(Recent::default()))
    }

    fn poll(subscription: &mut Subscription) -> Option<Result<Seq, ChangesGone>> {
        let next = pin!(subscription.next());
        match next.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(next) => Some(next.map(|published| published.seq)),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_follower_gets_each_commit_after_its_place_once() {
        let feed = Arc::new(Feed::new(Seq(10)));
        let mut early = feed.subscribe(Seq(10)).unwrap();
        assert_eq!(poll(&mut early), None);
        feed.publish(Some(Seq(11)), vec![change()]);
        feed.publish(None, vec![read()]);
        // A commit without changes for followers is skipped.
        feed.publish(Some(Seq(12)), vec![read()]);
        feed.publish(Some(Seq(13)), vec![change(), read(), change()]);
        let mut late = feed.subscribe(Seq(11)).unwrap();
        assert_eq!(poll(&mut early), Some(Ok(Seq(11))));
        for follower in [&mut early, &mut late] {
            assert_eq!(poll(follower), Some(Ok(Seq(13))));
            assert_eq!(poll(follower), None);
        }
        assert_eq!(feed.newest(), Seq(13));
        assert_eq!(
            poll(&mut feed.subscribe(Seq(12)).unwrap()),
            Some(Ok(Seq(13)))
        );
    }

    #[test]
    fn a_dropped_or_future_place_is_refused() {
        let feed = Arc::new(Feed::new(Seq(10)));
        let gone = |from, oldest| {
            Err(ChangesGone {
                from: Seq(from),
                oldest: Seq(oldest),
            })
        };
        assert_eq!(feed.subscribe(Seq(9)).map(|_| ()), gone(9, 10));
        assert_eq!(feed.subscribe(Seq(11)).map(|_| ()), gone(11, 10));
        let mut slow = feed.subscribe(Seq(10)).unwrap();
        for seq in 11..=11 + FEED_COMMITS as u64 {
            feed.publish(Some(Seq(seq)), vec![change()]);
        }
        assert_eq!(poll(&mut slow), Some(gone(10, 11).map(|()| Seq(0))));
        assert_eq!(
            poll(&mut feed.subscribe(Seq(11)).unwrap()),
            Some(Ok(Seq(12)))
        );
    }

    #[test]
    fn commits_with_many_changes_displace_older_commits_but_the_newest_is_kept() {
        let feed = Arc::new(Feed::new(Seq(0)));
        let many = |count: usize| vec![change(); count];
        feed.publish(Some(Seq(1)), many(1));
        feed.publish(Some(Seq(2)), many(FEED_CHANGES + 1));
        assert!(feed.subscribe(Seq(0)).is_err());
        assert_eq!(poll(&mut feed.subscribe(Seq(1)).unwrap()), Some(Ok(Seq(2))));
        feed.publish(Some(Seq(3)), many(FEED_CHANGES));
        assert!(feed.subscribe(Seq(1)).is_err());
        assert_eq!(feed.ring().changes, FEED_CHANGES);
    }
}
