//! The content of folders after the journal is replayed, including files that do not belong to the store.

use std::collections::BTreeMap;

use super::Look;
use crate::disk::{Details, DiskError, Form};
use crate::key::{Key, Prefix, RESERVED};
use crate::paths::Paths;
use crate::replace;
use crate::staged::StagedName;

/// Something in a folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Bytes that are not UTF-8 are replaced.
    pub name: String,
    pub role: Role,
    /// `None` for a file that only the journal contains so far.
    pub details: Option<Details>,
}

/// The role of an entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    File(Key),
    /// A folder that may contain keys.
    Folder,
    /// One of the store's own files or folders.
    Store,
    /// An unfinished replacement of a file.
    Leftover,
    /// Not a valid name for the store, or neither a file nor a folder.
    Foreign,
}

impl Look {
    /// The entries of a folder in order of names. `folder` is relative to the root.
    pub fn entries(&self, folder: &str) -> Result<Vec<Entry>, DiskError> {
        let prefix = match folder {
            "" => Some(Prefix::root()),
            folder => Prefix::folder(folder).ok(),
        };
        let path = self.paths.root.join(folder);
        let mut entries = BTreeMap::new();
        for name in self.tree.disk.names(&path)? {
            let Some(details) = self.tree.disk.details(&path.join(&name))? else {
                continue;
            };
            let name = name.to_string_lossy().into_owned();
            let role = self.role(folder, prefix.as_ref(), &name, &details);
            if let Role::File(key) = &role
                && self
                    .survey
                    .overlay
                    .get(key)
                    .is_some_and(|entry| !entry.exists())
            {
                continue;
            }
            let entry = Entry {
                name: name.clone(),
                role,
                details: Some(details),
            };
            entries.insert(name, entry);
        }
        if let Some(prefix) = &prefix {
            for (key, _) in self
                .survey
                .overlay
                .inside(prefix)
                .filter(|(_, entry)| entry.exists())
            {
                let name = prefix.child(key).unwrap_or_default();
                let role = match key.folder() == *prefix {
                    true => Role::File(key.clone()),
                    false => Role::Folder,
                };
                entries.entry(name.to_owned()).or_insert_with(|| Entry {
                    name: name.to_owned(),
                    role,
                    details: None,
                });
            }
        }
        Ok(entries.into_values().collect())
    }

    fn role(&self, folder: &str, prefix: Option<&Prefix>, name: &str, details: &Details) -> Role {
        if folder.is_empty() && RESERVED.contains(&name) {
            return Role::Store;
        }
        if details.form == Form::File && replace::is_temporary(name) {
            return Role::Leftover;
        }
        match (prefix.and_then(|prefix| prefix.join(name)), details.form) {
            (Some(key), Form::File) => Role::File(key),
            (Some(_), Form::Folder) => Role::Folder,
            (Some(_), Form::Other) | (None, _) => Role::Foreign,
        }
    }

    /// Files that an interrupted write left in the folders of the engine. The next start removes them.
    pub fn leftovers(&self) -> Result<Vec<String>, DiskError> {
        let indexes = self.survey.unfinished_indexes.iter();
        let mut found: Vec<String> = indexes.map(|path| self.paths.below(path)).collect();
        let waits = |name: &str| {
            let mut adoptions = self.survey.overlay.adoptions();
            adoptions.any(|(_, staged)| staged.name().as_str() == name)
        };
        let Paths {
            tmp,
            index,
            journal,
            ..
        } = &self.paths;
        for folder in [tmp, index, journal] {
            for name in self.tree.disk.names(folder)? {
                let text = name.to_string_lossy();
                let is_left = if folder == tmp {
                    StagedName::parse(&text).is_some() && !waits(&text)
                } else {
                    replace::is_temporary(&text)
                };
                if is_left {
                    found.push(self.paths.below(&folder.join(&name)));
                }
            }
        }
        Ok(found)
    }
}
