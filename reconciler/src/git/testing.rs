//! Repositories for tests, made by libgit2, or by the `git` program without the configuration of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use git2::{Oid, Repository, RepositoryInitOptions, Signature, Time};
use tempfile::TempDir;

use super::{Calls, CommitId, Location, Mirror};

/// A folder with one repository and space for its mirror.
pub(crate) struct Fixture {
    dir: TempDir,
    pub(crate) repository: Repository,
}

/// One entry of a commit: a path, its mode and its bytes.
pub(crate) type Entry<'a> = (&'a str, i32, &'a [u8]);

pub(crate) const FILE: i32 = 0o100_644;
pub(crate) const LINK: i32 = 0o120_000;

impl Fixture {
    pub(crate) fn bare() -> Fixture {
        Fixture::init(true)
    }

    pub(crate) fn with_work_tree() -> Fixture {
        Fixture::init(false)
    }

    fn init(bare: bool) -> Fixture {
        let dir = TempDir::new().unwrap();
        let mut options = RepositoryInitOptions::new();
        options
            .bare(bare)
            .external_template(false)
            .initial_head("main");
        let repository = Repository::init_opts(dir.path().join("source"), &options).unwrap();
        Fixture { dir, repository }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("source")
    }

    pub(crate) fn location(&self) -> Location {
        Location::Local(self.path())
    }

    pub(crate) fn mirror_dir(&self) -> PathBuf {
        self.dir.path().join("mirror.git")
    }

    pub(crate) fn mirror(&self) -> Mirror {
        Mirror::new(self.mirror_dir(), Calls::default())
    }

    /// Commits exactly these entries on `refs/heads/main`.
    pub(crate) fn push(&self, entries: &[Entry<'_>]) -> CommitId {
        let parent = self.repository.refname_to_id("refs/heads/main").ok();
        let parents: Vec<Oid> = parent.into_iter().collect();
        self.commit("refs/heads/main", &parents, entries)
    }

    /// Commits one file, for tests that only need a history.
    pub(crate) fn push_text(&self, text: &str) -> CommitId {
        self.push(&[("workflows/a.yaml", FILE, text.as_bytes())])
    }

    /// Makes a commit with these parents and moves `reference` to it.
    pub(crate) fn commit(
        &self,
        reference: &str,
        parents: &[Oid],
        entries: &[Entry<'_>],
    ) -> CommitId {
        let mut index = git2::Index::new().unwrap();
        for (path, mode, bytes) in entries {
            let id = self.repository.blob(bytes).unwrap();
            index.add(&index_entry(path, *mode, id)).unwrap();
        }
        let tree = index.write_tree_to(&self.repository).unwrap();
        self.commit_tree(reference, parents, tree)
    }

    pub(crate) fn commit_tree(&self, reference: &str, parents: &[Oid], tree: Oid) -> CommitId {
        let repository = &self.repository;
        let seconds = 1_700_000_000 + i64::try_from(parents.len()).unwrap();
        let signature = Signature::new("Ada", "ada@example.org", &Time::new(seconds, 0)).unwrap();
        let parents: Vec<_> = parents
            .iter()
            .map(|parent| repository.find_commit(*parent).unwrap())
            .collect();
        let commit = repository
            .commit(
                None,
                &signature,
                &signature,
                "Change it\n\nwith a body",
                &repository.find_tree(tree).unwrap(),
                &parents.iter().collect::<Vec<_>>(),
            )
            .unwrap();
        repository.reference(reference, commit, true, "").unwrap();
        commit.into()
    }

    /// Runs `git` in the repository.
    pub(crate) fn git(&self, arguments: &[&str]) {
        git(&self.path(), arguments);
    }
}

/// True if the installed `git` supports reftable.
pub(crate) fn has_reftable() -> bool {
    let said = Command::new("git").arg("--version").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    super::remote::version(said.trim()) >= Some(super::limits::GIT_WITH_REFTABLE)
}

/// Runs `git` in `folder` and expects success.
pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn index_entry(path: &str, mode: i32, id: Oid) -> git2::IndexEntry {
    git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: u32::try_from(mode).unwrap(),
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}
