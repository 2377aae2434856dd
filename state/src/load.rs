//! Builds the world from the store's live records.
//!
//! A record that cannot be read, or that is at another record's key, is left out, so that one bad file does not affect
//! the rest. `damaged.rs` replaces it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use model::{
    Change, Holder, Revision, RevisionRecord, RevisionRef, ScanHead, ScanKey, Timestamp,
    WorkflowId, WorkflowRecord, World,
};
use store::{Key, LiveRecord, Prefix, Seq};
use workflow::{TemplatePolicy, sha256};

use crate::damaged::{self, Damaged};
use crate::envelope::{self, EnvelopeError, Stamp};
use crate::error::{OpenError, ReadError};
use crate::heads::{self, ScanRecords};
use crate::layout::Layout;
use crate::limits::DECODED_AT_ONCE;
use crate::lost_workflows;
use crate::reader::StoreReader;
use crate::rebuilt;
use crate::record::{Load, RepeatsRecord};

/// The world, and facts about the live records that the world does not contain.
pub(crate) struct Loaded {
    pub(crate) world: World,
    pub(crate) revisions: HashMap<Key, u64>,
    /// The live records that cannot be read.
    pub(crate) damaged: Vec<Damaged>,
}

/// Collects live records from the store.
#[derive(Default)]
pub(crate) struct Loading {
    revisions: HashMap<Key, u64>,
    changes: Vec<Change>,
    heads: Vec<Arc<ScanHead>>,
    /// Records that belong to heads.
    scan_records: HashMap<ScanKey, ScanRecords>,
    /// Tokens, sessions, runners, registrations and links, with the keys of their records.
    credentials: Vec<(Key, Change)>,
    needed: Vec<(WorkflowId, RevisionRef)>,
    damaged: Vec<Damaged>,
    /// The clock behind the expiry times of each record.
    clocks: HashMap<Holder, u64>,
    newer: Option<(Key, u32)>,
    restored: Vec<WorkflowRecord>,
}

