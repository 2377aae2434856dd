//! The changes that acknowledged batches will make to the tree, by key. Readers check the overlay first and then the
//! tree. The applier writes the overlay of a group of batches to the tree; a start writes the overlay of the whole
//! journal.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Bound;

use bytes::Bytes;

use crate::batch::{Batch, Seq};
use crate::disk::DiskError;
use crate::engine::ReadError;
use crate::key::{Key, Prefix};
use crate::limits::{
    APPLY_THREADS, COPY_BYTES, GET_BYTES, PARALLEL_APPLY, PARALLEL_REDO, REDO_THREADS,
};
use crate::parallel;
use crate::staged::Staged;
use crate::tree::Tree;

#[derive(Debug, Default)]
pub(crate) struct Overlay {
    entries: BTreeMap<Key, Entry>,
}

/// The future content of a file: a base, and pieces that are written over it in order.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    base: Base,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Base {
    /// The content in the tree.
    Tree,
    Absent(Seq),
    Content(Seq, Bytes),
    /// A large object, in `tmp/` or already at its key.
    Adopted(Seq, Staged),
}

#[derive(Clone, Debug)]
struct Piece {
    seq: Seq,
    at: u64,
    bytes: Bytes,
}

impl Overlay {
    pub(crate) fn add(&mut self, seq: Seq, batch: &Batch) {
        for (key, put) in &batch.puts {
            self.replace(key, Base::Content(seq, put.bytes.clone()));
        }
        for key in &batch.deletes {
            self.replace(key, Base::Absent(seq));
        }
        for (key, staged) in &batch.adopts {
            self.replace(key, Base::Adopted(seq, staged.clone()));
        }
        for append in &batch.appends {
            let piece = Piece {
                seq,
                at: append.at,
                bytes: append.bytes.clone(),
            };
            let fresh = || Entry {
                base: Base::Tree,
                pieces: Vec::new(),
            };
            self.entries
                .entry(append.ledger.clone())
                .or_insert_with(fresh)
                .pieces
                .push(piece);
        }
    }

    fn replace(&mut self, key: &Key, base: Base) {
        self.entries.insert(
            key.clone(),
            Entry {
                base,
                pieces: Vec::new(),
            },
        );
    }

    /// Removes what the tree now holds: everything up to `seq` of these keys.
    pub(crate) fn settle<'a>(&mut self, seq: Seq, keys: impl IntoIterator<Item = &'a Key>) {
        for key in keys {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.settle(seq);
                if entry.is_empty() {
                    self.entries.remove(key);
                }
            }
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Objects that will get their keys.
    pub(crate) fn adoptions(&self) -> impl Iterator<Item = (&Key, &Staged)> {
        let entries = self.entries.iter();
        entries.filter_map(|(key, entry)| Some((key, entry.adopted()?)))
    }

    pub(crate) fn inside<'a>(
        &'a self,
        prefix: &'a Prefix,
    ) -> impl Iterator<Item = (&'a Key, &'a Entry)> {
        let range = (Bound::Included(prefix.start()), Bound::Unbounded);
        self.entries
            .range::<str, _>(range)
            .take_while(|(key, _)| prefix.contains(key))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.keys()
    }

    /// Removed files, including those that are created again.
    pub(crate) fn removed(&self) -> impl Iterator<Item = &Key> {
        self.removals().map(|(key, _)| key)
    }

    fn removals(&self) -> impl Iterator<Item = (&Key, Seq)> {
        self.entries
            .iter()
            .filter_map(|(key, entry)| match entry.base {
                Base::Absent(seq) => Some((key, seq)),
                Base::Tree | Base::Content(..) | Base::Adopted(..) => None,
            })
    }

    /// Writes the overlay to the tree while readers use it.
    pub(crate) fn apply(&self, tree: &Tree) -> Result<(), DiskError> {
        let threads = self.threads(PARALLEL_APPLY, APPLY_THREADS);
        self.write(tree, threads, Tree::delete, |_, _| Ok(false))
    }

    /// Like [`Self::apply`], after a crash that may have interrupted an earlier run.
    pub(crate) fn redo(&self, tree: &Tree) -> Result<(), DiskError> {
        self.redo_unless(tree, |_, _| Ok(false))
    }

    /// Like [`Self::redo`], but skips files for which `is_newer` returns true.
    pub(crate) fn redo_unless(
        &self,
        tree: &Tree,
        is_newer: impl Fn(&Key, Seq) -> Result<bool, DiskError> + Sync,
    ) -> Result<(), DiskError> {
        let threads = self.threads(PARALLEL_REDO, REDO_THREADS);
        self.write(tree, threads, Tree::delete_with_leftover, is_newer)
    }

    fn threads(&self, parallel: usize, threads: NonZeroUsize) -> NonZeroUsize {
        match self.entries.len() < parallel {
            true => NonZeroUsize::MIN,
            false => threads,
        }
    }

    /// Remove files before others are created, because a file may become a folder and the reverse.
    fn write(
        &self,
        tree: &Tree,
        threads: NonZeroUsize,
        delete: impl Fn(&Tree, &Key) -> Result<(), DiskError> + Sync,
        is_newer: impl Fn(&Key, Seq) -> Result<bool, DiskError> + Sync,
    ) -> Result<(), DiskError> {
        let removed: Vec<(&Key, Seq)> = self.removals().collect();
        parallel::try_map(threads, &removed, |(key, seq)| {
            if is_newer(key, *seq)? {
                return Ok(());
            }
            delete(tree, key)
        })?;
        let existing: Vec<(&Key, &Entry)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.exists())
            .collect();
        parallel::try_map(threads, &existing, |(key, entry)| {
            if let Base::Content(seq, bytes) = &entry.base
                && !is_newer(key, *seq)?
            {
                tree.put(key, bytes)?;
            }
            entry.extend(tree, key)
        })
        .map(drop)
    }
}

