//! A file system as data: the state that programs see, the durable state, and the operations between the two. File
//! contents and names become durable separately, as `reliability.md` measured: a sync of a file makes its content
//! durable but not its name; a sync of a folder makes the names in it durable but not the contents of their files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

pub(crate) type Inode = u64;

/// The folder `/`.
pub(crate) const ROOT: Inode = 0;

/// A name in a folder.
pub(crate) type Place = (Inode, Arc<str>);

#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(Arc<Vec<u8>>),
    Folder(Arc<BTreeMap<Arc<str>, Inode>>),
}

/// Files and folders. A node without a name cannot be found.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: BTreeMap<Inode, Node>,
}

/// A change of a file system, or a sync.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Name(NameChange),
    Data(DataChange),
    SyncFile(Inode),
    SyncFolder(Inode),
    SyncAll,
}

/// A change of names. It happens completely or not at all.
#[derive(Clone, Debug)]
pub(crate) enum NameChange {
    CreateFile { at: Place, inode: Inode },
    CreateFolder { at: Place, inode: Inode },
    Rename { from: Place, to: Place },
    Remove { at: Place },
}

/// A change of one file's content.
#[derive(Clone, Debug)]
pub(crate) struct DataChange {
    pub(crate) inode: Inode,
    pub(crate) what: Write,
}

#[derive(Clone)]
pub(crate) enum Write {
    Bytes { at: usize, bytes: Arc<[u8]> },
    Length(usize),
}

/// A change that no sync covers yet, and its number in the order of all changes.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) number: usize,
    pub(crate) change: Change,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Name(NameChange),
    Data(DataChange),
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The state that programs see.
    pub(crate) visible: Tree,
    /// The state that survives every power cut.
    pub(crate) durable: Tree,
    pub(crate) pending: Vec<Pending>,
    /// Changes so far.
    pub(crate) changes: usize,
    next: Inode,
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { at, bytes } => write!(f, "{} bytes at {at}", bytes.len()),
            Self::Length(length) => write!(f, "length {length}"),
        }
    }
}

impl Model {
    pub(crate) fn new() -> Self {
        Self::holding(Tree {
            nodes: BTreeMap::from([(ROOT, Node::Folder(Arc::default()))]),
        })
    }

    /// A file system after a start: everything it holds is durable.
    pub(crate) fn holding(tree: Tree) -> Self {
        let next = tree.nodes.last_key_value().map_or(ROOT, |(last, _)| *last) + 1;
        Self {
            visible: tree.clone(),
            durable: tree,
            pending: Vec::new(),
            changes: 0,
            next,
        }
    }

    pub(crate) fn new_inode(&mut self) -> Inode {
        let inode = self.next;
        self.next += 1;
        inode
    }

    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Name(change) => {
                self.visible.change_name(change);
                self.remember(Change::Name(change.clone()));
            }
            Operation::Data(change) => {
                self.visible.write(change.inode, &change.what);
                self.remember(Change::Data(change.clone()));
            }
            Operation::SyncFile(inode) => self.make_durable(
                |change| matches!(change, Change::Data(change) if change.inode == *inode),
            ),
            Operation::SyncFolder(folder) => self.make_durable(
                |change| matches!(change, Change::Name(change) if change.folder() == *folder),
            ),
            Operation::SyncAll => {
                self.durable = self.visible.clone();
                self.pending.clear();
            }
        }
    }

    fn remember(&mut self, change: Change) {
        let number = self.changes;
        self.changes += 1;
        self.pending.push(Pending { number, change });
    }

    /// The pending changes that are `wanted`, and the earlier changes of the same names, which they need.
    pub(crate) fn with_what_they_need(&self, wanted: impl Fn(usize, &Change) -> bool) -> Vec<bool> {
        let mut chosen = vec![false; self.pending.len()];
        let mut needed: BTreeSet<&Place> = BTreeSet::new();
        for (at, Pending { change, .. }) in self.pending.iter().enumerate().rev() {
            chosen[at] = wanted(at, change);
            if let Change::Name(change) = change {
                chosen[at] |= change.places().any(|place| needed.contains(place));
                if chosen[at] {
                    needed.extend(change.places());
                }
            }
        }
        chosen
    }

    fn make_durable(&mut self, is_synced: impl Fn(&Change) -> bool) {
        let mut synced = self
            .with_what_they_need(|_, change| is_synced(change))
            .into_iter();
        let durable = &mut self.durable;
        self.pending.retain(|Pending { change, .. }| {
            let is_synced = synced.next().unwrap();
            match change {
                Change::Name(change) if is_synced => durable.change_name(change),
                Change::Data(change) if is_synced => durable.write(change.inode, &change.what),
                Change::Name(_) | Change::Data(_) => {}
            }
            !is_synced
        });
    }
}

