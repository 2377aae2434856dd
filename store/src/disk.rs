//! The only module of this package that accesses the file system. Errors name the operation and the path. Every
//! operation calls a hook first, so that a test can make it fail.

mod backend;
mod inspect;
mod local;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) use backend::{FileSystem, Identity, Kind, OpenFile, Opening, Space};
pub use inspect::{Details, Form};
use local::LocalFileSystem;

/// A failed operation on the disk. Cheap to clone, because one failure is returned to many callers.
#[derive(Clone, Debug, thiserror::Error)]
#[error("could not {action} {}", .path.display())]
pub struct DiskError {
    action: Action,
    path: PathBuf,
    #[source]
    source: Arc<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Allocate,
    ChangeMode,
    CreateFile,
    CreateFolder,
    GoOn,
    Inspect,
    Link,
    ListFolder,
    Lock,
    MeasureSpace,
    Open,
    Read,
    RemoveFile,
    RemoveFolder,
    Rename,
    SyncFile,
    SyncFolder,
    SyncFileSystem,
    Thread,
    Write,
}

/// Called before each operation. If it returns an error, the operation fails with it.
type Hook = Arc<dyn Fn(Action, &Path) -> io::Result<()> + Send + Sync>;

/// See [`FileSystem`] for what its operations promise.
#[derive(Clone)]
pub(crate) struct Disk {
    files: Arc<dyn FileSystem>,
    hook: Option<Hook>,
    origin: Instant,
}