impl Loading {
    pub(crate) fn take(&mut self, records: &[LiveRecord<'_>]) {
        let threads = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let pieces: Vec<_> = records.chunks(DECODED_AT_ONCE).collect();
        let decode = |piece: &&[LiveRecord<'_>]| -> Result<Vec<_>, Infallible> {
            Ok(piece
                .iter()
                .map(|(key, bytes)| decode(key, bytes))
                .collect())
        };
        let Ok(decoded) = store::parallel::try_map(threads, &pieces, decode);
        for ((key, bytes), decoded) in records.iter().zip(decoded.into_iter().flatten()) {
            self.add(key, bytes, decoded);
        }
    }

    fn add(&mut self, key: &Key, bytes: &[u8], decoded: Result<(Load, Stamp), EnvelopeError>) {
        if let Ok((load, stamp)) = &decoded {
            self.note(key, load, stamp);
        }
        match decoded.map(|(load, _)| load) {
            Ok(Load::Nothing) => {}
            Ok(Load::World(change)) => self.changes.push(change),
            Ok(Load::Credential(change)) => self.credentials.push((key.clone(), change)),
            Ok(Load::Head(head)) => self.heads.push(head),
            Ok(Load::Digests(digests)) => {
                let scan_records = self.scan_records.entry(digests.key()).or_default();
                scan_records.digests = Some(digests);
            }
            Ok(Load::Repeats(RepeatsRecord { scan, repeats })) => {
                self.scan_records.entry(scan).or_default().repeats = Some(repeats);
            }
            Err(EnvelopeError::Newer(version)) => {
                self.newer.get_or_insert_with(|| (key.clone(), version));
            }
            Err(problem) => match damaged::loss(key) {
                Some(loss) => self.damaged.push(Damaged::new(key, bytes, &problem, loss)),
                None => {
                    tracing::warn!(%key, %problem, "a file that is no record of this place is left as it is");
                }
            },
        }
    }

    fn note(&mut self, key: &Key, load: &Load, stamp: &Stamp) {
        if let Load::World(change) | Load::Credential(change) = load {
            if let Some(workflow) = change.workflow() {
                self.needed.push((workflow.id, workflow.revision.clone()));
            }
            if let Some(job) = change.job() {
                self.needed.push((job.workflow.id, job.revision.clone()));
            }
            self.clocks.extend(Holder::of(change).zip(stamp.clock));
        }
        if !matches!(load, Load::Nothing) {
            self.revisions.insert(key.clone(), stamp.revision);
        }
    }

    async fn restore_workflows(&mut self, reader: &StoreReader) {
        let known = self.changes.iter().filter_map(Change::workflow);
        let known = known.map(|workflow| workflow.id);
        match lost_workflows::restored(reader, known.collect()).await {
            Ok(records) => {
                for record in records {
                    self.needed.push((record.id, record.revision.clone()));
                    self.restored.push(record);
                }
            }
            Err(error) => {
                tracing::error!(%error, "lost workflow records cannot be rebuilt");
            }
        }
    }

    /// Leaves out credentials whose files were removed. An operator who removes the file wants to revoke the
    /// credential, so the index must not restore it.
    async fn leave_out_removed(&mut self, reader: &StoreReader) {
        let folders = self.credentials.iter().map(|(key, _)| key.folder());
        let mut names: HashMap<Prefix, Vec<String>> = HashMap::new();
        for folder in folders.collect::<HashSet<_>>() {
            // In a folder that cannot be read, the files may still exist.
            if let Ok(found) = reader.children(&folder).await {
                names.insert(folder, found);
            }
        }
        self.credentials.retain(|(key, _)| {
            let has =
                |names: &Vec<String>| names.binary_search_by(|it| (**it).cmp(key.name())).is_ok();
            names.get(&key.folder()).is_none_or(has)
        });
    }

    /// Reads the revisions that the live records name, and makes the world.
    pub(crate) async fn finish(
        mut self,
        reader: &StoreReader,
        now: Timestamp,
        last: Seq,
    ) -> Result<Loaded, OpenError> {
        // Leaving out records of a newer program would lose them.
        if let Some((key, version)) = self.newer {
            return Err(OpenError::Newer {
                path: key.to_string(),
                version,
            });
        }
        self.leave_out_removed(reader).await;
        self.restore_workflows(reader).await;
        let mut world = World::default();
        let mut loaded = BTreeSet::new();
        for (workflow, reference) in self.needed {
            if !loaded.insert(reference.id) {
                continue;
            }
            match load_revision(reader, workflow, &reference).await {
                Ok(revision) => world.apply(&Change::Revision(Arc::new(revision), None)),
                Err(error) => {
                    tracing::error!(%workflow, revision = reference.number, %error, "a revision cannot be read; its workflow is left out");
                }
            }
        }
        let mut heads = Vec::new();
        let credentials = self.credentials.iter().map(|(_, change)| change);
        for change in self.changes.iter().chain(credentials) {
            world.apply(change);
        }
        for head in self.heads {
            let scan_records = self.scan_records.remove(&head.key()).unwrap_or_default();
            heads.push(heads::whole(reader, head, scan_records).await);
        }
        for head in heads::with_ends(reader, heads).await? {
            world.apply(&Change::Head(head));
        }
        // The lost records had the time from which triggers count. They now count from the present time.
        for record in self.restored {
            let order = world.latest_order();
            let definition = world
                .revision(record.revision.id)
                .map(|revision| revision.definition.clone());
            let record = match definition {
                Some(definition) => record.rearmed(&definition, now, order),
                None => record,
            };
            world.apply(&Change::Workflow(Arc::new(record)));
        }
        for damaged in &mut self.damaged {
            damaged.find_replacement(reader, &world, last).await?;
            if let Some(change) = &damaged.replacement {
                world.apply(change);
            }
        }
        for head in rebuilt::lost_heads(reader, &world).await? {
            if world.retention(&head.key()).is_none() {
                let retention = rebuilt::retention_after_loss(reader, &head).await?;
                world.apply(&Change::Retention(Arc::new(retention)));
            }
            // Processed successes are in a record next to the head, not in the history.
            let scan_records = self.scan_records.remove(&head.key()).unwrap_or_default();
            let head = heads::whole(reader, Arc::new(head), scan_records).await;
            world.apply(&Change::Head(head));
        }
        world.finish_loading(now, self.clocks);
        Ok(Loaded {
            world,
            revisions: self.revisions,
            damaged: self.damaged,
        })
    }
}

fn decode(key: &Key, bytes: &[u8]) -> Result<(Load, Stamp), EnvelopeError> {
    let record = envelope::read(bytes)?;
    let stamp = record.stamp;
    let typed = record.typed()?;
    let place = typed.place();
    if place != *key {
        return Err(EnvelopeError::Place(place));
    }
    Ok((typed.into_load(), stamp))
}

/// A revision's record and the definition in its text.
pub(crate) async fn load_revision(
    reader: &StoreReader,
    workflow: WorkflowId,
    reference: &RevisionRef,
) -> Result<Revision, ReadError> {
    let key = Layout::revision(workflow, reference);
    let missing = |key: &Key| ReadError::damaged(key, "it is missing");
    let record: RevisionRecord = reader.record(&key).await?.ok_or_else(|| missing(&key))?;
    if record.reference != *reference {
        let found = record.reference.id;
        let problem = format!("it is the record of revision {found}");
        return Err(ReadError::damaged(&key, problem));
    }
    let key = Layout::revision_text(workflow, reference);
    let text = reader.get(&key).await?.ok_or_else(|| missing(&key))?;
    let found = sha256(&text);
    if found != record.text.sha256 {
        let problem = format!("its SHA-256 is {found}");
        return Err(ReadError::damaged(&key, problem));
    }
    let text = std::str::from_utf8(&text).map_err(|error| ReadError::damaged(&key, error))?;
    match workflow::parse(&record.file, text, TemplatePolicy::Warn) {
        Ok(parsed) => Ok(Revision {
            record,
            definition: Arc::new(parsed.workflow),
            warnings: parsed.warnings,
        }),
        Err(diagnostics) => {
            let first = diagnostics
                .first()
                .map_or_else(String::new, |first| first.message.clone());
            let problem = format!("it is not a valid workflow any more: {first}");
            Err(ReadError::damaged(&key, problem))
        }
    }
}
