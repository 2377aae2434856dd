//! The bare mirror of a source: fetching into it, reading from it, and rebuilding it when it is damaged.
//!
//! Only the daemon uses the folder. It is only a copy, so nothing in it is synced to disk. A read detects and marks
//! damage, and the next fetch repairs it. A new mirror is built next to the old mirror and renamed when it is complete.
//! A read during a fetch is safe; at worst it fails once.

#![expect(
    clippy::disallowed_methods,
    reason = "Git's own files in the mirror are no records of the state"
)]

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::{fs, io};

use git2::{Repository, RepositoryInitOptions};

use super::access::Access;
use super::calls::Calls;
use super::error::MirrorFault;
use super::files::{self, Files, FilesError};
use super::limits::FetchLimits;
use super::local::{LocalSource, Opened};
use super::reference::Kind;
use super::remote::{Listed, RemoteSource};
use super::snapshot::{Folder, Unreadable};
use super::{
    CommitId, Content, FetchError, FileLimits, Location, ReadError, ReadLimits, Reference,
    Relation, RemoteUrl, Snapshot, Tip, copy, limits, references, relation, snapshot, tip,
};
use crate::supervise::lock;

const TIP: &str = "refs/everscan/tip";

/// This file marks a mirror that could not be read.
const DAMAGED: &str = "everscan-damaged";

/// A bare repository with everything fetched from one source.
#[derive(Debug, Clone)]
pub(crate) struct Mirror {
    dir: PathBuf,
    access: Access,
    /// True if a warning was logged that every user can read the token.
    warned: Arc<AtomicBool>,
    limits: FetchLimits,
    git: OsString,
    calls: Calls,
    /// Held by a fetch, because two fetches into one mirror must not overlap.
    fetching: Arc<Mutex<()>>,
}

impl Mirror {
    /// The mirror in `dir`. The first fetch creates it. Its calls of the `git` program are registered in `calls`.
    pub(crate) fn new(dir: PathBuf, calls: Calls) -> Mirror {
        Mirror {
            dir,
            access: Access::default(),
            warned: Arc::default(),
            limits: FetchLimits::default(),
            git: OsString::from("git"),
            calls,
            fetching: Arc::default(),
        }
    }

    /// Sets the access to the remote.
    pub(crate) fn with_access(self, access: Access) -> Mirror {
        Mirror { access, ..self }
    }

    /// Sets another program in place of `git`.
    #[cfg(test)]
    pub(crate) fn with_program(self, git: OsString) -> Mirror {
        Mirror { git, ..self }
    }

    #[cfg(test)]
    pub(crate) fn with_limits(self, limits: FetchLimits) -> Mirror {
        Mirror { limits, ..self }
    }

    /// Looks up the commit of `reference` (by default the repository's HEAD), and fetches it unless the mirror has it.
    pub(crate) fn fetch(
        &self,
        location: &Location,
        reference: Option<&Reference>,
    ) -> Result<Tip, FetchError> {
        let _locked = lock(&self.fetching);
        let wanted = Reference::kind_of(reference);
        let source = self.connect(location, wanted)?;
        let tip = self.fetch_from(&source)?;
        Ok(Tip {
            default_reference: source.head(wanted),
            ..tip
        })
    }

