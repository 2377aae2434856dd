//! The file system operations that a store needs. Tests use a simulated file system, which can lose data that was not
//! synced.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::inspect::Details;

pub(crate) trait FileSystem: Send + Sync {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn OpenFile>>;

    /// Fails with `AlreadyExists` if the folder exists.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Creates a hard link. Fails with `AlreadyExists` if the name exists.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Names and kinds of the entries, in any order. Skips names that are not UTF-8.
    fn list(&self, path: &Path) -> io::Result<Vec<(String, Kind)>>;

    /// Does not follow a link.
    fn inspect(&self, path: &Path) -> io::Result<Details>;

    /// Makes created, renamed and removed names of a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    fn space(&self, path: &Path) -> io::Result<Space>;

    /// The network protocol of the file system; `None` for a local one.
    fn network(&self, path: &Path) -> io::Result<Option<&'static str>>;
}

pub(crate) trait OpenFile: Send + Sync {
    fn inspect(&self) -> io::Result<Details>;

    /// At most `limit` bytes from byte `at` on; fewer only at the end of the file.
    fn read_at(&self, at: u64, limit: usize) -> io::Result<Vec<u8>>;

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Starts writing to the disk, without waiting and without a guarantee.
    fn start_writeback(&self, at: u64, len: u64);

    fn set_len(&self, len: u64) -> io::Result<()>;

    fn set_modified(&self, at: SystemTime);

    /// Reserves `size` bytes and fills them with zeros, so that later writes change no metadata and need no space.
    /// The zeros are written even if the file system cannot reserve.
    fn allocate(&self, size: u64) -> io::Result<()>;

    /// Content and length are durable when this returns; the name need not be.
    fn sync_data(&self) -> io::Result<()>;

    /// Everything written to the file system of this file is durable when this returns.
    fn sync_file_system(&self) -> io::Result<()>;

    /// False when another process or opening has the lock.
    fn try_lock(&self) -> io::Result<bool>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Read,
    Write,
    WriteOrCreate,
    CreateNew,
}

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nothing,
    File,
    Folder,
    /// A parent of the path is a file.
    BelowFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// In bytes.
    pub(crate) total: u64,
    pub(crate) free: u64,
    /// Maximum number of files; 0 if there is no fixed number.
    pub(crate) files: u64,
    pub(crate) free_files: u64,
}

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}
