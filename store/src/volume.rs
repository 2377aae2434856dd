//! Data too large for a batch: large objects and growing files. They do not pass through the writer of the store.

use bytes::Bytes;

use crate::fault::Fault;
use crate::key::Key;
use crate::space::{DiskBytes, Room};
use crate::staged::{Object, Staged};

/// The large objects and growing files of an open store, and its free space. All methods may block.
///
/// An object is complete and durable before a batch gives it a key, together with the record that names it. So every
/// object with a key has a record, and the object of every record exists. A growing file, such as a log, has its key
/// from the beginning, and is durable only after a sync.
pub trait Volume: Send + Sync {
    /// True if no method blocks. Such a volume may be called from async code.
    fn is_immediate(&self) -> bool {
        false
    }

    fn create_object(&self) -> Result<Box<dyn ObjectWriter>, Fault>;

    /// An object is visible as soon as a batch has given it a key.
    fn open_object(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault>;

    /// Stages the object at `key` again, so that a batch can store it under a second key. Uses a hard link if
    /// possible, otherwise a copy.
    fn share_object(&self, key: &Key, object: Object) -> Result<Option<Staged>, Fault>;

    /// Opens the only writer of the growing file at `key`. Creates the file if missing, and never truncates it.
    fn open_growing(&self, key: &Key) -> Result<Box<dyn GrowingFile>, Fault>;

    /// The file may still have a writer.
    fn read_growing(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault>;

    /// The free space, measured within the last second.
    fn room(&self) -> Result<Room, Fault>;

    /// The size of the disk, from the same measurement as [`Self::room`]. `None` for a store in memory.
    fn disk_bytes(&self) -> Result<Option<DiskBytes>, Fault>;

    /// When the newest backup was made, in seconds since 1970: for a restored store first the backup that it came from.
    fn newest_backup(&self) -> Result<Option<u64>, Fault>;

    /// Durably clears the "restored" mark. Call it when the work that was running at the backup is settled.
    fn forget_restored(&self) -> Result<(), Fault>;
}

/// An object that is being written. It is removed if it is dropped unfinished.
pub trait ObjectWriter: Send {
    /// Appends pieces in order.
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), Fault>;

    /// Makes the object durable, ready for a batch to adopt.
    fn finish(self: Box<Self>) -> Result<Staged, Fault>;
}

/// The only writer of a growing file. Callers frame their own records and decide how to treat an unfinished end.
///
/// A batch may write the last piece instead: the same bytes at the same offset, so that writing them twice is
/// harmless. The writer appends nothing after it.
pub trait GrowingFile: Send {
    fn size(&self) -> u64;

    /// Appends `bytes` and returns their offset. A failure may leave some bytes after the end; the next append
    /// overwrites them.
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Fault>;

    /// Truncates the file to `size`.
    fn cut(&mut self, size: u64) -> Result<(), Fault>;

    /// Everything appended so far is durable when this returns. After an error it is unknown which data is durable;
    /// retrying does not help.
    fn sync(&mut self) -> Result<(), Fault>;
}

/// A file that is open for reading. It stays readable when it is replaced or removed meanwhile.
pub trait ReadAt: Send + Sync {
    fn size(&self) -> Result<u64, Fault>;

    /// At most `limit` bytes from byte `at` on; fewer only at the end of the file.
    fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault>;
}