    fn fetch_from(&self, source: &Source<'_>) -> Result<Tip, FetchError> {
        if let Some(mirror) = self.usable() {
            if let Ok(tip) = tip::read(&mirror, source.commit()) {
                self.remember(&mirror, tip.commit)?;
                return Ok(tip);
            }
            match self.bring(source, &mirror, false) {
                Ok(commit) => {
                    if let Ok(tip) = tip::read(&mirror, commit) {
                        return Ok(tip);
                    }
                }
                // The mirror may be damaged.
                Err(FetchError::Mirror { .. } | FetchError::GitFailed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.build(source)
    }

    /// Fetches one commit that the mirror does not have, if the repository still serves it.
    pub(crate) fn fetch_commit(
        &self,
        location: &Location,
        commit: CommitId,
    ) -> Result<(), FetchError> {
        let _locked = lock(&self.fetching);
        let source = self.connect(location, &Kind::Commit(commit))?;
        let mirror = match Repository::open_bare(&self.dir) {
            Ok(mirror) => mirror,
            Err(_) => create(&self.dir).map_err(|source| self.fault(source))?,
        };
        match &source {
            Source::Local { repository, commit } => {
                repository.copy_into(&mirror, *commit, &self.limits)
            }
            Source::Remote { remote, listed } => {
                remote.fetch_into(mirror.path(), listed, &references::name(commit), true)
            }
        }
    }

    /// Gives each of these commits a reference, if the mirror has the commit, and removes all other references.
    pub(crate) fn keep(&self, commits: &BTreeSet<CommitId>) -> Result<(), ReadError> {
        let _locked = lock(&self.fetching);
        references::keep(&self.open_to_read()?, commits).map_err(|source| self.damaged(source))
    }

    /// Lists the files of a commit at or below `paths`; all files if there are none.
    pub(crate) fn files(
        &self,
        commit: CommitId,
        paths: &[String],
        limits: &FileLimits,
    ) -> Result<Files, FilesError> {
        let mirror = Repository::open_bare(&self.dir).map_err(FilesError::Damaged)?;
        files::list(&mirror, commit, paths, limits).inspect_err(|error| self.note(error))
    }

    /// Writes the tar of listed files.
    pub(crate) fn write_files(&self, files: &Files, to: &mut dyn Write) -> Result<(), FilesError> {
        let mirror = Repository::open_bare(&self.dir).map_err(FilesError::Damaged)?;
        files
            .write(&mirror, to)
            .inspect_err(|error| self.note(error))
    }

    fn note(&self, error: &FilesError) {
        match error {
            FilesError::Damaged(_) if self.dir.exists() => self.note_damage(),
            FilesError::Damaged(_)
            | FilesError::Missing { .. }
            | FilesError::NoSuchPath { .. }
            | FilesError::Refused { .. }
            | FilesError::TooMuch { .. }
            | FilesError::Unsent(_) => {}
        }
    }

    /// Reads every `*.yaml` and `*.yml` below `folder`. A file named `everscan.yaml` is not a workflow.
    pub(crate) fn read(
        &self,
        commit: &CommitId,
        folder: &str,
        limits: &ReadLimits,
    ) -> Result<Snapshot, ReadError> {
        let folder = Folder::parse(folder)?;
        let snapshot = snapshot::read(&self.open_to_read()?, *commit, &folder, limits);
        let is_damaged = match &snapshot {
            Ok(snapshot) => snapshot
                .files
                .iter()
                .any(|file| file.content == Content::Unreadable(Unreadable::Missing)),
            Err(ReadError::Damaged { .. }) => true,
            Err(
                ReadError::CommitMissing { .. }
                | ReadError::Folder { .. }
                | ReadError::TooMuch { .. },
            ) => false,
        };
        if is_damaged {
            self.note_damage();
        }
        snapshot
    }

    /// How `new` relates to `old`. `new` must be in the mirror. If `old` is missing because the mirror was rebuilt, the
    /// history counts as rewritten.
    pub(crate) fn relation(&self, old: &CommitId, new: &CommitId) -> Result<Relation, ReadError> {
        let mirror = self.open_to_read()?;
        if !mirror.odb().is_ok_and(|objects| objects.exists(new.oid())) {
            return Err(ReadError::CommitMissing { commit: *new });
        }
        relation::between(&mirror, *old, *new).map_err(|source| {
            self.note_damage();
            self.damaged(source)
        })
    }

    fn connect(&self, location: &Location, wanted: &Kind) -> Result<Source<'_>, FetchError> {
        match location {
            Location::Local(path) => match LocalSource::open(path)? {
                Opened::Here(repository) => {
                    let commit = repository.resolve(wanted)?;
                    Ok(Source::Local { repository, commit })
                }
                Opened::Reftable(url) => {
                    let remote = self.remote(url);
                    remote.check_reads_reftable()?;
                    let listed = remote.resolve(wanted)?;
                    Ok(Source::Remote { remote, listed })
                }
            },
            Location::Remote(url) => {
                let remote = self.remote(url.clone());
                let listed = remote.resolve(wanted)?;
                Ok(Source::Remote { remote, listed })
            }
        }
    }

    fn remote(&self, url: RemoteUrl) -> RemoteSource<'_> {
        RemoteSource {
            url,
            access: &self.access,
            credentials: OnceCell::new(),
            warned: &self.warned,
            program: &self.git,
            limits: &self.limits,
            calls: &self.calls,
        }
    }

    /// Fetches the source's commit into `mirror`, and returns the fetched commit.
    fn bring(
        &self,
        source: &Source<'_>,
        mirror: &Repository,
        is_new: bool,
    ) -> Result<CommitId, FetchError> {
        match source {
            Source::Local { repository, commit } => {
                repository.copy_into(mirror, *commit, &self.limits)?;
                self.remember(mirror, *commit)?;
                Ok(*commit)
            }
            Source::Remote { remote, listed } => {
                remote.fetch_into(mirror.path(), listed, TIP, is_new)?;
                let commit = mirror
                    .find_reference(TIP)
                    .and_then(|reference| reference.peel_to_commit())
                    .map_err(|source| self.fault(source))?;
                Ok(commit.id().into())
            }
        }
    }

    /// Builds a new mirror next to the old mirror, and swaps them when the new mirror is complete.
    fn build(&self, source: &Source<'_>) -> Result<Tip, FetchError> {
        let fresh = self.beside("new");
        let built = self
            .fill(&fresh, source)
            .and_then(|tip| match self.swap(&fresh) {
                Ok(()) => Ok(tip),
                Err(error) => Err(self.fault(error)),
            });
        if built.is_err() {
            // The next rebuild removes the remaining files.
            let _stays = remove(&fresh);
        }
        built
    }

    fn fill(&self, fresh: &Path, source: &Source<'_>) -> Result<Tip, FetchError> {
        let mirror = create(fresh).map_err(|source| self.fault(source))?;
        let commit = self.bring(source, &mirror, true)?;
        self.carry_over(&mirror);
        tip::read(&mirror, commit).map_err(|_| self.fault(MirrorFault::Incomplete(commit)))
    }

    /// Copies the commits that jobs need from the old mirror, if they can be read.
    fn carry_over(&self, fresh: &Repository) {
        let Ok(old) = Repository::open_bare(&self.dir) else {
            return;
        };
        let kept = references::all(&old).unwrap_or_default();
        for commit in &kept {
            let copied = copy::copy(&old, fresh, commit.oid(), &self.limits);
            if let Err(error) = copied {
                tracing::warn!(%commit, ?error, "a commit whose files jobs need is lost from the mirror; it is fetched again when a job needs it");
            }
        }
        // Commits that could not be copied get no reference.
        if let Err(error) = references::keep(fresh, &kept) {
            tracing::warn!(%error, "a mirror has no references to the commits whose files jobs need");
        }
    }

    fn swap(&self, fresh: &Path) -> io::Result<()> {
        let old = self.beside("old");
        remove(&old)?;
        match fs::rename(&self.dir, &old) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::rename(fresh, &self.dir)?;
        remove(&old)
    }

    /// The mirror, unless it is missing, damaged, or has too many packs.
    fn usable(&self) -> Option<Repository> {
        if self.dir.join(DAMAGED).exists() {
            return None;
        }
        let packs = fs::read_dir(self.dir.join("objects/pack"))
            .ok()?
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension() == Some(OsStr::new("pack")))
            .count();
        if packs >= limits::PACKS {
            return None;
        }
        Repository::open_bare(&self.dir).ok()
    }

