//! Repairs findings if a program can know the right content. It moves untrustworthy files to the quarantine, tightens
//! permissions, rebuilds derived files and counts scans again. It deletes nothing, and a person can undo every step.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use model::retention::Retention;
use model::{Change, Digests, ScanHead, ScanKey, Totals, World};
use serde::Serialize;
use store::file::{FileEngine, Options};
use store::look::Look;
use store::mend::Mending;
pub use store::mend::{Loss, Moved};
use store::{Engine, Key};

use super::finding::{Code, Finding, Remedy};
use super::{Checked, Event, Miscounted, fsck};
use crate::envelope;
use crate::error::ReadError;
use crate::layout::{Layout, RecordPlace};
use crate::reader::StoreReader;
use crate::rebuilt;
use crate::scan_places::scan_at;
use crate::written::{Keys, Written};

/// A step of a repair. Paths are relative to the state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "repair", rename_all = "snake_case")]
pub enum Repair {
    /// A file was moved to the quarantine.
    Moved(Moved),
    /// Users other than the owner no longer have access.
    Closed {
        path: String,
        /// The earlier mode, in octal digits.
        mode: String,
    },
    /// The counters of a scan were rewritten.
    Recounted { path: String },
    /// The damaged rest of the journal was cut off.
    Lost(Loss),
}