/// The content of the file `key`, from `entry` and the tree.
pub(crate) fn content(
    tree: &Tree,
    key: &Key,
    entry: Option<&Entry>,
) -> Result<Option<Bytes>, ReadError> {
    let read = |staged: Option<&Staged>| tree.read_adopted(key, staged, GET_BYTES);
    let content = match entry {
        Some(entry) => entry.content(read),
        None => read(None),
    };
    match content {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(ReadError::TooLarge {
            key: key.clone(),
            length: length(tree, key, entry)?.unwrap_or_default(),
        }),
        content => Ok(content?),
    }
}

/// The length of the file `key`, from `entry` and the tree.
pub(crate) fn length(
    tree: &Tree,
    key: &Key,
    entry: Option<&Entry>,
) -> Result<Option<u64>, DiskError> {
    match entry {
        Some(entry) if !entry.exists() => Ok(None),
        Some(entry) => {
            let in_tree = || Ok(tree.length(key)?.unwrap_or_default());
            entry.length(in_tree).map(Some)
        }
        None => tree.length(key),
    }
}

impl Entry {
    /// Moves the object to its key and writes later pieces.
    fn extend(&self, tree: &Tree, key: &Key) -> Result<(), DiskError> {
        if let Base::Adopted(_, staged) = &self.base {
            tree.adopt(key, staged)?;
        }
        let mut pieces = self.pieces.iter().peekable();
        while let Some(first) = pieces.next() {
            let (at, mut run) = (first.at, first.bytes.to_vec());
            // Write consecutive small pieces at once.
            let continues = |run: &Vec<u8>, next: &Piece| {
                next.at == at + run.len() as u64 && run.len() + next.bytes.len() <= COPY_BYTES
            };
            while let Some(next) = pieces.next_if(|next| continues(&run, next)) {
                run.extend_from_slice(&next.bytes);
            }
            let length = tree.length(key)?.unwrap_or_default();
            if at > length {
                // Somebody truncated the file. Its rest stays readable, and the store continues.
                tracing::error!(%key, at, length, "a growing file is too short for its next piece: somebody truncated it");
                break;
            }
            tree.append(key, at, &run)?;
        }
        Ok(())
    }

    pub(crate) fn exists(&self) -> bool {
        !matches!((&self.base, self.pieces.as_slice()), (Base::Absent(_), []))
    }

    /// The object that will get this key.
    pub(crate) fn adopted(&self) -> Option<&Staged> {
        match &self.base {
            Base::Adopted(_, staged) => Some(staged),
            Base::Tree | Base::Absent(_) | Base::Content(..) => None,
        }
    }

    /// The content of the file. `tree` reads the given object, or the file at the key; it is called only if needed.
    pub(crate) fn content(
        &self,
        tree: impl FnOnce(Option<&Staged>) -> Result<Option<Bytes>, DiskError>,
    ) -> Result<Option<Bytes>, DiskError> {
        self.piece(0, usize::MAX, tree)
    }

