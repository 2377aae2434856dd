//! Lists blobs in the order of their names on disk. The content of a folder comes before the next name.

use std::collections::VecDeque;

use model::{Blob, BlobPath, ProjectId, Timestamp, blob};
use store::{Key, Prefix};

use crate::envelope;
use crate::error::ReadError;
use crate::layout::{Folders, blob_folders_of, blob_name, blob_name_of, blob_of_record};
use crate::reader::StoreReader;
use crate::state::State;

#[derive(Debug, Clone)]
pub struct BlobQuery {
    pub project: ProjectId,
    /// Only blobs in this folder.
    pub folder: Vec<String>,
    /// Only names in the folder that begin with this text.
    pub begin: String,
    /// List subfolders themselves, not their content.
    pub is_flat: bool,
    /// Only entries after this blob or folder.
    pub after: Option<BlobPath>,
    pub limit: usize,
    /// Blobs that have expired by now are left out.
    pub now: Timestamp,
}

/// A blob, or a folder of a flat list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobEntry {
    Blob(Blob),
    Folder(BlobPath),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPage {
    pub entries: Vec<BlobEntry>,
    /// True if there are no further entries.
    pub is_last: bool,
}

impl BlobEntry {
    pub fn path(&self) -> &BlobPath {
        match self {
            Self::Blob(blob) => &blob.path,
            Self::Folder(path) => path,
        }
    }
}

/// A name in a folder, encoded as on disk.
struct Name {
    encoded: String,
    /// None for a folder.
    record: Option<Key>,
}

/// A folder that is being listed.
struct Open {
    prefix: Prefix,
    names: VecDeque<Name>,
    /// The names after which to continue, in this folder and in the folders below it.
    after: VecDeque<String>,
}

impl State {
    /// Lists blobs. Only the folders that the page needs are read, one after another.
    pub async fn list_blobs(&self, query: &BlobQuery) -> Result<BlobPage, ReadError> {
        let mut listing = Listing {
            reader: self.reader(),
            query,
            entries: Vec::new(),
        };
        let is_last = listing.fill().await?;
        Ok(BlobPage {
            entries: listing.entries,
            is_last,
        })
    }
}

struct Listing<'a> {
    reader: &'a StoreReader,
    query: &'a BlobQuery,
    entries: Vec<BlobEntry>,
}