/// Why a state was not repaired completely.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The folder could not be opened for work on its files.
    #[error(transparent)]
    Open(#[from] store::file::OpenError),
    /// The store could not be opened for a new count.
    #[error(transparent)]
    Engine(#[from] store::OpenError),
    #[error(transparent)]
    Disk(#[from] store::DiskError),
    #[error(transparent)]
    Look(#[from] store::ReadError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("a rebuilt record could not be committed")]
    Commit(#[from] store::CommitError),
    #[error("the state was repaired, but not closed")]
    Close(#[from] store::CloseError),
    #[error("a record cannot be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}

/// Repairs the state folder at `root` and checks it once more. Nobody may have the folder open. With `accept_loss`, a
/// journal that is damaged in the middle is cut there.
pub async fn repair(
    root: &Path,
    accept_loss: bool,
    report: &mut dyn FnMut(Event),
) -> Result<Checked, RepairError> {
    mend_store(root, accept_loss, report)?;
    // Apply the journal first, so that a later replay undoes no repair.
    let mut engine = FileEngine::new(root, Options::default());
    engine.open(&mut |_| ()).await?;
    engine.close().await?;

    let heads = mend_files(root, report)?;
    let heads: Vec<_> = heads.into_iter().map(|key| (key, Rebuild::Head)).collect();
    rewrite(root, heads, report).await?;
    let (mut left, mut checked, miscounted) = check(root, report)?;
    // Only now are the jobs in the quarantine and the counts of the heads known.
    if !miscounted.is_empty() {
        let records = miscounted.into_iter().map(|(scan, present)| {
            let key = Layout::retention(&scan);
            (key, Rebuild::Retention(scan, present))
        });
        rewrite(root, records.collect(), report).await?;
        (left, checked, _) = check(root, report)?;
    }
    for finding in left {
        report(Event::Left(finding));
    }
    Ok(checked)
}

fn check(
    root: &Path,
    report: &mut dyn FnMut(Event),
) -> Result<(Vec<Finding>, Checked, Miscounted), RepairError> {
    let mut found = Vec::new();
    let (checked, miscounted) = super::check(root, &mut |event| match event {
        Event::Found(finding) => found.push(finding),
        event => report(event),
    })?;
    Ok((found, checked, miscounted))
}

fn mend_store(
    root: &Path,
    accept_loss: bool,
    report: &mut dyn FnMut(Event),
) -> Result<(), RepairError> {
    let mending = Mending::begin(root)?;
    for moved in mending.mend_checkpoint()? {
        report(Event::Done(Repair::Moved(moved)));
    }
    if accept_loss && let Some((loss, moved)) = mending.accept_loss()? {
        report(Event::Done(Repair::Lost(loss)));
        for moved in moved {
            report(Event::Done(Repair::Moved(moved)));
        }
    }
    Ok(())
}

/// Checks, and repairs single files. Returns the keys of heads that must be counted again.
fn mend_files(root: &Path, report: &mut dyn FnMut(Event)) -> Result<BTreeSet<Key>, RepairError> {
    let mending = Mending::begin(root)?;
    let (mut heads, mut failed) = (BTreeSet::new(), None);
    fsck(root, &mut |event| {
        let Event::Found(finding) = event else {
            return report(event);
        };
        report(Event::Found(finding.clone()));
        if let Ok(key) = Key::new(&finding.path) {
            match RecordPlace::parse(&key) {
                Some(RecordPlace::Head) if is_about_a_head(finding.code) => {
                    heads.insert(key);
                }
                // The head shows what the lost record contained.
                Some(RecordPlace::Digests) if finding.code == Code::RecordMissing => {
                    let head = RecordPlace::Head.path_in(key.folder().as_str());
                    heads.extend(Key::new(head).ok());
                }
                Some(_) | None => {}
            }
        }
        match mend(&mending, &finding) {
            Ok(done) => done.into_iter().for_each(|done| report(Event::Done(done))),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok(heads)
}

fn mend(mending: &Mending, finding: &Finding) -> Result<Vec<Repair>, store::DiskError> {
    match finding.code.remedy() {
        // Move the index first. Otherwise an interrupted repair would leave an index that names a missing file.
        Remedy::SetAside => {
            let mut moved = mending.set_index_aside()?;
            moved.extend(mending.set_aside(&finding.path)?);
            Ok(moved.into_iter().map(Repair::Moved).collect())
        }
        Remedy::CloseToOthers => {
            let before = mending.close_to_others(&finding.path)?;
            let closed = before.map(|mode| Repair::Closed {
                path: finding.path.clone(),
                mode: format!("{mode:04o}"),
            });
            Ok(closed.into_iter().collect())
        }
        Remedy::SetIndexAside => {
            let moved = mending.set_index_aside()?;
            Ok(moved.into_iter().map(Repair::Moved).collect())
        }
        Remedy::Recount | Remedy::Nothing => Ok(Vec::new()),
    }
}

/// Whether a head with this finding must be rewritten.
const fn is_about_a_head(code: Code) -> bool {
    matches!(code, Code::RecordMissing)
        || matches!(code.remedy(), Remedy::Recount | Remedy::SetAside)
}

enum Rebuild {
    Head,
    /// The record of removed jobs, for a scan that still has these jobs.
    Retention(ScanKey, Totals),
}

/// Rebuilds records, each in a commit of its own. An existing record is moved to the quarantine first.
async fn rewrite(
    root: &Path,
    records: Vec<(Key, Rebuild)>,
    report: &mut dyn FnMut(Event),
) -> Result<(), RepairError> {
    if records.is_empty() {
        return Ok(());
    }
    let (mut before, mut revisions) = (HashMap::new(), HashMap::new());
    {
        let mending = Mending::begin(root)?;
        let look = Look::at(root)?;
        for (key, _) in &records {
            let bytes = look.get(key)?.unwrap_or_default();
            if let Ok(record) = envelope::read(&bytes) {
                revisions.insert(key.clone(), record.stamp.revision);
            }
            before.insert(key.clone(), bytes);
            if let Some(moved) = mending.set_aside(key.as_str())? {
                report(Event::Done(Repair::Moved(moved)));
            }
        }
        for moved in mending.set_index_aside()? {
            report(Event::Done(Repair::Moved(moved)));
        }
    }
    let mut engine = FileEngine::new(root, Options::default());
    let (epoch, last) = engine.open(&mut |_| ()).await?;
    let reader = StoreReader::new(engine.reader());
    let look = Look::at(root)?;
    let mut written = Written::until(epoch, last, revisions);
    for (key, rebuild) in records {
        let bytes = before.remove(&key).unwrap_or_default();
        let change = match rebuild {
            Rebuild::Head => rebuild_head(&look, &reader, &key, &bytes).await?,
            Rebuild::Retention(scan, present) => {
                rebuild_retention(&look, &reader, &scan, &present, &bytes).await?
            }
        };
        let Some(change) = change else {
            continue;
        };
        let path = key.to_string();
        let batch = written.encoder(&World::default()).encode(&[change])?;
        let keys = Keys::of(&batch);
        let sequence = engine.commit(batch).await?;
        written.committed(sequence, keys);
        report(Event::Done(Repair::Recounted { path }));
    }
    drop(reader);
    engine.close().await?;
    Ok(())
}

/// Rebuilds the head at `key`, whose content was `bytes`. `None` if no revision names the scan: a person must decide
/// about this head.
async fn rebuild_head(
    look: &Look,
    reader: &StoreReader,
    key: &Key,
    bytes: &[u8],
) -> Result<Option<Change>, RepairError> {
    let head = match envelope::open_at::<ScanHead>(key, bytes) {
        Ok(known) => {
            let counted = after_loss(look, reader, &known.key()).await?;
            ScanHead {
                totals: counted.totals,
                has_processed: has_processed(look, &known.key())?,
                latest_job: known.latest_job.max(counted.latest_job),
                ..known
            }
        }
        Err(_) => match scan_at(reader, key, Layout::head).await? {
            Some(scan) => after_loss(look, reader, &scan).await?,
            None => return Ok(None),
        },
    };
    Ok(Some(Change::Head(head.into())))
}

/// Whether the scan's record of digests has processed successes.
fn has_processed(look: &Look, scan: &ScanKey) -> Result<bool, RepairError> {
    let bytes = look.get(&Layout::digests(scan))?.unwrap_or_default();
    let digests = envelope::open::<Digests>(&bytes).ok();
    Ok(digests.is_some_and(|digests| !digests.processed.is_empty()))
}

/// Rebuilds the record of removed jobs of a scan that still has the jobs `present`. `bytes` is the earlier record.
async fn rebuild_retention(
    look: &Look,
    reader: &StoreReader,
    scan: &ScanKey,
    present: &Totals,
    bytes: &[u8],
) -> Result<Option<Change>, RepairError> {
    let head = look.get(&Layout::head(scan))?.unwrap_or_default();
    let Ok(head) = envelope::open::<ScanHead>(&head) else {
        return Ok(None);
    };
    let known = envelope::open::<Retention>(bytes).ok();
    let retention = Retention {
        deletions: known.map(|known| known.deletions).unwrap_or_default(),
        ..rebuilt::recounted(reader, &head, present).await?
    };
    Ok(Some(Change::Retention(retention.into())))
}

/// The head that the daemon would rebuild at its start.
async fn after_loss(
    look: &Look,
    reader: &StoreReader,
    scan: &ScanKey,
) -> Result<ScanHead, RepairError> {
    let bytes = look.get(&Layout::retention(scan))?.unwrap_or_default();
    let known = envelope::open::<Retention>(&bytes).ok();
    let retention = known.unwrap_or_else(|| Retention::new(scan.workflow, scan.scan.clone()));
    Ok(rebuilt::after_loss(reader, &retention).await?)
}