    fn remember(&self, mirror: &Repository, commit: CommitId) -> Result<(), FetchError> {
        if mirror.refname_to_id(TIP).ok() == Some(commit.oid()) {
            return Ok(());
        }
        mirror
            .reference(TIP, commit.oid(), true, "")
            .map(|_| ())
            .map_err(|source| self.fault(source))
    }

    fn open_to_read(&self) -> Result<Repository, ReadError> {
        Repository::open_bare(&self.dir).map_err(|source| self.damaged(source))
    }

    /// Marks the mirror as damaged. If the mark cannot be written, the next read finds the damage again.
    fn note_damage(&self) {
        let _unwritten = fs::write(self.dir.join(DAMAGED), b"");
    }

    fn damaged(&self, source: git2::Error) -> ReadError {
        ReadError::Damaged {
            dir: self.dir.clone(),
            source,
        }
    }

    fn fault(&self, source: impl Into<MirrorFault>) -> FetchError {
        FetchError::Mirror {
            dir: self.dir.clone(),
            source: source.into(),
        }
    }

    /// A folder next to the mirror, on the same file system.
    fn beside(&self, what: &str) -> PathBuf {
        let mut name = self.dir.as_os_str().to_owned();
        name.push(format!(".{what}"));
        PathBuf::from(name)
    }
}

/// A source that was reached, with its commit.
enum Source<'a> {
    Local {
        repository: LocalSource,
        commit: CommitId,
    },
    Remote {
        remote: RemoteSource<'a>,
        listed: Listed,
    },
}

impl Source<'_> {
    /// The full name of the reference to which HEAD points, if HEAD is wanted.
    fn head(&self, wanted: &Kind) -> Option<String> {
        match (wanted, self) {
            (Kind::Head, Source::Local { repository, .. }) => repository.head_branch(),
            (Kind::Head, Source::Remote { listed, .. }) => listed.head.clone(),
            (Kind::Name(_) | Kind::Full(_) | Kind::Commit(_), _) => None,
        }
    }

    fn commit(&self) -> CommitId {
        match self {
            Source::Local { commit, .. } => *commit,
            Source::Remote { listed, .. } => listed.commit,
        }
    }
}

/// Creates an empty bare repository that no other user can enter.
fn create(dir: &Path) -> Result<Repository, MirrorFault> {
    remove(dir)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).no_reinit(true);
    Ok(Repository::init_opts(dir, &options)?)
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
