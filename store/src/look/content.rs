//! The content of files after the journal is replayed.

use bytes::Bytes;

use super::Look;
use crate::disk::DiskError;
use crate::engine::ReadError;
use crate::key::Key;
use crate::overlay::{self, Entry as Pending};
use crate::staged::{Object, Staged};

impl Look {
    pub fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        overlay::content(&self.tree, key, self.survey.overlay.get(key))
    }

    /// At most `limit` bytes from byte `at` on; fewer only at the end of the file.
    pub fn piece(&self, key: &Key, at: u64, limit: usize) -> Result<Option<Bytes>, DiskError> {
        let tree = |staged: Option<&Staged>| match self.tree.open_adopted(key, staged)? {
            Some(file) => file.read_at(at, limit).map(|bytes| Some(bytes.into())),
            None => Ok(None),
        };
        match self.survey.overlay.get(key) {
            Some(entry) => entry.piece(at, limit, tree),
            None => tree(None),
        }
    }

    /// Size and digest of a large object.
    pub fn object(&self, key: &Key) -> Result<Option<Object>, DiskError> {
        let staged = self.survey.overlay.get(key).and_then(Pending::adopted);
        let file = self.tree.open_adopted(key, staged)?;
        file.map(|file| Object::read(&file)).transpose()
    }

    pub fn length(&self, key: &Key) -> Result<Option<u64>, ReadError> {
        let entry = self.survey.overlay.get(key);
        Ok(overlay::length(&self.tree, key, entry)?)
    }
}
