//! A look at a store from outside: what its journal, its index and its files say together, as one picture. It takes no
//! lock and writes nothing, so it may be used beside the process that has the store open; whoever finds something odd
//! asks [`Look::is_current`] before believing it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::batch::{Epoch, Seq};
use crate::control::{self, StoreId};
use crate::disk::{Details, Disk, DiskError, DiskFile, Form};
use crate::engine::{OpenError, ReadError};
use crate::key::{Key, Prefix, RESERVED};
use crate::layout::Layout;
use crate::limits::{CONTROL_FILE_BYTES, GET_BYTES, LOOKS, OBJECT_PIECE_BYTES};
use crate::live::{self, Index, LiveSet};
use crate::lock::{self, Owner};
use crate::overlay::{Entry as Pending, Overlay};
use crate::replace;
use crate::scan::{self, Scan};
use crate::staged::{Staged, StagedName};
use crate::tree::Tree;

/// A store as it was at one moment.
pub struct Look {
    tree: Tree,
    layout: Layout,
    position: Position,
    overlay: Overlay,
    live: Option<LiveSet>,
    damage: Vec<Damage>,
    /// Unreadable indexes of checkpoints that did not come to their end.
    unmarked: Vec<PathBuf>,
    journal: JournalSize,
    mark: Mark,
}

/// How far a store has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The files alone show everything up to this commit.
    pub checkpoint: Seq,
    /// The last commit that is known of.
    pub last: Seq,
    /// The latest opening.
    pub epoch: Epoch,
}

/// What the journal takes, and holds for the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSize {
    pub segments: u64,
    /// Commits that are not in the files for certain.
    pub commits: u64,
}

/// A file of the store's own that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub part: Part,
    /// Below the root.
    pub path: String,
    pub offset: u64,
    pub what: String,
}

/// What a damaged file is to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing tells up to where the files are complete.
    Checkpoint,
    /// Acknowledged commits are lost, as far as the files do not show them already: all from `first` to `last`.
    Journal { first: Seq, last: Seq },
    /// It is rebuilt from the files.
    Index,
}

/// What a large object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub sha256: [u8; 32],
    /// In bytes.
    pub size: u64,
}

/// Something in a folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As text; what is no UTF-8 is replaced.
    pub name: String,
    pub role: Role,
    /// None for what only the journal has so far.
    pub details: Option<Details>,
}

/// What a name in a folder stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The file of a key.
    File(Key),
    /// A folder with files of keys.
    Folder,
    /// One of the store's own files or folders.
    Store,
    /// The next content of a file, which was never finished.
    Leftover,
    /// A name that no file of the store can have, or neither file nor folder.
    Foreign,
}

/// What changes with every commit and every checkpoint, and is quick to read again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    checkpoint: Vec<u8>,
    segments: Vec<PathBuf>,
    end: scan::End,
}

impl Mark {
    fn read(disk: &Disk, layout: &Layout, end: u64) -> Result<Self, DiskError> {
        let segments = scan::segments(disk, &layout.journal)?;
        Ok(Self {
            checkpoint: checkpoint_bytes(disk, layout)?,
            end: scan::end_at(disk, &segments, end)?,
            segments,
        })
    }
}

fn checkpoint_bytes(disk: &Disk, layout: &Layout) -> Result<Vec<u8>, DiskError> {
    match disk.read(&layout.checkpoint, CONTROL_FILE_BYTES) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        result => result,
    }
}

impl Look {
    /// Looks at the store at `root`. One of a newer format, or none at all, is an error; damage is not.
    pub fn at(root: impl AsRef<Path>) -> Result<Self, OpenError> {
        let (disk, layout) = (Disk::new(), Layout::new(root.as_ref()));
        let Some(store) = control::read_format(&disk, &layout.format)? else {
            return Err(OpenError::NotAState {
                root: layout.root.clone(),
            });
        };
        let mut tries = 1;
        loop {
            match Self::read(&disk, &layout, store) {
                // A segment or an index can go while it is looked for; then a checkpoint has come in between.
                Err(error) if error.is_missing() && tries < LOOKS => tries += 1,
                result => return Ok(result?),
            }
        }
    }

