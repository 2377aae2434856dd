//! The world as everybody may see it: durable, and woken when it changes.

use std::sync::{PoisonError, RwLock};

use model::{Change, World};
use tokio::sync::watch;

/// The published world. A wake-up carries no truth; whoever is woken reads again.
pub(crate) struct Publication {
    world: RwLock<World>,
    version: watch::Sender<u64>,
}

impl Publication {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world: RwLock::new(world),
            version: watch::Sender::new(0),
        }
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        look(&self.world.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn publish(&self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        {
            let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
            for change in changes {
                world.apply(change);
            }
        }
        self.version.send_modify(|version| *version += 1);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
