//! What is too large for a batch: large objects and growing files, beside the one writer of a store.

use bytes::Bytes;

use crate::fault::Fault;
use crate::key::Key;
use crate::space::{DiskBytes, Room};
use crate::staged::{Object, Staged};

/// The large objects and growing files of an open store, and the room it has. All of it may block.
///
/// An object is written whole, and durable, before a batch gives it its key together with the record that names it. So
/// no object stands at a key that no record knows, and no record names an object that does not exist. A growing file,
/// such as a log, is written at its key from the beginning, and is durable only when asked.
pub trait Volume: Send + Sync {
    /// Whether nothing here ever waits. Then it may be called on an async thread.
    fn is_immediate(&self) -> bool {
        false
    }

    /// Begins an object.
    fn create_object(&self) -> Result<Box<dyn ObjectWriter>, Fault>;

    /// The object at `key`. One that a batch has given its key is there at once.
    fn open_object(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault>;

    /// The object at `key` once more, for a batch to give it a second key. No content is copied where the disk can give
    /// a file two names.
    fn share_object(&self, key: &Key, object: Object) -> Result<Option<Staged>, Fault>;

    /// The one writer of the growing file at `key`, which is made if there is none. What it holds stays as it is.
    fn open_growing(&self, key: &Key) -> Result<Box<dyn GrowingFile>, Fault>;

    /// The growing file at `key`, to be read beside its writer or after it.
    fn read_growing(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault>;

    /// How full the store is, as measured within the last second.
    fn room(&self) -> Result<Room, Fault>;

    /// How large the disk of the store is, as old as the room. None if the store is on none.
    fn disk_bytes(&self) -> Result<Option<DiskBytes>, Fault>;

    /// Remembers, durably, that whatever went on when a restored backup was taken has been settled: the store is one
    /// like any other from now on.
    fn forget_restored(&self) -> Result<(), Fault>;
}

/// An object that is being written. Nothing of it stays when it is dropped unfinished.
pub trait ObjectWriter: Send {
    /// Adds pieces, in their order.
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), Fault>;

    /// The whole object, durable, for a batch to adopt.
    fn finish(self: Box<Self>) -> Result<Staged, Fault>;
}

/// The one writer of a growing file. Callers frame their own records and decide what a torn end means.
///
/// The last piece of a file may ride in a batch instead: the same bytes at the same place, so that writing them twice
/// is harmless. The writer adds nothing after it.
pub trait GrowingFile: Send {
    /// Bytes in the file.
    fn size(&self) -> u64;

    /// Adds `bytes` at the end and answers where they begin. A failure may leave a part of them behind the end, which
    /// the next append overwrites.
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Fault>;

    /// Cuts off what lies behind `size`.
    fn cut(&mut self, size: u64) -> Result<(), Fault>;

    /// Everything appended so far is durable when this returns. After an error nothing is known about what is, and a
    /// second try says nothing either.
    fn sync(&mut self) -> Result<(), Fault>;
}

/// A file that is open for reading. What is replaced or removed meanwhile is still read to its end.
pub trait ReadAt: Send + Sync {
    /// Bytes in the file at present.
    fn size(&self) -> Result<u64, Fault>;

    /// At most `limit` bytes from byte `at` on; fewer only at the end of the file.
    fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault>;
}
