//! Requests that take much memory or occupy a thread for long wait for a turn. Few run at once, and fewer of one share, so
//! nobody waits behind all requests of somebody else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::Share;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

pub(crate) struct Turns {
    all: Semaphore,
    /// How many turns one share has at once.
    of_share: usize,
    /// Those whose requests wait or run.
    shares: Mutex<BTreeMap<Share, Arc<Semaphore>>>,
}

/// A turn, which ends when it is dropped. Its holder must not wait for another turn of the same kind.
pub(crate) struct Turn {
    _of_all: Option<SemaphorePermit<'static>>,
    _of_share: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub(crate) const fn new(at_once: usize, of_share: usize) -> Self {
        Self {
            all: Semaphore::const_new(at_once),
            of_share,
            shares: Mutex::new(BTreeMap::new()),
        }
    }

    /// Waits for a turn. Requests of one share get their turns in the order in which they arrived.
    pub(crate) async fn wait(&'static self, share: Share) -> Turn {
        let of_share = {
            let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
            shares.retain(|_, own| Arc::strong_count(own) > 1);
            let own = shares
                .entry(share)
                .or_insert_with(|| Arc::new(Semaphore::new(self.of_share)));
            own.clone()
        };
        // The semaphores are never closed.
        let of_share = of_share.acquire_owned().await.ok();
        Turn {
            _of_all: self.all.acquire().await.ok(),
            _of_share: of_share,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use model::UserId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn one_share_leaves_turns_for_others_and_can_use_its_turns_again() {
        static TURNS: Turns = Turns::new(3, 2);
        let wait = |number| TURNS.wait(Share::User(UserId::from_uuid(Uuid::from_u128(number))));
        let now = |number| wait(number).now_or_never();
        let (first, second) = (now(1), now(1));
        assert!(first.is_some() && second.is_some());
        assert!(now(1).is_none(), "it has all its turns");
        let other = now(2);
        assert!(other.is_some());
        assert!(now(3).is_none(), "all turns are taken");
        let mut waiting = Box::pin(wait(1));
        assert!((&mut waiting).now_or_never().is_none());
        drop(first);
        assert!((&mut waiting).now_or_never().is_some());
        drop((second, other, waiting));
        assert!(now(3).is_some());
        assert_eq!(
            TURNS.shares.lock().unwrap().len(),
            1,
            "others are forgotten"
        );
    }
}
