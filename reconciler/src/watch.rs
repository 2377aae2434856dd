//! Watches a local repository, so that a push is seen at once.
//!
//! A wake-up only says "look again": several changes may make one, and a change may make one too
//! many. What the kernel does not tell (network file systems, a folder moved away further up) is
//! left to the poll, which never stops.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, path};

use notify::{ErrorKind, Event, RecommendedWatcher, Watcher};

use crate::git::{Scene, Verdict};
use crate::limits::{WATCH_ATTEMPTS, WATCH_RETRY};

/// Calls a closure when the references of a repository may have changed. Dropping it stops that.
///
/// The repository need not exist yet: it is waited for, and its coming and going wake as well.
pub(crate) struct RepositoryWatch {
    news: Arc<News>,
    thread: Option<JoinHandle<()>>,
}

/// Why a repository is not watched.
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
    /// Watches the repository at `path`. `wake` is called on a thread of its own and must not drop the watch. What the
    /// system refuses, usually for its limit of watches, is logged and tried again after a minute, as is a watch that
    /// is lost later.
    ///
    /// # Errors
    /// When there is no working directory to begin the path with, or no thread to watch on.
    pub(crate) fn new(
        path: &Path,
        wake: impl FnMut() + Send + 'static,
    ) -> Result<RepositoryWatch, WatchError> {
        RepositoryWatch::armed_by(path, wake, Armed::new, WATCH_RETRY)
    }

    /// The same with another way to set the watch up and another pause before it is tried again.
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
        // Whoever asked looks next, and must not miss what happens after that look.
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
            // A panic of the closure was reported when it happened.
            let _ended = thread.join();
        }
    }
}

/// What has happened and is not yet acted upon. Repetitions merge, so it never grows.
#[derive(Default)]
struct News {
    pending: Mutex<Pending>,
    arrived: Condvar,
}

#[derive(Default)]
struct Pending {
    stop: bool,
    lost: Option<notify::Error>,
    rearm: bool,
    changed: bool,
}

enum Next {
    Stop,
    Lost(notify::Error),
    Rearm,
    Changed,
}

