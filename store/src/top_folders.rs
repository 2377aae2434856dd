//! The folders directly below the root. If somebody removes one while the store is open, the next write would create
//! it again without its other files, and nobody would notice. So the applier checks their identities.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::{DiskError, DiskFile, Identity, Kind};
use crate::key::{Key, Prefix};
use crate::overlay::Overlay;
use crate::tree::Tree;

pub(crate) struct TopFolders {
    known: BTreeMap<Key, Folder>,
}

struct Folder {
    identity: Identity,
    /// Kept open, so that no other folder gets its inode number.
    _file: DiskFile,
}

impl TopFolders {
    pub(crate) fn of(tree: &Tree) -> Result<Self, DiskError> {
        let mut folders = Self {
            known: BTreeMap::new(),
        };
        for (key, kind) in tree.entries(&Prefix::root())? {
            if kind == Kind::Folder {
                folders.learn(tree, key)?;
            }
        }
        Ok(folders)
    }

    /// Fails when a folder of `keys` was replaced or removed. Call it before these files are written.
    pub(crate) fn verify<'a>(
        &self,
        tree: &Tree,
        keys: impl Iterator<Item = &'a Key>,
    ) -> Result<(), DiskError> {
        for key in tops(keys) {
            if let Some(folder) = self.known.get(&key) {
                tree.disk.verify(&tree.path(&key), folder.identity)?;
            }
        }
        Ok(())
    }

    /// Notes the folders that `changes` created or removed.
    pub(crate) fn follow(&mut self, tree: &Tree, changes: &Overlay) -> Result<(), DiskError> {
        let unknown = tops(changes.keys()).filter(|key| !self.known.contains_key(key));
        let changed: BTreeSet<Key> = unknown.chain(tops(changes.removed())).collect();
        changed
            .into_iter()
            .try_for_each(|key| self.learn(tree, key))
    }

    fn learn(&mut self, tree: &Tree, key: Key) -> Result<(), DiskError> {
        if tree.kind(&key)? != Kind::Folder {
            self.known.remove(&key);
            return Ok(());
        }
        let path = tree.path(&key);
        let folder = Folder {
            _file: tree.disk.open_to_read(&path)?,
            identity: tree.disk.identity(&path)?,
        };
        self.known.insert(key, folder);
        Ok(())
    }
}

/// The top folders of `keys`.
fn tops<'a>(keys: impl Iterator<Item = &'a Key>) -> impl Iterator<Item = Key> {
    let tops: BTreeSet<Key> = keys.filter_map(|key| key.ancestors().last()).collect();
    tops.into_iter()
}
