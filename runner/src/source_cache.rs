//! Tars of repositories' files, kept for further jobs. The name of a tar contains its commit and its paths, so a tar never
//! changes.
//!
//! Two jobs that need the same tar download it once. When all tars together exceed the limit, the least recently used are
//! removed, but never a tar in use.
//!
//! A job can change the files here, so each use compares a tar with the digest of its download. The digests are only in memory: a
//! runner begins with an empty cache.

#![expect(
    clippy::disallowed_methods,
    reason = "cached files are no records of the state"
)]

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags};
use wire::Checkout;
use workflow::sha256;

use crate::workdir;

pub(crate) const TAR_END: usize = 1024;

const COMMIT_DIGITS: usize = 40;

/// Digits of the digest of the paths. All names are made here, so two never collide by chance.
const PATHS_DIGITS: usize = 32;

pub(crate) type Digest = [u8; 32];

#[derive(Debug)]
pub(crate) struct SourceCache {
    folder: PathBuf,
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tars: HashMap<Key, Tar>,
    uses: u64,
    turns: HashMap<Key, Arc<tokio::sync::Mutex<()>>>,
}

/// The key of a tar, which is also the name of its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(String);

#[derive(Debug)]
struct Tar {
    bytes: u64,
    digest: Digest,
    used: u64,
    users: u32,
}

#[derive(Debug)]
pub(crate) struct InUse<'a> {
    cache: &'a SourceCache,
    key: Key,
    file: File,
    digest: Digest,
    is_cached: bool,
}

impl Key {
    /// Fails if the commit is not forty hexadecimal digits, because it becomes a part of a file name.
    pub(crate) fn of(checkout: &Checkout) -> io::Result<Self> {
        let is_commit = checkout.commit.len() == COMMIT_DIGITS
            && checkout.commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_commit {
            let problem = format!("{:?} is no commit", checkout.commit);
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let mut paths = checkout.paths.clone();
        paths.sort();
        let mut digest = sha256(paths.join("\0").as_bytes());
        digest.truncate(PATHS_DIGITS);
        Ok(Self(format!("{}-{digest}.tar", checkout.commit)))
    }
}

impl SourceCache {
    /// An empty cache in `folder`, which only this process uses.
    pub(crate) fn open(folder: PathBuf, limit: u64) -> Self {
        workdir::remove(&folder);
        Self {
            folder,
            limit,
            state: Mutex::default(),
        }
    }

    /// The tar for a key. If it is missing, `download` writes it and returns the digest of the received bytes. Others who need
    /// the same tar wait. After an error nothing is kept.
    pub(crate) async fn get<E: From<io::Error>>(
        &self,
        key: &Key,
        download: impl AsyncFnOnce(File) -> Result<Digest, E>,
    ) -> Result<InUse<'_>, E> {
        let turn = self.turn(key);
        let _turn = turn.lock().await;
        if let Some(found) = self.find(key) {
            return Ok(found);
        }
        let path = self.folder.join(&key.0);
        let unfinished = path.with_extension("new");
        workdir::make_private_folder(&self.folder)?;
        let file = workdir::make_private_file(&unfinished)?;
        let half = Half(&unfinished);
        let digest = download(file.try_clone()?).await?;
        let bytes = file.metadata()?.len();
        // A job may have put a folder there.
        workdir::remove(&path);
        std::fs::rename(&unfinished, &path)?;
        std::mem::forget(half);
        let in_use = {
            let mut state = self.lock();
            state.uses += 1;
            let tar = Tar {
                bytes,
                digest,
                used: state.uses,
                users: 1,
            };
            state.tars.insert(key.clone(), tar);
            InUse {
                cache: self,
                key: key.clone(),
                file,
                digest,
                is_cached: false,
            }
        };
        self.shrink();
        Ok(in_use)
    }

    fn find(&self, key: &Key) -> Option<InUse<'_>> {
        let mut state = self.lock();
        state.uses += 1;
        let used = state.uses;
        let tar = state.tars.get_mut(key)?;
        let path = self.folder.join(&key.0);
        let Some(file) = open_tar(&path, tar.bytes) else {
            // A job has removed or changed the file.
            state.tars.remove(key);
            return None;
        };
        tar.used = used;
        tar.users += 1;
        Some(InUse {
            cache: self,
            key: key.clone(),
            file,
            digest: tar.digest,
            is_cached: true,
        })
    }

    fn turn(&self, key: &Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut state = self.lock();
        state.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        state.turns.entry(key.clone()).or_default().clone()
    }

    fn shrink(&self) {
        let mut state = self.lock();
        let mut bytes: u64 = state.tars.values().map(|tar| tar.bytes).sum();
        while bytes > self.limit {
            let unused = state.tars.iter().filter(|(_, tar)| tar.users == 0);
            let Some((oldest, _)) = unused.min_by_key(|(_, tar)| tar.used) else {
                return;
            };
            let oldest = oldest.clone();
            if let Some(tar) = state.tars.remove(&oldest) {
                bytes -= tar.bytes;
            }
            workdir::remove(&self.folder.join(&oldest.0));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse<'_> {
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    pub(crate) const fn digest(&self) -> Digest {
        self.digest
    }

    /// Removes the damaged tar. Returns whether another download may help.
    pub(crate) fn discard(self) -> bool {
        self.cache.lock().tars.remove(&self.key);
        workdir::remove(&self.cache.folder.join(&self.key.0));
        self.is_cached
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if let Some(tar) = self.cache.lock().tars.get_mut(&self.key) {
            tar.users = tar.users.saturating_sub(1);
        }
        self.cache.shrink();
    }
}

/// Opens a tar of this length. None if the path has anything else; opening a pipe does not block.
fn open_tar(path: &Path, bytes: u64) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let is_whole = metadata.is_file() && metadata.len() == bytes && bytes >= TAR_END as u64;
    is_whole.then_some(file)
}

/// A file that is removed unless it is complete.
struct Half<'a>(&'a Path);

impl Drop for Half<'_> {
    fn drop(&mut self) {
        workdir::remove(self.0);
    }
}

#[cfg(test)]
mod tests;
