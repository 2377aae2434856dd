//! Watches a local repository, so that a push is noticed at once.
//!
//! A wake-up only means that the repository must be polled. Several changes may cause one wake-up, and one change may
//! cause several. The kernel does not report everything (network file systems, folders that cannot be listed), so
//! polling never stops.

mod armed;
mod news;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, path};

use self::armed::{ArmError, Armed};
use self::news::{News, Next};
use crate::limits::WATCH_RETRY;

/// Calls a closure when the references of a repository may have changed, until it is dropped.
///
/// The repository need not exist yet. Its creation and removal call the closure too.
pub(crate) struct RepositoryWatch {
    news: Arc<News>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error("cannot find the folder {}", path.display())]
    Path {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot start the thread that watches")]
    Thread(#[source] io::Error),
}

impl RepositoryWatch {
    /// Watches the repository at `path`. `wake` is called on its own thread and must not drop the watch. If the system
    /// refuses the watch (usually because of its limit), or the watch is lost later, this is logged and retried after a
    /// minute.
    pub(crate) fn new(
        path: &Path,
        wake: impl FnMut() + Send + 'static,
    ) -> Result<RepositoryWatch, WatchError> {
        RepositoryWatch::armed_by(path, wake, Armed::new, WATCH_RETRY)
    }

    /// Like `new`, with a function that sets up the watch, and the pause before a retry.
    fn armed_by(
        path: &Path,
        wake: impl FnMut() + Send + 'static,
        arm: impl FnMut(&Path, &Arc<News>) -> Result<Armed, ArmError> + Send + 'static,
        retry: Duration,
    ) -> Result<RepositoryWatch, WatchError> {
        let path = path::absolute(path).map_err(|source| WatchError::Path {
            path: path.to_owned(),
            source,
        })?;
        let news = Arc::new(News::default());
        let mut guard = Guard {
            path,
            news: Arc::clone(&news),
            wake,
            arm,
            retry,
        };
        // The watch is set up before this returns, because the caller then polls and must not miss later changes.
        let armed = guard.arm();
        let thread = thread::Builder::new()
            .name("repository-watch".to_owned())
            .spawn(move || guard.run(armed))
            .map_err(WatchError::Thread)?;
        Ok(RepositoryWatch {
            news,
            thread: Some(thread),
        })
    }
}

impl Drop for RepositoryWatch {
    fn drop(&mut self) {
        self.news.add(|pending| pending.stop = true);
        if let Some(thread) = self.thread.take() {
            // The panic of the closure was already reported.
            let _ended = thread.join();
        }
    }
}

/// Runs on the thread: keeps the watch up to date and calls `wake`.
struct Guard<W, A> {
    path: PathBuf,
    news: Arc<News>,
    wake: W,
    arm: A,
    retry: Duration,
}

impl<W, A> Guard<W, A>
where
    W: FnMut(),
    A: FnMut(&Path, &Arc<News>) -> Result<Armed, ArmError>,
{
    fn arm(&mut self) -> Result<Armed, ArmError> {
        (self.arm)(&self.path, &self.news)
    }

    fn run(mut self, armed: Result<Armed, ArmError>) {
        let mut armed = match armed {
            Ok(armed) => armed,
            Err(error) => match self.arm_again(error) {
                Some(armed) => armed,
                None => return,
            },
        };
        loop {
            match self.news.next() {
                Next::Stop => return,
                Next::Changed => (self.wake)(),
                // The new watch is set up before the old watch is dropped and before the repository is polled.
                Next::Rearm => match self.arm() {
                    Ok(new) => {
                        armed = new;
                        (self.wake)();
                    }
                    Err(error) => match self.arm_again(error) {
                        Some(new) => armed = new,
                        None => return,
                    },
                },
                Next::Lost(source) => {
                    drop(armed);
                    let path = self.path.clone();
                    match self.arm_again(ArmError { path, source }) {
                        Some(new) => armed = new,
                        None => return,
                    }
                }
            }
        }
    }

    /// Retries until the watch is set up. None if it must stop first.
    fn arm_again(&mut self, mut error: ArmError) -> Option<Armed> {
        loop {
            tracing::warn!(
                path = %self.path.display(),
                error = &error as &dyn std::error::Error,
                "the repository is not watched; it is only polled"
            );
            if self.news.stops_within(self.retry) {
                return None;
            }
            // The last error of the lost watch does not affect the new watch.
            self.news.add(|pending| pending.lost = None);
            match self.arm() {
                Ok(armed) => {
                    (self.wake)();
                    return Some(armed);
                }
                Err(again) => error = again,
            }
        }
    }
}
