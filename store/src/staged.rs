//! A large object that is whole and has no key yet: a file in `tmp/`, durable with its name. A batch that adopts it
//! gives it its key; until then whoever holds it owns the file, which goes when nobody does.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{Disk, DiskError};
use crate::limits::GET_BYTES;

const PREFIX: &str = "object-";

/// Random bytes in a name: no two objects of a store share one, whichever process wrote them. A journal may name an
/// object of long ago, and must never find another one under that name.
const RANDOM_BYTES: usize = 16;

/// A finished object. Clones are the same one.
#[derive(Clone)]
pub struct Staged(Arc<File>);

struct File {
    name: StagedName,
    size: u64,
    sha256: [u8; 32],
    /// None when the journal told of the object: what a redo finds belongs to no caller.
    owned: Option<Owned>,
}

/// The file of an object that was written by this process.
struct Owned {
    disk: Disk,
    path: PathBuf,
    /// Whether a batch has taken it over. Then it is the store's to name or to remove.
    is_adopted: AtomicBool,
}

/// The name of an object in `tmp/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedName(String);

impl StagedName {
    pub(crate) fn random(disk: &Disk) -> Result<Self, DiskError> {
        let random: [u8; RANDOM_BYTES] = disk.random()?;
        Ok(Self(format!(
            "{PREFIX}{:032x}",
            u128::from_be_bytes(random)
        )))
    }

    /// A name as it stands in `tmp/` or in the journal.
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
    /// An object that this process wrote to `path`.
    pub(crate) fn written(
        disk: Disk,
        path: PathBuf,
        name: StagedName,
        size: u64,
        sha256: [u8; 32],
    ) -> Self {
        let owned = Owned {
            disk,
            path,
            is_adopted: AtomicBool::new(false),
        };
        Self(Arc::new(File {
            name,
            size,
            sha256,
            owned: Some(owned),
        }))
    }

    /// An object that the journal tells of.
    pub(crate) fn recorded(name: StagedName, size: u64, sha256: [u8; 32]) -> Self {
        Self(Arc::new(File {
            name,
            size,
            sha256,
            owned: None,
        }))
    }

    /// In bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    pub fn sha256(&self) -> [u8; 32] {
        self.0.sha256
    }

    pub(crate) fn name(&self) -> &StagedName {
        &self.0.name
    }

    /// The whole content of an object that this process wrote.
    pub(crate) fn read(&self) -> Result<Vec<u8>, DiskError> {
        match &self.0.owned {
            Some(owned) => owned.disk.read(&owned.path, GET_BYTES),
            None => Ok(Vec::new()),
        }
    }

    /// From now on a record may name the object, so it is no longer removed with its last owner.
    pub(crate) fn adopt(&self) {
        if let Some(owned) = &self.0.owned {
            owned.is_adopted.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !*self.is_adopted.get_mut()
            && let Err(error) = self.disk.remove_file(&self.path)
        {
            tracing::warn!(%error, "an object that nobody wants stays until the next start");
        }
    }
}

impl PartialEq for Staged {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.size(), self.sha256()) == (other.name(), other.size(), other.sha256())
    }
}

impl Eq for Staged {}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged")
            .field("name", &self.0.name.0)
            .field("size", &self.0.size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_are_told_from_others() {
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