impl NameChange {
    /// The folder whose sync makes the change durable; for a rename, the folder of the new name.
    fn folder(&self) -> Inode {
        match self {
            Self::CreateFile { at, .. } | Self::CreateFolder { at, .. } | Self::Remove { at } => {
                at.0
            }
            Self::Rename { to, .. } => to.0,
        }
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let (one, other) = match self {
            Self::CreateFile { at, .. } | Self::CreateFolder { at, .. } | Self::Remove { at } => {
                (at, None)
            }
            Self::Rename { from, to } => (from, Some(to)),
        };
        std::iter::once(one).chain(other)
    }
}

impl Tree {
    /// The inode at `path`.
    pub(crate) fn find(&self, path: &Path) -> io::Result<Inode> {
        path.components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_str().unwrap()),
                _ => None,
            })
            .try_fold(ROOT, |folder, name| {
                self.folder(folder)?
                    .get(name)
                    .copied()
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            })
    }

    /// The folder of `path`, which must exist, and the name in it.
    pub(crate) fn place(&self, path: &Path) -> io::Result<Place> {
        let folder = self.find(path.parent().unwrap())?;
        self.folder(folder)?;
        Ok((folder, path.file_name().unwrap().to_str().unwrap().into()))
    }

    pub(crate) fn at(&self, (folder, name): &Place) -> Option<Inode> {
        self.folder(*folder).ok()?.get(name).copied()
    }

    pub(crate) fn folder(&self, inode: Inode) -> io::Result<&BTreeMap<Arc<str>, Inode>> {
        match self.nodes.get(&inode) {
            Some(Node::Folder(entries)) => Ok(entries),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(crate) fn content(&self, inode: Inode) -> io::Result<&Vec<u8>> {
        match self.nodes.get(&inode) {
            Some(Node::File(content)) => Ok(content),
            Some(Node::Folder(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(crate) fn change_name(&mut self, change: &NameChange) {
        match change {
            NameChange::CreateFile { at, inode } => {
                self.file(*inode);
                self.enter(at, *inode);
            }
            NameChange::CreateFolder { at, inode } => {
                self.entries(*inode);
                self.enter(at, *inode);
            }
            NameChange::Rename { from, to } => {
                if let Some(inode) = self.leave(from) {
                    self.enter(to, inode);
                }
            }
            NameChange::Remove { at } => drop(self.leave(at)),
        }
    }

    /// Fills a file with zeros; nothing happens to a folder.
    pub(crate) fn overwrite(&mut self, inode: Inode) {
        if let Some(Node::File(content)) = self.nodes.get_mut(&inode) {
            Arc::make_mut(content).fill(0);
        }
    }

    /// True if a folder has a name for the inode.
    pub(crate) fn names(&self, inode: Inode) -> bool {
        self.nodes.values().any(|node| match node {
            Node::Folder(entries) => entries.values().any(|entry| *entry == inode),
            Node::File(_) => false,
        })
    }

    pub(crate) fn write(&mut self, inode: Inode, what: &Write) {
        let content = self.file(inode);
        match what {
            Write::Length(length) if content.is_empty() => *content = vec![0; *length],
            Write::Length(length) => content.resize(*length, 0),
            Write::Bytes { at, bytes } => {
                let end = at + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*at..end].copy_from_slice(bytes);
            }
        }
    }

    /// The content of a file. A file whose data became durable before its name has no name yet.
    fn file(&mut self, inode: Inode) -> &mut Vec<u8> {
        let node = self
            .nodes
            .entry(inode)
            .or_insert_with(|| Node::File(Arc::default()));
        match node {
            Node::File(content) => Arc::make_mut(content),
            Node::Folder(_) => panic!("inode {inode} is a folder"),
        }
    }

    /// The names in a folder. A folder that is not durable itself may have durable names.
    fn entries(&mut self, folder: Inode) -> &mut BTreeMap<Arc<str>, Inode> {
        let node = self
            .nodes
            .entry(folder)
            .or_insert_with(|| Node::Folder(Arc::default()));
        match node {
            Node::Folder(entries) => Arc::make_mut(entries),
            Node::File(_) => panic!("inode {folder} is a file"),
        }
    }

    fn enter(&mut self, (folder, name): &Place, inode: Inode) {
        self.entries(*folder).insert(name.clone(), inode);
    }

    fn leave(&mut self, (folder, name): &Place) -> Option<Inode> {
        self.entries(*folder).remove(name)
    }
}
