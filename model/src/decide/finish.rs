//! The changes that every end of a job makes in one commit: the scan's head, the history, the retry of a failed job,
//! and the jobs that a success starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::job_end::{ended, note_end, settle};
use super::retry::{LargeInputs, retry};
use super::triggers::{active, consider, read_by_trigger};
use super::{Evaluate, Refusal};
use crate::change::Change;
use crate::job::{End, Job, JobState};
use crate::life_cycle::JobEvent;
use crate::limits::{FOLLOWERS, FOLLOWERS_BYTES, FOLLOWERS_OPERATIONS};
use crate::moment::Moment;
use crate::scan_head::{Digests, ScanHead};
use crate::view::{Ended, View};
use crate::world::World;
use crate::{JobId, Reason, ScanKey};

/// Ends a job. Returns its record and the changes: the scan's head, the line in the history, the retry, and the started jobs.
pub(super) fn finish(
    world: &World,
    job: &Job,
    event: JobEvent,
    log_bytes: u64,
    large_inputs: LargeInputs,
    moment: &mut Moment<'_>,
) -> Result<(Arc<Job>, Vec<Change>), Refusal> {
    let scan = job.scan_key();
    let mut head = world.head(&scan).map_or_else(
        || ScanHead::new(scan.workflow, scan.scan.clone()),
        |head| ScanHead::clone(head),
    );
    let had_digests = head.has_digests();
    let mut job = ended(job, event, log_bytes, moment)?;
    let retry = retry(world, &job, large_inputs, moment).map(Arc::new);
    if let Some(retry) = &retry {
        Arc::make_mut(&mut job).retried_by = Some(retry.id);
        head.latest_job = head.latest_job.max(retry.id);
    }
    let finished = settle(job, &mut head, moment)?;
    let job = finished.job.clone();
    if let Some(End {
        reason: Reason::Suspended { .. },
        ..
    }) = job.state.end()
    {
        head.pass_over(&job);
    }
    let head = Arc::new(head);
    // The scan may have been renamed while the job ran. Its result also counts for the new name.
    let heir = world.heir(&scan).and_then(|heir| {
        let mut heir = ScanHead::clone(world.head(&heir)?);
        note_end(&mut heir, &job, finished.history.line.state, moment);
        // The cause of a cancelled waiting job is not lost: the renamed scan is checked for this cause.
        if matches!(job.reason(), Reason::Retired) {
            heir.pass_over(&job);
        }
        Some(Arc::new(heir))
    });
    let after = Ended {
        job: job.id,
        head: head.clone(),
        scan,
        heir: heir.clone(),
        line: finished.history.line.clone(),
        retry: retry.clone(),
    };
    // The retry comes first, because it keeps the revision of the job in the world.
    let mut changes: Vec<Change> = retry.map(Change::Job).into_iter().collect();
    changes.extend(finished.changes());
    let is_success = matches!(job.state, JobState::Succeeded { .. });
    if is_success && (had_digests || head.has_digests()) {
        changes.push(Change::Digests(Arc::new(Digests::of(&head))));
    }
    changes.push(Change::Head(head));
    if let Some(heir) = heir {
        if is_success {
            changes.push(Change::Digests(Arc::new(Digests::of(&heir))));
        }
        changes.push(Change::Head(heir));
    }
    changes.extend(follow(world, &after, moment)?);
    Ok((job, changes))
}

pub(super) fn read_at_end(world: &World, job: JobId) -> BTreeSet<ScanKey> {
    world
        .job(job)
        .map(|job| {
            let scan = job.scan_key();
            read_by_followers(world, &world.heir(&scan).unwrap_or(scan))
        })
        .unwrap_or_default()
}

/// Checks the scans affected by the end of a job, if they fit into the commit and their expressions are cheap. Other
/// scans are checked later, because the success stays unseen for them. On a nearly full disk all scans are checked later.
fn follow(world: &World, ended: &Ended, moment: &mut Moment<'_>) -> Result<Vec<Change>, Refusal> {
    if !moment.may_make_jobs {
        return Ok(Vec::new());
    }
    let view = View::after(world, ended);
    let retry = ended.retry.as_ref();
    let mut latest = retry.map_or_else(|| world.latest_job(), |retry| retry.id);
    let mut changes = Vec::new();
    let mut evaluate = Evaluate::CHEAP;
    let mut room = Room {
        operations: FOLLOWERS_OPERATIONS,
        bytes: FOLLOWERS_BYTES,
    };
    if let Some(retry) = retry {
        room.take(&[Change::Job(retry.clone())]);
    }
    let scan = ended.heir.as_ref().map(|heir| heir.key());
    let scan = scan.as_ref().unwrap_or(&ended.scan);
    for scan in candidates(world, scan).into_iter().take(FOLLOWERS) {
        let mut newest = latest;
        let considered = consider(&view, &scan, &mut newest, &mut evaluate, moment)?;
        let Some(of_scan) = considered else { continue };
        if !room.take(&of_scan) {
            break;
        }
        latest = newest;
        changes.extend(of_scan);
    }
    Ok(changes)
}

