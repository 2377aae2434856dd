//! Histories that commands wait for. A scan's finished jobs are read when a command first needs them. The committer
//! continues with other commands meanwhile.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use model::{Change, Recent, ScanKey, World};
use tokio::task::JoinSet;

use super::Waiting;
use crate::error::ReadError;
use crate::history::KnownPast;
use crate::recent::ReadRecent;

/// The histories that are being read, and the commands that wait for them.
pub(crate) struct Histories {
    reader: Arc<dyn ReadRecent>,
    reading: JoinSet<(ScanKey, Result<Recent, ReadError>)>,
    /// The changes committed to each of these histories since its reading began.
    since: HashMap<ScanKey, Vec<Change>>,
    waiting: Vec<(BTreeSet<ScanKey>, Waiting)>,
    ready: VecDeque<Waiting>,
}

impl Histories {
    pub(crate) fn new(reader: Arc<dyn ReadRecent>) -> Self {
        Self {
            reader,
            reading: JoinSet::new(),
            since: HashMap::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Lets a command wait until these histories are read. Everything in `world` must be committed.
    pub(super) fn wait(&mut self, scans: BTreeSet<ScanKey>, command: Waiting, world: &World) {
        for scan in &scans {
            if self.since.contains_key(scan) {
                continue;
            }
            self.since.insert(scan.clone(), Vec::new());
            let past = world.head(scan).map(|head| KnownPast::of(world, head));
            let (scan, reader) = (scan.clone(), self.reader.clone());
            self.reading.spawn(async move {
                let recent = match past {
                    None => Ok(Recent::default()),
                    Some(past) => reader.read(&past).await,
                };
                (scan, recent)
            });
        }
        self.waiting.push((scans, command));
    }

    /// A command whose histories have been read, or cannot be read.
    pub(super) fn ready(&mut self) -> Option<Waiting> {
        self.ready.pop_front()
    }

    pub(super) fn are_read(&self) -> bool {
        self.reading.is_empty()
    }

    /// Keeps the changes that a running read may have missed.
    pub(super) fn committed(&mut self, changes: &[Change]) {
        if self.since.is_empty() {
            return;
        }
        for change in changes {
            let Some(scan) = change.scan_of_history() else {
                continue;
            };
            if let Some(since) = self.since.get_mut(&scan) {
                since.push(change.clone());
            }
        }
    }

    /// Waits for the next read to end. Returns the changes that put the history into the world.
    pub(super) async fn read(&mut self) -> Vec<Change> {
        let (scan, recent) = match self.reading.join_next().await {
            Some(Ok(read)) => read,
            // A panic ends the committer.
            Some(Err(ended)) => std::panic::resume_unwind(ended.into_panic()),
            None => return Vec::new(),
        };
        let since = self.since.remove(&scan).unwrap_or_default();
        for (scans, _) in &mut self.waiting {
            scans.remove(&scan);
        }
        let ready = self.waiting.extract_if(.., |(scans, _)| scans.is_empty());
        self.ready.extend(ready.map(|(_, command)| command));
        match recent {
            Ok(recent) => {
                let mut learnt = vec![Change::Recent(scan, Arc::new(recent))];
                learnt.extend(since);
                learnt
            }
            // The next command that needs the history reads it again.
            Err(error) => {
                tracing::error!(scan = %scan.scan, %error, "a scan's history cannot be read; expressions that read its jobs wait");
                Vec::new()
            }
        }
    }
}
