//! Follows a source: waits for a reason to poll, polls, and applies the tip.
//!
//! Each source has its own task, so that a repository that fails or hangs does not delay other sources. A wake-up of
//! the task (a changed reference, a request, the interval) carries no data. Each poll reads the repository again.

mod configured;
mod desired;
mod poll;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{SourceName, Timestamp};
use state::{State, mirror_folder};
use tokio::sync::{OwnedMutexGuard, watch};

pub use self::configured::SourceConfig;
pub(crate) use self::configured::configure;
use crate::git::{Access, Calls, Location, Mirror};
use crate::limits::{FIRST_RETRY, JITTER_PERCENT};
use crate::supervise::lock;
use crate::watch::RepositoryWatch;

/// A source: requests polls and waits for them.
#[derive(Clone)]
pub(crate) struct SourceHandle {
    shared: Arc<Shared>,
}

struct Shared {
    config: SourceConfig,
    mirror: Mirror,
    requested: watch::Sender<u64>,
    handled: watch::Sender<u64>,
    checked_at: Mutex<Option<Timestamp>>,
    fetches: Arc<tokio::sync::Mutex<()>>,
}

impl SourceHandle {
    pub(crate) fn new(config: SourceConfig, mirrors: &Path, calls: Calls) -> Self {
        let mirror = Mirror::new(mirror_folder(mirrors, &config.name), calls)
            .with_access(config.access.clone());
        Self {
            shared: Arc::new(Shared {
                config,
                mirror,
                requested: watch::Sender::new(0),
                handled: watch::Sender::new(0),
                checked_at: Mutex::new(None),
                fetches: Arc::default(),
            }),
        }
    }

    pub(crate) fn name(&self) -> &SourceName {
        &self.shared.config.name
    }

    pub(crate) fn access(&self) -> &Access {
        &self.shared.config.access
    }

    pub(crate) fn mirror(&self) -> &Mirror {
        &self.shared.mirror
    }

    pub(crate) fn location(&self) -> &Location {
        &self.shared.config.location
    }

    /// Requests a poll and returns the number of the request.
    pub(crate) fn request(&self) -> u64 {
        self.shared
            .requested
            .send_modify(|requested| *requested += 1);
        *self.shared.requested.borrow()
    }

    /// Waits for the end of a poll that began after the request.
    pub(crate) async fn handled(&self, request: u64) {
        let mut handled = self.shared.handled.subscribe();
        // The sender lives as long as this handle.
        drop(handled.wait_for(|handled| *handled >= request).await);
    }

    /// Waits for the turn to fetch a single commit. A fetch needs a thread, and many jobs may need a fetch.
    pub(crate) async fn turn_to_fetch(&self) -> OwnedMutexGuard<()> {
        let fetches = Arc::clone(&self.shared.fetches);
        fetches.lock_owned().await
    }

    /// When the repository was last read successfully, since the daemon started.
    pub(crate) fn checked_at(&self) -> Option<Timestamp> {
        *lock(&self.shared.checked_at)
    }

    /// Follows the source for as long as the daemon runs.
    pub(crate) async fn follow(self, state: State) {
        let config = &self.shared.config;
        let _watch = self.watch();
        let mut requested = self.shared.requested.subscribe();
        let mut applied = None;
        let mut failures = 0;
        loop {
            let goal = *requested.borrow_and_update();
            match poll::poll(&state, config, &self.shared.mirror, &mut applied).await {
                Ok(()) => {
                    failures = 0;
                    poll::keep_commits(&state, config, &self.shared.mirror).await;
                    *lock(&self.shared.checked_at) = Some(state.now());
                }
                Err(poll::PollFailed) => failures += 1,
            }
            self.shared.handled.send_replace(goal);
            tokio::select! {
                changed = requested.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause(config.interval, failures)) => {}
            }
        }
    }

    /// Watches a local repository, so that a push is noticed at once. Polling continues.
    fn watch(&self) -> Option<RepositoryWatch> {
        let Location::Local(path) = &self.shared.config.location else {
            return None;
        };
        let handle = self.clone();
        let wake = move || {
            handle.request();
        };
        match RepositoryWatch::new(path, wake) {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::warn!(source = %self.shared.config.name, %error, "the repository cannot be watched; it is only polled");
                None
            }
        }
    }
}

/// The time until the next poll: the interval, or less after a failure, with jitter so that the sources are not polled
/// at the same time.
fn pause(interval: Duration, failures: u32) -> Duration {
    let base = match failures {
        0 => interval,
        failures => FIRST_RETRY
            .saturating_mul(2_u32.saturating_pow(failures - 1))
            .min(interval),
    };
    let share = u32::from(uuid::Uuid::new_v4().as_bytes()[0]);
    base + base * JITTER_PERCENT / 100 * share / 255
}