impl Listing<'_> {
    /// Fills the page. True if there are no further entries.
    async fn fill(&mut self) -> Result<bool, ReadError> {
        let BlobQuery {
            project,
            folder,
            after,
            ..
        } = self.query;
        let after = after.iter().flat_map(BlobPath::names);
        let after = after.skip(folder.len()).map(|name| blob_name(name));
        let root = Folders::blob_records(*project, folder);
        let mut open = vec![self.open(root, after.collect()).await?];
        let top = &mut open[0].names;
        if !self.query.begin.is_empty() {
            let mut kept = VecDeque::new();
            for name in std::mem::take(top) {
                if self.begins(&open[0].prefix, &name).await? {
                    kept.push_back(name);
                }
            }
            open[0].names = kept;
        }
        while let Some(mut inner) = open.pop() {
            let Some(name) = inner.names.pop_front() else {
                continue;
            };
            if self.entries.len() == self.query.limit {
                return Ok(false);
            }
            if name.record.is_some() {
                let left = self.query.limit - self.entries.len();
                let mut run = Vec::from_iter(name.record);
                while run.len() < left
                    && inner
                        .names
                        .front()
                        .is_some_and(|next| next.record.is_some())
                {
                    run.extend(inner.names.pop_front().and_then(|next| next.record));
                }
                self.add_blobs(run).await?;
                open.push(inner);
                continue;
            }
            let folder = Folders::in_blob_folder(&inner.prefix, &name.encoded);
            let is_resumed = inner.after.front() == Some(&name.encoded);
            let rest = match is_resumed {
                true => inner.after.drain(..).skip(1).collect(),
                false => VecDeque::new(),
            };
            open.push(inner);
            if self.query.is_flat {
                let path = self.path_of(&folder).await?;
                self.entries.extend(path.map(BlobEntry::Folder));
            } else {
                let deeper = self.open(folder, rest).await?;
                open.push(deeper);
            }
        }
        Ok(true)
    }

    /// Reads the names of a folder that come after `after`.
    async fn open(&self, prefix: Prefix, after: VecDeque<String>) -> Result<Open, ReadError> {
        let names = self.reader.children(&prefix).await?.into_iter();
        let names = names.filter_map(|name| {
            let key = prefix.join(&name)?;
            let blob = blob_of_record(&key);
            Some(Name {
                record: blob.is_some().then_some(key),
                encoded: blob.unwrap_or(name),
            })
        });
        let mut names: Vec<Name> = names.collect();
        names.sort_unstable_by(|one, other| one.encoded.cmp(&other.encoded));
        if let Some(last) = after.front() {
            // If the last page ended inside a folder, the rest of this folder follows.
            let is_inside = after.len() > 1 && !self.query.is_flat;
            names.retain(|name| match name.encoded.cmp(last) {
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Equal => is_inside && name.record.is_none(),
                std::cmp::Ordering::Greater => true,
            });
        }
        Ok(Open {
            prefix,
            names: names.into(),
            after,
        })
    }

    async fn add_blobs(&mut self, keys: Vec<Key>) -> Result<(), ReadError> {
        let found = self.reader.get_many(keys.clone()).await?;
        let found = keys.iter().zip(found);
        let found = found.filter_map(|(key, bytes)| read(key, &bytes?));
        let present = found.filter(|blob| !blob.is_over(self.query.now));
        self.entries.extend(present.map(BlobEntry::Blob));
        Ok(())
    }

    async fn blob(&self, key: &Key) -> Result<Option<Blob>, ReadError> {
        let bytes = self.reader.get(key).await?;
        Ok(bytes.and_then(|bytes| read(key, &bytes)))
    }

    /// Whether a name begins with the text of the query.
    async fn begins(&self, folder: &Prefix, name: &Name) -> Result<bool, ReadError> {
        let begin = &self.query.begin;
        if let Some(plain) = blob_name_of(&name.encoded) {
            return Ok(plain.starts_with(begin));
        }
        let path = match &name.record {
            Some(record) => self.blob(record).await?.map(|blob| blob.path),
            None => {
                self.path_of(&Folders::in_blob_folder(folder, &name.encoded))
                    .await?
            }
        };
        Ok(path.is_some_and(|path| path.name().starts_with(begin)))
    }

    /// The path of a folder. A shortened name is restored from a blob in the folder. `None` if the folder is empty by
    /// now.
    async fn path_of(&self, folder: &Prefix) -> Result<Option<BlobPath>, ReadError> {
        let names = blob_folders_of(folder);
        let depth = names.len();
        if let Some(names) = names.into_iter().collect() {
            return Ok(BlobPath::new(names).ok());
        }
        let mut inside = folder.clone();
        loop {
            let open = self.open(inside.clone(), VecDeque::new()).await?;
            let Some(first) = open.names.front() else {
                return Ok(None);
            };
            if let Some(record) = &first.record {
                let blob = self.blob(record).await?;
                let names = blob.and_then(|blob| Some(blob.path.names().get(..depth)?.to_vec()));
                return Ok(names.and_then(|names| BlobPath::new(names).ok()));
            }
            inside = Folders::in_blob_folder(&inside, &first.encoded);
        }
    }
}

/// The record of a blob. `None` if it is unreadable.
fn read(key: &Key, bytes: &[u8]) -> Option<Blob> {
    envelope::open_at(key, bytes)
        .inspect_err(|error| tracing::error!(%key, %error, "a record cannot be read"))
        .ok()
}

/// Splits a textual prefix into a folder and the beginning of a name. A leading slash is ignored.
pub fn split_prefix(prefix: &str) -> (Vec<String>, String) {
    let prefix = prefix.strip_prefix('/').unwrap_or(prefix);
    let mut folder = blob::split(prefix);
    let begin = folder.pop().unwrap_or_default();
    (folder, begin)
}