struct Room {
    operations: usize,
    bytes: usize,
}

impl Room {
    /// False if there is not enough room.
    fn take(&mut self, changes: &[Change]) -> bool {
        let bytes: usize = changes.iter().map(size).sum();
        match (
            self.operations.checked_sub(changes.len()),
            self.bytes.checked_sub(bytes),
        ) {
            (Some(operations), Some(bytes)) => {
                *self = Self { operations, bytes };
                true
            }
            (None, _) | (_, None) => false,
        }
    }
}

/// The approximate size of a change in a commit, in bytes. Indentation may double the JSON.
fn size(change: &Change) -> usize {
    let json = match change {
        Change::Job(job) => serde_json::to_vec(&**job),
        Change::Head(head) => serde_json::to_vec(&**head),
        Change::Digests(digests) => serde_json::to_vec(&**digests),
        Change::Repeats(scan, repeats) => serde_json::to_vec(&(scan, repeats)),
        Change::Ledger(entry) => return entry.text.len(),
        // The end of a job makes no other kinds of changes.
        Change::Source(_)
        | Change::Tip(_)
        | Change::Workflow(_)
        | Change::Revision(..)
        | Change::Suspension(_)
        | Change::RevisionRead(_)
        | Change::History(_)
        | Change::JobRemoved(_)
        | Change::ArtifactRemoved(..)
        | Change::Expiry(_)
        | Change::ExpiryRemoved(_)
        | Change::Retention(_)
        | Change::HistoryPageRemoved(..)
        | Change::LedgerPageRemoved(..)
        | Change::Recent(..)
        | Change::Runner(_)
        | Change::RunnerRemoved(_)
        | Change::Token(_)
        | Change::TokenRemoved(_)
        | Change::User(_)
        | Change::Session(_)
        | Change::SessionRemoved(_)
        | Change::Registration(_)
        | Change::RegistrationRemoved(_)
        | Change::Idempotency(_)
        | Change::IdempotencyRemoved(_)
        | Change::Vars(_)
        | Change::Secrets(_)
        | Change::Rules(_)
        | Change::Blob(_)
        | Change::BlobRemoved(..)
        | Change::BlobLink(_)
        | Change::BlobLinkRemoved(_)
        | Change::BlobUsage(_)
        | Change::Condition(_)
        | Change::ConditionClosed(..)
        | Change::Channel(_)
        | Change::ChannelRemoved(_)
        | Change::Event(_)
        | Change::Outgoing(_)
        | Change::OutgoingRemoved(_)
        | Change::Delivery(_)
        | Change::Callback(_)
        | Change::CallbackRemoved(_)
        | Change::CallbackToken(_)
        | Change::CallbackCertificate(_)
        | Change::CallbackTokenRemoved(..)
        | Change::PayloadGroup(_)
        | Change::PayloadGroupRemoved(_)
        | Change::PayloadVersionRemoved(..)
        | Change::Minted(_)
        | Change::MintRemoved(..)
        | Change::Interactions(..)
        | Change::ClockFollowed(_)
        | Change::Clocks(_) => return 0,
    };
    json.map_or(usize::MAX / 4, |json| json.len() * 2)
}

fn read_by_followers(world: &World, scan: &ScanKey) -> BTreeSet<ScanKey> {
    candidates(world, scan)
        .iter()
        .take(FOLLOWERS)
        .flat_map(|candidate| read_by_trigger(world, candidate))
        .collect()
}

/// Scans whose expressions are affected by the end of a job of `scan`: scans that its success triggers, and `scan`
/// itself, because the unfinished job may have blocked its trigger.
fn candidates(world: &World, scan: &ScanKey) -> Vec<ScanKey> {
    let Some(workflow) = active(world, scan) else {
        return Vec::new();
    };
    workflow
        .revision
        .definition
        .scans()
        .filter(|other| {
            other.on.expr.as_ref().is_some_and(|expression| {
                other.name == scan.scan || expression.references().woken_by(scan.scan.as_str())
            })
        })
        .map(|other| ScanKey::new(scan.workflow, &other.name))
        .collect()
}