    fn read(disk: &Disk, layout: &Layout, store: StoreId) -> Result<Self, DiskError> {
        let mut damage = DamageList::of(layout);
        // Read before everything else, so that a checkpoint in between shows as a change of the mark.
        let checkpoint_bytes = checkpoint_bytes(disk, layout)?;
        let checkpoint = match control::read_checkpoint(disk, &layout.checkpoint, store) {
            Ok(checkpoint) => checkpoint,
            Err(OpenError::Disk(error)) => return Err(error),
            Err(error) => {
                let what = match error {
                    OpenError::Damaged { what, .. } => what,
                    other => other.to_string(),
                };
                damage.add(Part::Checkpoint, &layout.checkpoint, 0, what);
                None
            }
        };
        let least = checkpoint.map_or(Seq(0), |checkpoint| checkpoint.seq);
        let live::Survey { newest, unreadable } = live::survey(disk, &layout.index, store, least)?;
        let mut unmarked = Vec::new();
        for (seq, path) in unreadable {
            // A crash before the end of a checkpoint may take the content of its index.
            if checkpoint.is_some_and(|checkpoint| seq > checkpoint.seq) {
                unmarked.push(path);
            } else {
                damage.add(Part::Index, &path, 0, "it is not readable".to_owned());
            }
        }
        let base = match checkpoint.or(newest.as_ref().map(|index| index.at)) {
            Some(base) => base,
            None => {
                if damage.has_no_checkpoint() {
                    let what = "it is missing, and no live index tells the position of the store";
                    damage.add(Part::Checkpoint, &layout.checkpoint, 0, what.to_owned());
                }
                scan::beginning(disk, &layout.journal)?
            }
        };
        let mut scan = scan::survey(disk, &layout.journal, store, base.seq)?;
        damage.add_journal(disk, store, &scan)?;
        if let Some(index) = newest.as_ref().filter(|index| index.at.seq > scan.last)
            && scan.broken.is_none()
        {
            let (first, last) = (scan.last.next(), index.at.seq);
            let what = format!(
                "it ends with record {}, but record {last} was applied",
                scan.last
            );
            damage.add(Part::Journal { first, last }, &layout.journal, 0, what);
        }
        let mark = Mark {
            checkpoint: checkpoint_bytes,
            segments: std::mem::take(&mut scan.segments),
            end: scan.end.clone(),
        };
        let mut overlay = Overlay::default();
        let mut live = newest;
        for record in &scan.records {
            overlay.add(record.seq, &record.batch);
            if let Some(Index { at, live }) = &mut live
                && record.seq > at.seq
            {
                live.apply(&record.batch);
            }
        }
        Ok(Self {
            tree: Tree::new(disk.clone(), layout.root.clone()),
            layout: layout.clone(),
            position: Position {
                checkpoint: base.seq,
                last: scan.last,
                epoch: base.epoch.max(scan.epoch),
            },
            journal: JournalSize {
                segments: mark.segments.len() as u64,
                commits: scan.records.len() as u64,
            },
            overlay,
            live: live.map(|index| index.live),
            damage: damage.found,
            unmarked,
            mark,
        })
    }

    /// How far the store has come.
    pub fn position(&self) -> Position {
        self.position
    }

    pub fn journal(&self) -> JournalSize {
        self.journal
    }

