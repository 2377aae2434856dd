//! A file system in memory that records its operations, so that a test can derive the result of a power cut at any
//! point.

pub(crate) mod model;
pub(crate) mod power_cut;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use model::{DataChange, Inode, Model, NameChange, Node, Operation, Tree, Write};

use crate::disk::{Details, FileSystem, Form, Identity, Kind, OpenFile, Opening, Space};

/// Where engines find randomness.
const RANDOM: &str = "/dev/urandom";

/// The random bytes so far, for all file systems: no two segments may have the same salt.
static RANDOM_NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A simulated file system. Clones share it.
#[derive(Clone)]
pub(crate) struct Simulated(Arc<Mutex<State>>);

struct State {
    model: Model,
    record: Vec<Event>,
    locked: BTreeSet<Inode>,
    network: Option<&'static str>,
}

/// Something that happened, in order.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Disk(Operation),
    /// A batch was handed to the engine.
    Begun,
    /// The engine returned: the batch is durable.
    Acknowledged,
    /// A hold exists.
    Held,
}

struct SimulatedFile {
    state: Arc<Mutex<State>>,
    inode: Inode,
    holds_lock: AtomicBool,
}

impl Simulated {
    pub(crate) fn new(model: Model) -> Self {
        let state = State {
            model,
            record: Vec::new(),
            locked: BTreeSet::new(),
            network: None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// From now on the files are on the network, with this protocol.
    pub(crate) fn move_to_network(&self, protocol: &'static str) {
        lock(&self.0).network = Some(protocol);
    }

    pub(crate) fn note(&self, event: Event) {
        lock(&self.0).record.push(event);
    }

    /// All events so far.
    pub(crate) fn record(&self) -> Vec<Event> {
        lock(&self.0).record.clone()
    }

    /// Applies an operation of another process.
    pub(crate) fn apply(&self, operation: &Operation) {
        lock(&self.0).model.apply(operation);
    }

    /// The number of events so far.
    pub(crate) fn now(&self) -> usize {
        lock(&self.0).record.len()
    }

    pub(crate) fn model(&self) -> Model {
        lock(&self.0).model.clone()
    }

    fn file(&self, inode: Inode) -> Box<dyn OpenFile> {
        Box::new(SimulatedFile {
            state: self.0.clone(),
            inode,
            holds_lock: AtomicBool::new(false),
        })
    }
}

impl State {
    fn perform(&mut self, operation: Operation) {
        self.model.apply(&operation);
        self.record.push(Event::Disk(operation));
    }

    fn visible(&self) -> &Tree {
        &self.model.visible
    }
}

/// A poisoned lock does not matter: a test that panicked fails in any case.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileSystem for Simulated {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn OpenFile>> {
        let mut state = lock(&self.0);
        if path == Path::new(RANDOM) {
            let number = RANDOM_NUMBERS.fetch_add(1, Ordering::SeqCst);
            let inode = state.model.new_inode();
            let bytes = [number.to_le_bytes(); 2].concat().into();
            state
                .model
                .visible
                .write(inode, &Write::Bytes { at: 0, bytes });
            return Ok(self.file(inode));
        }
        let found = match state.visible().find(path) {
            Ok(_) if opening == Opening::CreateNew => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match opening {
                Opening::Read | Opening::Write => Err(error),
                Opening::WriteOrCreate | Opening::CreateNew => {
                    let at = state.visible().place(path)?;
                    let inode = state.model.new_inode();
                    state.perform(Operation::Name(NameChange::CreateFile { at, inode }));
                    Ok(inode)
                }
            },
            found => found,
        };
        let inode = found?;
        if opening != Opening::Read {
            state.visible().content(inode)?;
        }
        Ok(self.file(inode))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        if state.visible().find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let at = state.visible().place(path)?;
        let inode = state.model.new_inode();
        state.perform(Operation::Name(NameChange::CreateFolder { at, inode }));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let visible = state.visible();
        visible.content(visible.find(from)?)?;
        let (from, to) = (visible.place(from)?, visible.place(to)?);
        if let Some(inode) = visible.at(&to) {
            visible.content(inode)?;
            // As in POSIX.
            if visible.at(&from) == Some(inode) {
                return Ok(());
            }
        }
        state.perform(Operation::Name(NameChange::Rename { from, to }));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let visible = state.visible();
        let inode = visible.find(from)?;
        visible.content(inode)?;
        if visible.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let at = visible.place(to)?;
        // A second name is created like the first.
        state.perform(Operation::Name(NameChange::CreateFile { at, inode }));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let visible = state.visible();
        visible.content(visible.find(path)?)?;
        let at = visible.place(path)?;
        state.perform(Operation::Name(NameChange::Remove { at }));
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let visible = state.visible();
        if !visible.folder(visible.find(path)?)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let at = visible.place(path)?;
        state.perform(Operation::Name(NameChange::Remove { at }));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, Kind)>> {
        let state = lock(&self.0);
        let visible = state.visible();
        let entries = visible.folder(visible.find(path)?)?.iter();
        Ok(entries
            .map(|(name, inode)| (name.to_string(), kind(visible, *inode)))
            .collect())
    }

