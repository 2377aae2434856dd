//! Tars of repositories' files, kept for further jobs. A tar is named by its commit and its paths, so it never changes.
//!
//! Two jobs that need the same one download it once. When all together take more than the bound, those that were not used
//! for the longest time are removed, but never one in use. Nothing here is synced to disk: after a restart of the machine
//! the cache is empty.

#![expect(
    clippy::disallowed_methods,
    reason = "cached files are no records of the state"
)]

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use wire::Checkout;
use workflow::sha256;

use crate::clock;
use crate::workdir;

/// Changes with each start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The file with the id of the start of the machine in which the tars were written.
const BOOT_FILE: &str = "boot";

/// Bytes of zeros at the end of every tar.
pub(crate) const TAR_END: usize = 1024;

/// Length of a commit as text.
const COMMIT_DIGITS: usize = 40;

/// Digits of the digest of the paths. All names are made here, so that two are never the same by chance.
const PATHS_DIGITS: usize = 32;

/// The cache of one runner.
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
    /// Held while a tar is downloaded.
    turns: HashMap<Key, Arc<tokio::sync::Mutex<()>>>,
}

/// Names a tar, and is the name of its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(String);

#[derive(Debug)]
struct Tar {
    bytes: u64,
    /// A later use has a larger number.
    used: u64,
    users: u32,
}

/// A tar in use.
#[derive(Debug)]
pub(crate) struct InUse<'a> {
    cache: &'a SourceCache,
    key: Key,
    file: File,
}

impl Key {
    /// # Errors
    /// If the commit is not forty hexadecimal digits, which name a file.
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

    /// The key whose file has this name.
    fn of_file(name: &str) -> Option<Self> {
        let (commit, digest) = name.strip_suffix(".tar")?.split_once('-')?;
        let is_hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        (is_hex(commit, COMMIT_DIGITS) && is_hex(digest, PATHS_DIGITS))
            .then(|| Self(name.to_owned()))
    }
}

impl SourceCache {
    /// The cache in `folder`, which this process alone uses. What cannot be used again is removed.
    pub(crate) fn open(folder: PathBuf, limit: u64) -> Self {
        let mut found = Vec::new();
        if is_of_this_start(&folder) {
            found = leftovers(&folder);
        } else {
            workdir::remove(&folder);
        }
        found.sort_by_key(|(_, _, used)| *used);
        let mut state = State::default();
        for (key, bytes, _) in found {
            state.uses += 1;
            let tar = Tar {
                bytes,
                used: state.uses,
                users: 0,
            };
            state.tars.insert(key, tar);
        }
        let cache = Self {
            folder,
            limit,
            state: Mutex::new(state),
        };
        cache.shrink();
        cache
    }

    /// The tar of that key. If it is not here, `download` writes it; meanwhile others who need the same one wait.
    ///
    /// # Errors
    /// Of the disk, or those of the download. Nothing is kept then.
    pub(crate) async fn get<E: From<io::Error>>(
        &self,
        key: &Key,
        download: impl AsyncFnOnce(File) -> Result<(), E>,
    ) -> Result<InUse<'_>, E> {
        let turn = self.turn(key);
        let _turn = turn.lock().await;
        if let Some(found) = self.find(key) {
            return Ok(found);
        }
        let path = self.folder.join(&key.0);
        let beside = path.with_extension("new");
        self.make_folder()?;
        let file = workdir::make_private_file(&beside)?;
        let half = Half(&beside);
        download(file.try_clone()?).await?;
        let bytes = file.metadata()?.len();
        // What somebody has put there may be a folder.
        workdir::remove(&path);
        std::fs::rename(&beside, &path)?;
        std::mem::forget(half);
        let in_use = {
            let mut state = self.lock();
            state.uses += 1;
            let tar = Tar {
                bytes,
                used: state.uses,
                users: 1,
            };
            state.tars.insert(key.clone(), tar);
            InUse {
                cache: self,
                key: key.clone(),
                file,
            }
        };
        self.shrink();
        Ok(in_use)
    }

    fn make_folder(&self) -> io::Result<()> {
        workdir::make_private_folder(&self.folder)?;
        let boot = self.folder.join(BOOT_FILE);
        if !boot.exists()
            && let Ok(id) = std::fs::read(BOOT_ID)
        {
            std::fs::write(boot, id)?;
        }
        Ok(())
    }

    fn find(&self, key: &Key) -> Option<InUse<'_>> {
        let mut state = self.lock();
        state.uses += 1;
        let used = state.uses;
        let tar = state.tars.get_mut(key)?;
        let path = self.folder.join(&key.0);
        let Some(file) = open_tar(&path, tar.bytes) else {
            // Somebody has removed or changed it.
            state.tars.remove(key);
            return None;
        };
        tar.used = used;
        tar.users += 1;
        drop(state);
        // The next runner on this machine reads it. Only the order of removal depends on it.
        let _unknown = file.set_modified(clock::now().into());
        Some(InUse {
            cache: self,
            key: key.clone(),
            file,
        })
    }

    fn turn(&self, key: &Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut state = self.lock();
        state.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        state.turns.entry(key.clone()).or_default().clone()
    }

    /// Removes what was not used for the longest time, until the rest fits.
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
    /// The tar, to read it from its start.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Removes it, because it cannot be read.
    pub(crate) fn discard(self) {
        self.cache.lock().tars.remove(&self.key);
        workdir::remove(&self.cache.folder.join(&self.key.0));
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

/// Opens a tar of this length. None if there is something else, which is not waited for.
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

/// Whether the tars were written since the machine has started.
fn is_of_this_start(folder: &Path) -> bool {
    match (
        std::fs::read(BOOT_ID),
        std::fs::read(folder.join(BOOT_FILE)),
    ) {
        (Ok(now), Ok(then)) => now == then,
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// The tars in a folder, with their bytes and last use. Everything else is removed.
fn leftovers(folder: &Path) -> Vec<(Key, u64, SystemTime)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let key = name.to_str().and_then(Key::of_file);
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file);
        match (key, metadata) {
            (Some(key), Some(metadata)) => {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((key, metadata.len(), used));
            }
            _ if name == BOOT_FILE => {}
            _ => workdir::remove(&entry.path()),
        }
    }
    found
}

#[cfg(test)]
mod tests;