impl News {
    fn add(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.lock());
        self.arrived.notify_all();
    }

    /// Waits for the weightiest news; the lighter ones are covered by acting on it.
    fn next(&self) -> Next {
        let mut pending = self.lock();
        loop {
            if pending.stop {
                return Next::Stop;
            }
            let taken = std::mem::take(&mut *pending);
            if let Some(error) = taken.lost {
                return Next::Lost(error);
            }
            if taken.rearm {
                return Next::Rearm;
            }
            if taken.changed {
                return Next::Changed;
            }
            pending = self
                .arrived
                .wait(pending)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the pause to pass; true when it is time to stop.
    fn stops_within(&self, pause: Duration) -> bool {
        let (pending, _) = self
            .arrived
            .wait_timeout_while(self.lock(), pause, |pending| !pending.stop)
            .unwrap_or_else(PoisonError::into_inner);
        pending.stop
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's part: it keeps the watch fitting to what is there, and wakes.
struct Guard<W, A> {
    path: PathBuf,
    news: Arc<News>,
    wake: W,
    arm: A,
    /// The pause before a watch is set up again.
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
                Next::Rearm if armed.still_waits_for(&self.path) => {}
                // The new watch stands before the old one falls and before anybody looks.
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

    /// Tries until the watch stands; none when it is time to stop.
    fn arm_again(&mut self, mut error: ArmError) -> Option<Armed> {
        loop {
            tracing::warn!(
                path = %self.path.display(),
                error = &error as &dyn std::error::Error,
                "the repository is not watched; it is looked at by its interval only"
            );
            if self.news.stops_within(self.retry) {
                return None;
            }
            // What the lost watch said last is not about the new one.
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

/// What the system refuses to watch.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch the folder {}", path.display())]
struct ArmError {
    path: PathBuf,
    source: notify::Error,
}

/// A watch that stands.
struct Armed {
    scene: Scene,
    _watcher: RecommendedWatcher,
}

impl Armed {
    fn new(path: &Path, news: &Arc<News>) -> Result<Armed, ArmError> {
        Armed::over(path, news, || Scene::at(path))
    }

    /// Sets the watch up over what `look` sees, again while that changes under its hands.
    fn over(
        path: &Path,
        news: &Arc<News>,
        mut look: impl FnMut() -> Scene,
    ) -> Result<Armed, ArmError> {
        let mut scene = look();
        let mut attempt = 1;
        loop {
            match watcher(&scene, Arc::clone(news)) {
                Ok(watcher) => {
                    let now = look();
                    let is_current = now == scene;
                    if is_current || attempt == WATCH_ATTEMPTS {
                        // The step that came in between was not seen by this watch.
                        if !is_current {
                            news.add(|pending| pending.rearm = true);
                        }
                        return Ok(Armed {
                            scene,
                            _watcher: watcher,
                        });
                    }
                    scene = now;
                }
                Err(source) if attempt == WATCH_ATTEMPTS || !is_vanished(&source) => {
                    let path = path.to_owned();
                    return Err(ArmError { path, source });
                }
                Err(_) => scene = look(),
            }
            attempt += 1;
        }
    }

    fn still_waits_for(&self, path: &Path) -> bool {
        match &self.scene {
            Scene::Waiting { .. } => self.scene == Scene::at(path),
            // A folder may have come that the watch does not cover yet.
            Scene::Repository { .. } => false,
        }
    }
}

fn watcher(scene: &Scene, news: Arc<News>) -> Result<RecommendedWatcher, notify::Error> {
    let of_handler = scene.clone();
    let mut watcher =
        notify::recommended_watcher(move |event: notify::Result<Event>| match event {
            Ok(event) => match of_handler.judge(&event) {
                Verdict::Nothing => {}
                Verdict::Changed => news.add(|pending| pending.changed = true),
                Verdict::Rearm => news.add(|pending| pending.rearm = true),
            },
            Err(error) => news.add(|pending| pending.lost = Some(error)),
        })?;
    for (folder, mode) in scene.folders() {
        watcher.watch(&folder, mode)?;
    }
    Ok(watcher)
}

fn is_vanished(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        ErrorKind::Generic(_)
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_)
        | ErrorKind::MaxFilesWatch => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{self, Receiver};

    use git2::Repository;

    use super::*;
    use crate::git::CommitId;
    use crate::git::testing::{Fixture, git};

    /// Long enough for the busiest machine; never waited for when the watch works.
    const PATIENCE: Duration = Duration::from_secs(180);

    struct Watched {
        _watch: RepositoryWatch,
        wakes: Receiver<()>,
    }

    impl Watched {
        fn at(path: &Path) -> Watched {
            let (sender, wakes) = mpsc::channel();
            let watch = RepositoryWatch::new(path, move || {
                // The test may be over.
                let _closed = sender.send(());
            });
            Watched {
                _watch: watch.unwrap(),
                wakes,
            }
        }

        /// Waits until a wake-up finds what is expected, as the reconciler would.
        fn sees(&self, what: &str, mut is_there: impl FnMut() -> bool) {
            loop {
                let woken = self.wakes.recv_timeout(PATIENCE);
                assert!(woken.is_ok(), "no wake-up for {what}");
                if is_there() {
                    return;
                }
            }
        }
    }

    fn tip(path: &Path, reference: &str) -> Option<CommitId> {
        let repository = Repository::open(path).ok()?;
        repository.refname_to_id(reference).ok().map(CommitId::from)
    }

    #[test]
    fn every_way_to_move_a_reference_wakes() {
        let source = Fixture::bare();
        let path = source.path();
        source.push_text("1");
        let watched = Watched::at(&path);

        let commit = source.push_text("2");
        watched.sees("a push", || tip(&path, "refs/heads/main") == Some(commit));

        source.git(&["branch", "team/deep/feature"]);
        watched.sees("a branch in new folders", || {
            tip(&path, "refs/heads/team/deep/feature").is_some()
        });
        source.git(&["update-ref", "refs/heads/team/deep/feature", "HEAD~1"]);
        watched.sees("a push in new folders", || {
            tip(&path, "refs/heads/team/deep/feature") != Some(commit)
        });

        source.git(&["pack-refs", "--all", "--prune"]);
        watched.sees("packed references", || path.join("packed-refs").exists());
        source.git(&["branch", "-D", "team/deep/feature"]);
        watched.sees("a deleted branch", || {
            tip(&path, "refs/heads/team/deep/feature").is_none()
        });

        source.git(&["symbolic-ref", "HEAD", "refs/heads/other"]);
        watched.sees("another HEAD", || {
            fs::read_to_string(path.join("HEAD"))
                .unwrap()
                .contains("other")
        });
    }

    #[test]
    fn a_push_through_the_program_wakes() {
        let source = Fixture::bare();
        source.push_text("1");
        let path = source.path();
        let clone = path.with_file_name("clone");
        git(&path, &["clone", "-q", ".", &clone.display().to_string()]);
        let watched = Watched::at(&path);
        git(&clone, &["commit", "-q", "--allow-empty", "-m", "pushed"]);
        git(&clone, &["push", "-q", "origin", "HEAD:refs/heads/a/b"]);
        watched.sees("the push", || tip(&path, "refs/heads/a/b").is_some());
    }

    #[test]
    fn commits_in_a_work_tree_wake() {
        let source = Fixture::with_work_tree();
        source.push_text("1");
        let watched = Watched::at(&source.path());
        let commit = source.push_text("2");
        let path = source.path();
        watched.sees("the commit", || {
            tip(&path, "refs/heads/main") == Some(commit)
        });

        source.git(&["worktree", "add", "-q", "-b", "linked", "../linked"]);
        let linked = path.with_file_name("linked");
        let watched = Watched::at(&linked);
        let before = tip(&linked, "HEAD");
        git(&linked, &["commit", "-q", "--allow-empty", "-m", "beside"]);
        watched.sees("the commit beside", || tip(&linked, "HEAD") != before);
    }

    #[test]
    fn a_repository_is_waited_for_and_its_loss_is_seen() {
        let source = Fixture::bare();
        let parent = source.path().parent().unwrap().to_owned();
        let path = parent.join("not/yet/there");
        let watched = Watched::at(&path);
        let made = || Repository::open(&path).is_ok();
        for _ in 0..2 {
            fs::create_dir_all(&path).unwrap();
            git(&path, &["init", "-q", "-b", "main"]);
            watched.sees("a new repository", made);
            git(&path, &["commit", "-q", "--allow-empty", "-m", "first"]);
            watched.sees("its first commit", || {
                tip(&path, "refs/heads/main").is_some()
            });
            fs::remove_dir_all(parent.join("not")).unwrap();
            watched.sees("its loss", || !made());
        }
    }

    #[test]
    fn a_watch_that_could_not_keep_up_is_set_up_again() {
        let folder = tempfile::tempdir().unwrap();
        let steps = WATCH_ATTEMPTS + 1;
        let folders: Vec<PathBuf> = (0..steps)
            .map(|step| folder.path().join(step.to_string()))
            .collect();
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        let news = Arc::new(News::default());
        let mut step = 0;
        let armed = Armed::over(folder.path(), &news, || {
            let seen = Scene::Waiting {
                path: folder.path().join("flows"),
                folders: vec![folders[step.min(steps - 1)].clone()],
            };
            step += 1;
            seen
        });
        assert!(armed.is_ok());
        assert!(matches!(news.next(), Next::Rearm));
    }

    #[test]
    fn a_watch_that_is_refused_at_first_is_tried_again_and_then_wakes() {
        let source = Fixture::bare();
        let (sender, wakes) = mpsc::channel();
        let mut refusals = 2;
        let watch = RepositoryWatch::armed_by(
            &source.path(),
            move || {
                // The test may be over.
                let _closed = sender.send(());
            },
            move |path, news| {
                if refusals > 0 {
                    refusals -= 1;
                    let (path, source) = (
                        path.to_owned(),
                        notify::Error::new(ErrorKind::MaxFilesWatch),
                    );
                    return Err(ArmError { path, source });
                }
                Armed::new(path, news)
            },
            Duration::ZERO,
        );
        let watched = Watched {
            _watch: watch.unwrap(),
            wakes,
        };
        // It wakes once it stands: something may have happened before.
        watched.sees("the watch", || true);
        let commit = source.push_text("1");
        watched.sees("a push", || {
            tip(&source.path(), "refs/heads/main") == Some(commit)
        });
    }

    #[test]
    fn a_dropped_watch_is_silent() {
        let source = Fixture::bare();
        let watched = Watched::at(&source.path());
        let Watched { _watch, wakes } = watched;
        drop(_watch);
        source.push_text("1");
        assert_eq!(
            wakes.recv_timeout(PATIENCE),
            Err(mpsc::RecvTimeoutError::Disconnected)
        );
    }
}
