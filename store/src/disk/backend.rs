//! What stands behind the door: a file system, as far as a store needs one. The local one is the real thing; tests put
//! a simulated one in its place, which can lose what was not synced.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::inspect::Details;

/// The operations on paths.
pub(crate) trait FileSystem: Send + Sync {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn OpenFile>>;

    /// Makes one folder; one that exists is an error of kind `AlreadyExists`.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name; one that exists is an error of kind `AlreadyExists`.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Names and kinds of what a folder holds, in no order. Names that are no UTF-8 are left out.
    fn list(&self, path: &Path) -> io::Result<Vec<(String, Kind)>>;

    /// What stands at a path; a link is not followed.
    fn inspect(&self, path: &Path) -> io::Result<Details>;

    /// Makes names that were created, renamed or removed in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    fn space(&self, path: &Path) -> io::Result<Space>;

    /// The name of the protocol by which another machine keeps this path; none when this one does.
    fn network(&self, path: &Path) -> io::Result<Option<&'static str>>;
}

/// The operations on an open file.
pub(crate) trait OpenFile: Send + Sync {
    fn inspect(&self) -> io::Result<Details>;

    /// At most `limit` bytes from byte `at` on; fewer only at the end of the file.
    fn read_at(&self, at: u64, limit: usize) -> io::Result<Vec<u8>>;

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Begins to bring written bytes to the disk, without waiting and without a promise.
    fn start_writeback(&self, at: u64, len: u64);

    fn set_len(&self, len: u64) -> io::Result<()>;

    fn set_modified(&self, at: SystemTime);

    /// Reserves `size` bytes and fills them with zeros, so that later writes inside change no metadata and need no
    /// room. A file system that cannot reserve is filled all the same.
    fn allocate(&self, size: u64) -> io::Result<()>;

    /// Content and length are durable when this returns; the name need not be.
    fn sync_data(&self) -> io::Result<()>;

    /// Everything written to the file system of this file is durable when this returns.
    fn sync_file_system(&self) -> io::Result<()>;

    /// Takes the exclusive lock of this file; false when another process or opening holds it.
    fn try_lock(&self) -> io::Result<bool>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Read,
    Write,
    WriteOrCreate,
    /// Fails when there is a file already.
    CreateNew,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nothing,
    File,
    Folder,
    /// A parent of the path is a file.
    BelowFile,
}

/// Room of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// In bytes.
    pub(crate) total: u64,
    pub(crate) free: u64,
    /// How many files there can be; 0 where that is no number.
    pub(crate) files: u64,
    pub(crate) free_files: u64,
}

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}
