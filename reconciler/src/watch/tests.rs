use std::fs;
use std::sync::mpsc::{self, Receiver};

use git2::Repository;
use notify::ErrorKind;

use super::*;
use crate::git::testing::{Fixture, git, has_reftable};
use crate::git::{CommitId, Scene};
use crate::limits::WATCH_ATTEMPTS;

/// Long enough for the busiest machine; a test waits this long only when it fails.
const PATIENCE: Duration = Duration::from_secs(180);

struct Watched {
    _watch: RepositoryWatch,
    wakes: Receiver<()>,
}

impl Watched {
    fn at(path: &Path) -> Watched {
        Watched::armed_by(path, Armed::new)
    }

    fn armed_by(
        path: &Path,
        arm: impl FnMut(&Path, &Arc<News>) -> Result<Armed, ArmError> + Send + 'static,
    ) -> Watched {
        let (sender, wakes) = mpsc::channel();
        let wake = move || {
            // The test may have ended.
            let _closed = sender.send(());
        };
        let watch = RepositoryWatch::armed_by(path, wake, arm, Duration::ZERO);
        Watched {
            _watch: watch.unwrap(),
            wakes,
        }
    }

    /// Waits until the expected change is visible after a wake-up.
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
fn every_change_of_a_reference_wakes() {
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
fn a_push_with_the_git_program_wakes() {
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
fn a_commit_in_a_work_tree_wakes() {
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
fn creating_and_removing_a_repository_wakes() {
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
fn a_replaced_repository_is_noticed_and_watched() {
    let source = Fixture::with_work_tree();
    source.push_text("1");
    let path = source.path();
    let folder = path.parent().unwrap().to_owned();
    let beside = |name: &str| folder.join(name);
    git(&folder, &["clone", "-q", "source", "other"]);
    git(&beside("other"), &["checkout", "-q", "-B", "main"]);
    git(
        &beside("other"),
        &["commit", "-q", "--allow-empty", "-m", "other"],
    );
    let other = tip(&beside("other"), "HEAD");
    let watched = Watched::at(&path);
    fs::rename(&path, beside("old")).unwrap();
    fs::rename(beside("other"), &path).unwrap();
    watched.sees("the other repository", || tip(&path, "HEAD") == other);
    git(&path, &["commit", "-q", "--allow-empty", "-m", "later"]);
    watched.sees("its commit", || tip(&path, "HEAD") != other);

    // Another case: a folder above the repository is replaced.
    let (deep, replaced) = (beside("deep"), beside("replaced"));
    fs::create_dir(&deep).unwrap();
    fs::rename(&path, deep.join("source")).unwrap();
    let path = deep.join("source");
    let watched = Watched::at(&path);
    fs::rename(&deep, &replaced).unwrap();
    watched.sees("its loss", || tip(&path, "HEAD").is_none());
    fs::rename(&replaced, &deep).unwrap();
    watched.sees("its return", || tip(&path, "HEAD").is_some());
}

#[test]
fn a_commit_in_a_repository_with_reftable_wakes() {
    if !has_reftable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let init = ["init", "-q", "-b", "main", "--ref-format=reftable"];
    git(dir.path(), &init);
    let commit = || {
        git(
            dir.path(),
            &["commit", "-q", "--allow-empty", "-m", "a commit"],
        );
    };
    commit();
    let watched = Watched::at(dir.path());
    commit();
    watched.sees("the commit", || true);
}

/// The new folder has the path of the watched folder, but is not watched.
#[test]
fn a_repository_is_noticed_in_a_folder_that_was_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("folder");
    let path = folder.join("flows");
    fs::create_dir(&folder).unwrap();
    let mut is_replaced = false;
    let watched = Watched::armed_by(&path, move |path, news| {
        let armed = Armed::new(path, news);
        if !is_replaced {
            is_replaced = true;
            fs::remove_dir(&folder).unwrap();
            fs::create_dir(&folder).unwrap();
        }
        armed
    });
    watched.sees("the new folder", || true);
    Repository::init(&path).unwrap();
    watched.sees("the repository", || Repository::open(&path).is_ok());
}

#[test]
fn a_watch_is_set_up_again_if_folders_kept_changing() {
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
fn a_refused_watch_is_retried_and_then_wakes() {
    let source = Fixture::bare();
    let mut refusals = 2;
    let watched = Watched::armed_by(&source.path(), move |path, news| {
        if refusals > 0 {
            refusals -= 1;
            let (path, source) = (
                path.to_owned(),
                notify::Error::new(ErrorKind::MaxFilesWatch),
            );
            return Err(ArmError { path, source });
        }
        Armed::new(path, news)
    });
    // It wakes when the watch is set up, because something may have changed before.
    watched.sees("the watch", || true);
    let commit = source.push_text("1");
    watched.sees("a push", || {
        tip(&source.path(), "refs/heads/main") == Some(commit)
    });
}

#[test]
fn a_dropped_watch_does_not_wake() {
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