    /// What is wrong with the store's own files.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    pub fn root(&self) -> &Path {
        &self.layout.root
    }

    /// Whether nothing has been committed since this look, so that what was read through it fits together.
    pub fn is_current(&self) -> Result<bool, DiskError> {
        match Mark::read(&self.tree.disk, &self.layout, self.mark.end.offset) {
            Ok(now) => Ok(now == self.mark),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The user that the state folder belongs to.
    pub fn owner(&self) -> Result<Option<u32>, DiskError> {
        let root = self.tree.disk.details(&self.layout.root)?;
        Ok(root.map(|details| details.owner))
    }

    /// The process that has the store open, as far as this system tells.
    pub fn user(&self) -> Option<Owner> {
        lock::holder(&self.tree.disk, &self.layout.lock)
    }

    /// The live records as the next start would stream them; none when it would have to look for them.
    pub fn live(&self) -> Option<impl Iterator<Item = (&Key, &Bytes)>> {
        self.live.as_ref().map(LiveSet::iter)
    }

    /// The live record of that key, as the next start would stream it.
    pub fn live_record(&self, key: &Key) -> Option<&Bytes> {
        self.live.as_ref()?.get(key)
    }

    /// The content of a file as it will be once the journal has been redone.
    pub fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        let tree = |staged: Option<&Staged>| self.tree.read_adopted(key, staged, GET_BYTES);
        let content = match self.overlay.get(key) {
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
        let tree = |staged: Option<&Staged>| match self.open(key, staged)? {
            Some(file) => file.read_at(at, limit).map(Some),
            None => Ok(None),
        };
        match self.overlay.get(key) {
            Some(entry) => entry.piece(at, limit, tree),
            None => Ok(tree(None)?.map(Bytes::from)),
        }
    }

    /// The file of a key, or of the object that will get it.
    fn open(&self, key: &Key, staged: Option<&Staged>) -> Result<Option<DiskFile>, DiskError> {
        if let Some(staged) = staged
            && let Some(file) = self.tree.open_staged(staged.name())?
        {
            return Ok(Some(file));
        }
        self.tree.open(key)
    }

    /// Size and digest of a large object.
    pub fn object(&self, key: &Key) -> Result<Option<Object>, DiskError> {
        let staged = self.overlay.get(key).and_then(Pending::adopted);
        let Some(file) = self.open(key, staged)? else {
            return Ok(None);
        };
        let (mut size, mut hasher) = (0, Sha256::new());
        loop {
            let piece = file.read_at(size, OBJECT_PIECE_BYTES)?;
            size += piece.len() as u64;
            hasher.update(&piece);
            if piece.len() < OBJECT_PIECE_BYTES {
                break;
            }
        }
        let sha256 = hasher.finalize().into();
        Ok(Some(Object { sha256, size }))
    }

    /// The length of a file as it will be.
    pub fn length(&self, key: &Key) -> Result<Option<u64>, ReadError> {
        let tree = || self.tree.length(key);
        match self.overlay.get(key) {
            Some(entry) if !entry.exists() => Ok(None),
            Some(entry) => Ok(Some(entry.length(|| Ok(tree()?.unwrap_or_default()))?)),
            None => Ok(tree()?),
        }
    }

    /// What a folder holds as it will be, in order of names. The folder is given as below the root. The names that a hold
    /// gives to objects are the store's own, and not counted as names of a file.
    pub fn entries(&self, folder: &str) -> Result<Vec<Entry>, DiskError> {
        let prefix = if folder.is_empty() {
            Some(Prefix::root())
        } else {
            Prefix::folder(folder).ok()
        };
        let path = self.layout.root.join(folder);
        let mut entries = BTreeMap::new();
        for name in self.tree.disk.names(&path)? {
            let Some(mut details) = self.tree.disk.details(&path.join(&name))? else {
                continue;
            };
            if details.form == Form::File && details.links > 1 {
                details.links -= self.tree.holds.names_of(&details)?;
            }
            let name = name.to_string_lossy().into_owned();
            let role = self.role(folder, prefix.as_ref(), &name, &details);
            if let Role::File(key) = &role
                && self.overlay.get(key).is_some_and(|entry| !entry.exists())
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
                .overlay
                .inside(prefix)
                .filter(|(_, entry)| entry.exists())
            {
                let rest = key
                    .as_str()
                    .strip_prefix(prefix.as_str())
                    .unwrap_or_default();
                let rest = rest.trim_start_matches('/');
                let (name, role) = match rest.split_once('/') {
                    Some((name, _)) => (name, Role::Folder),
                    None => (rest, Role::File(key.clone())),
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

    /// Everything that stands in a folder on the disk, whatever it is. A path that is a file has nothing in it.
    pub fn files(&self, folder: &str) -> Result<Vec<(String, Details)>, DiskError> {
        let path = self.layout.root.join(folder);
        let is_folder = |details: Details| details.form == Form::Folder;
        if !self.tree.disk.details(&path)?.is_some_and(is_folder) {
            return Ok(Vec::new());
        }
        let mut files = Vec::new();
        for name in self.tree.disk.names(&path)? {
            if let Some(details) = self.tree.disk.details(&path.join(&name))? {
                files.push((name.to_string_lossy().into_owned(), details));
            }
        }
        Ok(files)
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

    /// Files that an interrupted write has left in the store's own folders: the next start removes them.
    pub fn leftovers(&self) -> Result<Vec<String>, DiskError> {
        let unmarked = self.unmarked.iter();
        let mut found: Vec<String> = unmarked.map(|path| below(&self.layout, path)).collect();
        let waits = |name: &str| {
            let mut adoptions = self.overlay.adoptions();
            adoptions.any(|(_, _, staged)| staged.name().as_str() == name)
        };
        let Layout {
            tmp,
            index,
            journal,
            ..
        } = &self.layout;
        for folder in [tmp, index, journal] {
            for name in self.tree.disk.names(folder)? {
                let text = name.to_string_lossy();
                let is_left = if folder == tmp {
                    StagedName::parse(&text).is_some() && !waits(&text)
                } else {
                    replace::is_temporary(&text)
                };
                if is_left {
                    found.push(below(&self.layout, &folder.join(&name)));
                }
            }
        }
        Ok(found)
    }
}

/// Damage as it is found.
struct DamageList<'a> {
    layout: &'a Layout,
    found: Vec<Damage>,
}

impl<'a> DamageList<'a> {
    fn of(layout: &'a Layout) -> Self {
        Self {
            layout,
            found: Vec::new(),
        }
    }

    fn add(&mut self, part: Part, path: &Path, offset: u64, what: String) {
        self.found.push(Damage {
            part,
            path: below(self.layout, path),
            offset,
            what,
        });
    }

    fn add_journal(&mut self, disk: &Disk, store: StoreId, scan: &Scan) -> Result<(), DiskError> {
        let Some(broken) = &scan.broken else {
            return Ok(());
        };
        let first = scan.last.next();
        let last = scan::last_cut_off(disk, scan, store)?.unwrap_or(first);
        let what = broken.what.clone();
        self.add(
            Part::Journal { first, last },
            &broken.path,
            broken.offset,
            what,
        );
        Ok(())
    }

    fn has_no_checkpoint(&self) -> bool {
        self.found
            .iter()
            .all(|damage| damage.part != Part::Checkpoint)
    }
}

pub(crate) fn below(layout: &Layout, path: &Path) -> String {
    let below = path.strip_prefix(&layout.root).unwrap_or(path);
    below.to_string_lossy().into_owned()
}