/// An open file that knows its path. See [`OpenFile`] for what its operations promise.
pub(crate) struct DiskFile {
    file: Box<dyn OpenFile>,
    path: PathBuf,
    disk: Disk,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(LocalFileSystem))
    }

    pub(crate) fn on(files: Arc<dyn FileSystem>) -> Self {
        Self {
            files,
            hook: None,
            origin: Instant::now(),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_hook(
        hook: impl Fn(Action, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::new().hooked(hook)
    }

    #[cfg(test)]
    pub(crate) fn hooked(
        self,
        hook: impl Fn(Action, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            hook: Some(Arc::new(hook)),
            ..self
        }
    }

    /// Time since this value was created; never goes back.
    pub(crate) fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// The wall clock, only for information: the time of a lock or a backup.
    #[expect(
        clippy::disallowed_methods,
        reason = "people read it in files, and share no other clock"
    )]
    pub(crate) fn seconds_since_1970(&self) -> Option<u64> {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .map(|duration| duration.as_secs())
    }

    fn run<T>(
        &self,
        action: Action,
        path: &Path,
        operation: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, DiskError> {
        let hooked = self.hook.as_ref().map_or(Ok(()), |hook| hook(action, path));
        hooked
            .and_then(|()| operation())
            .map_err(|error| DiskError::new(action, path, error))
    }

    fn open(&self, action: Action, path: &Path, opening: Opening) -> Result<DiskFile, DiskError> {
        let file = self.run(action, path, || self.files.open(path, opening))?;
        Ok(DiskFile {
            file,
            path: path.to_owned(),
            disk: self.clone(),
        })
    }

    pub(crate) fn open_to_read(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(Action::Open, path, Opening::Read)
    }

    pub(crate) fn open_to_write(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(Action::Open, path, Opening::Write)
    }

    pub(crate) fn open_or_create(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(Action::CreateFile, path, Opening::WriteOrCreate)
    }

    /// Fails if the file exists.
    pub(crate) fn create_file(&self, path: &Path) -> Result<DiskFile, DiskError> {
        self.open(Action::CreateFile, path, Opening::CreateNew)
    }

    /// An existing folder is no error.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<(), DiskError> {
        match self.run(Action::CreateFolder, path, || {
            self.files.create_folder(path)
        }) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }

    /// Also creates missing parents. Another thread may remove empty folders meanwhile; the caller tries again if the
    /// folder is missing.
    pub(crate) fn create_folders(&self, path: &Path) -> Result<(), DiskError> {
        match self.create_folder(path) {
            Err(error) if error.is_missing() => {
                if let Some(parent) = path.parent() {
                    self.create_folders(parent)?;
                }
                match self.create_folder(path) {
                    Err(error) if error.is_missing() => Ok(()),
                    result => result,
                }
            }
            result => result,
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(Action::Rename, to, || self.files.rename(from, to))
    }

    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(Action::Link, to, || self.files.link(from, to))
    }

    pub(crate) fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Action::RemoveFile, path, || self.files.remove_file(path))
    }

    pub(crate) fn remove_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Action::RemoveFolder, path, || {
            self.files.remove_folder(path)
        })
    }

    pub(crate) fn list(&self, path: &Path) -> Result<Vec<(String, Kind)>, DiskError> {
        self.run(Action::ListFolder, path, || self.files.list(path))
    }

    pub(crate) fn kind(&self, path: &Path) -> Result<Kind, DiskError> {
        match self.inspect(path) {
            Ok(details) if details.form == Form::Folder => Ok(Kind::Folder),
            Ok(_) => Ok(Kind::File),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Kind::BelowFile),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn identity(&self, path: &Path) -> Result<Identity, DiskError> {
        Ok(self.inspect(path)?.identity)
    }

    pub(crate) fn inspect(&self, path: &Path) -> Result<Details, DiskError> {
        self.run(Action::Inspect, path, || self.files.inspect(path))
    }

    /// Fails if `path` no longer leads to that file or folder: it was removed, moved or replaced.
    pub(crate) fn verify(&self, path: &Path, identity: Identity) -> Result<(), DiskError> {
        let what = match self.identity(path) {
            Ok(found) if found == identity => return Ok(()),
            Ok(_) => "another one has taken its place while it was in use",
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                "it was removed or moved while it was in use"
            }
            Err(error) => return Err(error),
        };
        Err(DiskError::new(Action::GoOn, path, io::Error::other(what)))
    }

    pub(crate) fn sync_folder(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Action::SyncFolder, path, || self.files.sync_folder(path))
    }

    pub(crate) fn space(&self, path: &Path) -> Result<Space, DiskError> {
        self.run(Action::MeasureSpace, path, || self.files.space(path))
    }

    pub(crate) fn network(&self, path: &Path) -> Result<Option<&'static str>, DiskError> {
        self.run(Action::Inspect, path, || self.files.network(path))
    }

    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], DiskError> {
        let source = Path::new("/dev/urandom");
        let short = |_| DiskError::new(Action::Read, source, io::ErrorKind::UnexpectedEof.into());
        self.read_special(source, N)?.try_into().map_err(short)
    }

    /// The first `limit` bytes of a file without a length, such as files of `/proc` and devices.
    pub(crate) fn read_special(&self, path: &Path, limit: usize) -> Result<Vec<u8>, DiskError> {
        self.open_to_read(path)?.read_at(0, limit)
    }

    /// Fails with `FileTooLarge` if the file is longer than `limit`.
    pub(crate) fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, DiskError> {
        let file = self.open_to_read(path)?;
        if file.len()? > limit {
            return Err(DiskError::new(
                Action::Read,
                path,
                io::ErrorKind::FileTooLarge.into(),
            ));
        }
        file.read_to_end(0)
    }
}

impl DiskFile {
    fn run<T>(
        &self,
        action: Action,
        operation: impl FnOnce(&dyn OpenFile) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        self.disk.run(action, &self.path, || operation(&*self.file))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn rename(&mut self, to: &Path) -> Result<(), DiskError> {
        self.disk.rename(&self.path, to)?;
        self.path = to.to_owned();
        Ok(())
    }

    pub(crate) fn inspect(&self) -> Result<Details, DiskError> {
        self.run(Action::Inspect, |file| file.inspect())
    }

    pub(crate) fn len(&self) -> Result<u64, DiskError> {
        Ok(self.inspect()?.bytes)
    }

    /// Ignores errors: the copy is complete without it.
    pub(crate) fn set_modified(&self, at: SystemTime) {
        self.file.set_modified(at);
    }

    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), DiskError> {
        self.run(Action::Write, |file| file.write_at(bytes, at))
    }