    /// At most `limit` bytes from byte `at` on. `tree` reads the same range; it is called only if needed.
    pub(crate) fn piece(
        &self,
        at: u64,
        limit: usize,
        tree: impl FnOnce(Option<&Staged>) -> Result<Option<Bytes>, DiskError>,
    ) -> Result<Option<Bytes>, DiskError> {
        let base = match &self.base {
            Base::Tree => tree(None)?,
            Base::Adopted(_, staged) => tree(Some(staged))?,
            Base::Absent(_) => None,
            Base::Content(_, bytes) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let to = from.saturating_add(limit).min(bytes.len());
                Some(bytes.slice(from..to))
            }
        };
        if self.pieces.is_empty() {
            return Ok(base);
        }
        let mut piece = base.map(Vec::from).unwrap_or_default();
        let end = at.saturating_add(limit as u64);
        for Piece {
            at: start, bytes, ..
        } in &self.pieces
        {
            let (first, last) = (
                at.max(*start),
                end.min(start.saturating_add(bytes.len() as u64)),
            );
            // Both ends lie within a piece and within `limit`, so neither difference leaves `usize`.
            let (to, from) = ((first - at) as usize, first.saturating_sub(*start) as usize);
            // A gap means that the tree changed during the read. The caller notices that and reads again.
            if first >= last || to > piece.len() {
                continue;
            }
            let count = (last - first) as usize;
            piece.resize(piece.len().max(to + count), 0);
            piece[to..to + count].copy_from_slice(&bytes[from..from + count]);
        }
        Ok(Some(piece.into()))
    }

    /// The length of the file. `tree` is called only if needed.
    pub(crate) fn length(
        &self,
        tree: impl FnOnce() -> Result<u64, DiskError>,
    ) -> Result<u64, DiskError> {
        let base = match &self.base {
            Base::Tree => tree()?,
            Base::Absent(_) => 0,
            Base::Content(_, bytes) => bytes.len() as u64,
            Base::Adopted(_, staged) => staged.size(),
        };
        Ok(self
            .pieces
            .iter()
            .map(|piece| piece.at + piece.bytes.len() as u64)
            .fold(base, u64::max))
    }

    fn settle(&mut self, seq: Seq) {
        match &self.base {
            Base::Absent(at) | Base::Content(at, _) | Base::Adopted(at, _) if *at <= seq => {
                self.base = Base::Tree;
            }
            Base::Tree | Base::Absent(_) | Base::Content(..) | Base::Adopted(..) => {}
        }
        self.pieces.retain(|piece| piece.seq > seq);
    }

    fn is_empty(&self) -> bool {
        matches!(self.base, Base::Tree) && self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Epoch;
    use crate::tests::world::{self, Op, ops};

    const NAME: &str = "a.jsonl";

    fn key() -> Key {
        world::key(NAME)
    }

    fn one(operation: Op) -> Batch {
        ops(Epoch(1), [operation])
    }

    fn put(content: &str) -> Batch {
        one(world::put(NAME, content))
    }

    fn append(at: u64, content: &str) -> Batch {
        one(world::append(NAME, at, content))
    }

    fn delete() -> Batch {
        one(world::delete(NAME))
    }

    fn content(overlay: &Overlay, tree: &'static str) -> Option<Bytes> {
        let tree = |_: Option<&Staged>| Ok(Some(Bytes::from_static(tree.as_bytes())));
        overlay
            .get(&key())
            .map_or_else(|| tree(None), |entry| entry.content(tree))
            .unwrap()
    }

    #[test]
    fn the_view_is_the_same_while_the_tree_catches_up() {
        let mut overlay = Overlay::default();
        let batches = [
            append(3, "def"),
            append(6, "g"),
            delete(),
            append(0, "x"),
            put("12"),
            append(2, "3"),
        ];
        let trees = ["abc", "abcdef", "abcdefg", "", "x", "12", "123"];
        for (batch, seq) in batches.iter().zip(1..) {
            overlay.add(Seq(seq), batch);
        }
        for (tree, seq) in trees.iter().zip(0..) {
            overlay.settle(Seq(seq), [&key()]);
            assert_eq!(content(&overlay, tree).unwrap(), "123", "after {seq}");
        }
        assert!(overlay.get(&key()).is_none());
    }

    #[test]
    fn pieces_are_read_correctly_when_the_tree_already_has_them() {
        let mut overlay = Overlay::default();
        overlay.add(Seq(1), &append(3, "def"));
        for tree in ["abc", "abcd", "abcdef"] {
            assert_eq!(content(&overlay, tree).unwrap(), "abcdef");
        }
        let length = |tree: u64| overlay.get(&key()).unwrap().length(|| Ok(tree)).unwrap();
        assert_eq!((length(3), length(6)), (6, 6));
    }

    #[test]
    fn a_piece_equals_the_same_range_of_the_content() {
        for (batches, tree) in [
            (vec![append(3, "def"), append(6, "g")], "abc"),
            (vec![append(3, "def")], "abcdef"),
            (vec![put("12"), append(2, "34")], "abcdef"),
            (vec![delete(), append(0, "xyz")], "abcdef"),
            (vec![delete()], "abc"),
        ] {
            let mut overlay = Overlay::default();
            for (batch, seq) in batches.iter().zip(1..) {
                overlay.add(Seq(seq), batch);
            }
            let whole = content(&overlay, tree);
            let entry = overlay.get(&key()).unwrap();
            for (at, limit) in (0..9).flat_map(|at| (0..9).map(move |limit| (at, limit))) {
                let cut = |text: &[u8]| -> Vec<u8> {
                    text.iter().skip(at).take(limit).copied().collect()
                };
                let piece = entry
                    .piece(at as u64, limit, |_| Ok(Some(cut(tree.as_bytes()).into())))
                    .unwrap();
                let expected = whole.as_ref().map(|whole| cut(whole));
                assert_eq!(piece.map(Vec::from), expected, "{limit} from {at}");
            }
        }
    }
}