    fn inspect(&self, path: &Path) -> io::Result<Details> {
        let state = lock(&self.0);
        Ok(details(state.visible(), state.visible().find(path)?))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let inode = state.visible().find(path)?;
        state.visible().folder(inode)?;
        state.perform(Operation::SyncFolder(inode));
        Ok(())
    }

    fn space(&self, _: &Path) -> io::Result<Space> {
        let bytes = 1 << 40;
        Ok(Space {
            total: bytes,
            free: bytes,
            files: 0,
            free_files: 0,
        })
    }

    fn network(&self, path: &Path) -> io::Result<Option<&'static str>> {
        let state = lock(&self.0);
        state.visible().find(path)?;
        Ok(state.network)
    }
}

fn kind(tree: &Tree, inode: Inode) -> Kind {
    match tree.nodes.get(&inode) {
        Some(Node::File(_)) => Kind::File,
        Some(Node::Folder(_)) => Kind::Folder,
        None => Kind::Nothing,
    }
}

fn details(tree: &Tree, inode: Inode) -> Details {
    let (form, bytes) = match tree.content(inode) {
        Ok(content) => (Form::File, content.len() as u64),
        Err(_) => (Form::Folder, 0),
    };
    Details {
        form,
        mode: 0,
        owner: 0,
        links: 1,
        bytes,
        allocated: bytes,
        modified: UNIX_EPOCH,
        identity: Identity { device: 1, inode },
    }
}

impl SimulatedFile {
    fn perform(&self, operation: Operation) {
        lock(&self.state).perform(operation);
    }

    fn write(&self, what: Write) {
        let inode = self.inode;
        self.perform(Operation::Data(DataChange { inode, what }));
    }
}

impl OpenFile for SimulatedFile {
    fn inspect(&self) -> io::Result<Details> {
        Ok(details(lock(&self.state).visible(), self.inode))
    }

    fn read_at(&self, at: u64, limit: usize) -> io::Result<Vec<u8>> {
        let state = lock(&self.state);
        let content = state.visible().content(self.inode)?;
        let from = content.len().min(at as usize);
        let to = content.len().min(from.saturating_add(limit));
        Ok(content[from..to].to_vec())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write(Write::Bytes {
            at: at as usize,
            bytes: bytes.into(),
        });
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.write(Write::Length(len as usize));
        Ok(())
    }

    fn set_modified(&self, _: SystemTime) {}

    /// Only called for a new file: growing fills it with zeros.
    fn allocate(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.perform(Operation::SyncFile(self.inode));
        Ok(())
    }

    fn start_writeback(&self, _at: u64, _len: u64) {}

    fn sync_file_system(&self) -> io::Result<()> {
        self.perform(Operation::SyncAll);
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let is_free = lock(&self.state).locked.insert(self.inode);
        if is_free {
            self.holds_lock.store(true, Ordering::SeqCst);
        }
        Ok(is_free)
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        if self.holds_lock.load(Ordering::SeqCst) {
            lock(&self.state).locked.remove(&self.inode);
        }
    }
}