    pub(crate) fn start_writeback(&self, at: u64, len: u64) {
        self.file.start_writeback(at, len);
    }

    pub(crate) fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.run(Action::Write, |file| file.set_len(len))
    }

    /// From byte `at` on.
    pub(crate) fn read_to_end(&self, at: u64) -> Result<Vec<u8>, DiskError> {
        let length = self.len()?.saturating_sub(at);
        self.read_at(at, usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(crate) fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, DiskError> {
        self.run(Action::Read, |file| file.read_at(at, limit))
    }

    /// Passes the content to `take`, in pieces of at most `limit` bytes.
    pub(crate) fn each_piece(
        &self,
        limit: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        let mut at = 0;
        loop {
            let piece = self.read_at(at, limit)?;
            take(&piece)?;
            at += piece.len() as u64;
            if piece.len() < limit {
                return Ok(());
            }
        }
    }

    pub(crate) fn allocate(&self, size: u64) -> Result<(), DiskError> {
        self.run(Action::Allocate, |file| file.allocate(size))
    }

    pub(crate) fn sync_data(&self) -> Result<(), DiskError> {
        self.run(Action::SyncFile, |file| file.sync_data())
    }

    pub(crate) fn sync_file_system(&self) -> Result<(), DiskError> {
        self.run(Action::SyncFileSystem, |file| file.sync_file_system())
    }

    pub(crate) fn try_lock(&self) -> Result<bool, DiskError> {
        self.run(Action::Lock, |file| file.try_lock())
    }
}

impl DiskError {
    pub(crate) fn new(action: Action, path: &Path, error: io::Error) -> Self {
        Self {
            action,
            path: path.to_owned(),
            source: Arc::new(error),
        }
    }

    pub fn action(&self) -> Action {
        self.action
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// The file or one of its folders does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// Hard links are not possible here: some file systems lack them (Linux returns `EPERM`), and none links across
    /// file systems.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(
            self.kind(),
            io::ErrorKind::Unsupported
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::CrossesDevices
                | io::ErrorKind::TooManyLinks
        )
    }

    /// The disk is full, or too many files are open, and no data was lost. A failed sync is never of this kind,
    /// because it is unknown what it lost, unless the file could not even be opened.
    pub fn is_full(&self) -> bool {
        let full = matches!(
            self.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        );
        self.has_no_file_left()
            || full
                && !matches!(
                    self.action,
                    Action::SyncFile | Action::SyncFolder | Action::SyncFileSystem
                )
    }

    /// This process or the machine has too many open files. Only opening a file fails like this.
    fn has_no_file_left(&self) -> bool {
        let errno = rustix::io::Errno::from_io_error(&self.source);
        matches!(
            errno,
            Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
        )
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allocate => "reserve room for",
            Self::ChangeMode => "change the mode of",
            Self::CreateFile => "create",
            Self::CreateFolder => "create folder",
            Self::GoOn => "go on with",
            Self::Inspect => "inspect",
            Self::Link => "give a file the second name",
            Self::ListFolder => "list folder",
            Self::Lock => "lock",
            Self::MeasureSpace => "measure the free space at",
            Self::Open => "open",
            Self::Read => "read",
            Self::RemoveFile => "remove",
            Self::RemoveFolder => "remove folder",
            Self::Rename => "rename a file to",
            Self::SyncFile => "sync",
            Self::SyncFolder => "sync folder",
            Self::SyncFileSystem => "sync the file system of",
            Self::Thread => "start a thread for",
            Self::Write => "write",
        })
    }
}
