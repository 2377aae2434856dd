//! What files hold, as they will be once the journal has been redone.

use bytes::Bytes;

use super::Look;
use crate::disk::DiskError;
use crate::engine::ReadError;
use crate::key::Key;
use crate::limits::GET_BYTES;
use crate::overlay::Entry as Pending;
use crate::staged::{Object, Staged};

impl Look {
    /// The content of a file as it will be once the journal has been redone.
    pub fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        let tree = |staged: Option<&Staged>| self.tree.read_adopted(key, staged, GET_BYTES);
        let content = match self.survey.overlay.get(key) {
            Some(entry) => entry.content(tree),
            None => tree(None),
        };
        content.map_err(|error| match error.kind() {
            std::io::ErrorKind::FileTooLarge => ReadError::TooLarge {
                key: key.clone(),
                length: self.tree.length(key).ok().flatten().unwrap_or_default(),
            },
            _ => error.into(),
        })
    }

    /// At most `limit` bytes from byte `at` on of a file as it will be; fewer only at its end.
    pub fn piece(&self, key: &Key, at: u64, limit: usize) -> Result<Option<Bytes>, DiskError> {
        let tree = |staged: Option<&Staged>| match self.tree.open_adopted(key, staged)? {
            Some(file) => file.read_at(at, limit).map(Some),
            None => Ok(None),
        };
        match self.survey.overlay.get(key) {
            Some(entry) => entry.piece(at, limit, tree),
            None => Ok(tree(None)?.map(Bytes::from)),
        }
    }

    /// Size and digest of a large object.
    pub fn object(&self, key: &Key) -> Result<Option<Object>, DiskError> {
        let staged = self.survey.overlay.get(key).and_then(Pending::adopted);
        let file = self.tree.open_adopted(key, staged)?;
        file.map(|file| Object::read(&file)).transpose()
    }

    /// The length of a file as it will be.
    pub fn length(&self, key: &Key) -> Result<Option<u64>, ReadError> {
        let tree = || self.tree.length(key);
        match self.survey.overlay.get(key) {
            Some(entry) if !entry.exists() => Ok(None),
            Some(entry) => Ok(Some(entry.length(|| Ok(tree()?.unwrap_or_default()))?)),
            None => Ok(tree()?),
        }
    }
}
