//! A large object that is complete but has no key yet. A batch adopts the object and gives it a key. If no batch
//! does, the object is removed when its last owner drops it. In a store on files it is a durable file in `tmp/`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::limits::OBJECT_PIECE_BYTES;

const PREFIX: &str = "object-";

/// Random bytes in a name: enough to make names unique in a store for ever, whichever process wrote them. A journal
/// may name an old object, and must never find another one under that name.
const RANDOM_BYTES: usize = 16;

/// Digest and size of a large object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub sha256: [u8; 32],
    /// In bytes.
    pub size: u64,
}

/// A finished object. Clones share the object.
#[derive(Clone)]
pub struct Staged(Arc<Inner>);

struct Inner {
    name: StagedName,
    object: Object,
    place: Place,
}

enum Place {
    /// In a file that this process wrote.
    File(OwnedFile),
    /// In a file named in the journal. Recovery found it, so no caller owns it.
    Recorded,
    Memory(Bytes),
}

/// The file of an object that this process wrote. It is removed on drop unless a batch adopted it.
pub(crate) struct OwnedFile {
    disk: Disk,
    path: PathBuf,
    /// After adoption only the store may rename or remove the file.
    is_adopted: AtomicBool,
}

/// The name of an object in `tmp/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedName(String);

impl Object {
    pub(crate) fn of(content: &[u8]) -> Self {
        Self {
            sha256: Sha256::digest(content).into(),
            size: content.len() as u64,
        }
    }

    pub(crate) fn read(file: &DiskFile) -> Result<Self, DiskError> {
        let (mut size, mut hasher) = (0, Sha256::new());
        file.each_piece(OBJECT_PIECE_BYTES, |piece| {
            size += piece.len() as u64;
            hasher.update(piece);
            Ok(())
        })?;
        let sha256 = hasher.finalize().into();
        Ok(Self { sha256, size })
    }
}

impl StagedName {
    pub(crate) fn random(disk: &Disk) -> Result<Self, DiskError> {
        let random: [u8; RANDOM_BYTES] = disk.random()?;
        Ok(Self::numbered(u128::from_be_bytes(random)))
    }

    pub(crate) fn numbered(number: u128) -> Self {
        Self(format!("{PREFIX}{number:032x}"))
    }

    /// Parses a name from `tmp/` or the journal.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let is_random = digits.len() == 2 * RANDOM_BYTES
            && digits
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_random.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Staged {
    pub(crate) fn written(file: OwnedFile, name: StagedName, object: Object) -> Self {
        Self::new(name, object, Place::File(file))
    }

    pub(crate) fn recorded(name: StagedName, object: Object) -> Self {
        Self::new(name, object, Place::Recorded)
    }

    pub(crate) fn in_memory(name: StagedName, content: Bytes) -> Self {
        Self::new(name, Object::of(&content), Place::Memory(content))
    }

    fn new(name: StagedName, object: Object, place: Place) -> Self {
        Self(Arc::new(Inner {
            name,
            object,
            place,
        }))
    }

    pub(crate) fn object(&self) -> Object {
        self.0.object
    }

    /// In bytes.
    pub fn size(&self) -> u64 {
        self.0.object.size
    }

    pub fn sha256(&self) -> [u8; 32] {
        self.0.object.sha256
    }

    pub(crate) fn name(&self) -> &StagedName {
        &self.0.name
    }

    pub(crate) fn content(&self) -> Option<&Bytes> {
        match &self.0.place {
            Place::Memory(content) => Some(content),
            Place::File(_) | Place::Recorded => None,
        }
    }

    /// Keeps the file when the last owner drops it, because a record may name it now.
    pub(crate) fn adopt(&self) {
        if let Place::File(file) = &self.0.place {
            file.is_adopted.store(true, Ordering::Relaxed);
        }
    }
}

impl OwnedFile {
    pub(crate) fn new(disk: Disk, path: PathBuf) -> Self {
        let is_adopted = AtomicBool::new(false);
        Self {
            disk,
            path,
            is_adopted,
        }
    }
}

impl Drop for OwnedFile {
    fn drop(&mut self) {
        if !*self.is_adopted.get_mut()
            && let Err(error) = self.disk.remove_file(&self.path)
        {
            tracing::warn!(%error, "an unused object stays in `tmp/` until the next start");
        }
    }
}

impl PartialEq for Staged {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.object()) == (other.name(), other.object())
    }
}

impl Eq for Staged {}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged")
            .field("name", &self.0.name.0)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_other_names_are_rejected() {
        let name = || StagedName::random(&Disk::new()).unwrap();
        let one = name();
        assert_ne!(one, name());
        assert_eq!(StagedName::parse(one.as_str()), Some(one));
        for other in [
            "object-7",
            "object-",
            "",
            "x",
            "object-/../../etc/passwd0123456789ab",
        ] {
            assert_eq!(StagedName::parse(other), None, "{other}");
        }
    }
}
