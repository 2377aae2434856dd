//! Stores, moves and removes blobs. The world holds only blobs that expire, so these commands carry the records that
//! they change. The caller prevents concurrent changes in the same project.

use std::sync::Arc;

use chrono::TimeDelta;

use super::values::project_name;
use super::{Command, Decision, Refusal, Urgency};
use crate::blob::{Blob, BlobCondition, BlobPath};
use crate::change::Change;
use crate::moment::Moment;
use crate::world::World;
use crate::{Actor, ProjectId};

/// Store a blob whose bytes were received.
#[derive(Debug, Clone)]
pub struct StoreBlob {
    pub project: ProjectId,
    pub path: BlobPath,
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
    pub expires_in: Option<TimeDelta>,
    /// The current blob at the path.
    pub before: Option<Blob>,
    pub condition: BlobCondition,
    /// Limit for the project's blobs, in bytes.
    pub quota: Option<u64>,
    pub actor: Actor,
}

impl Command for StoreBlob {
    type Answer = Blob;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Blob>, Refusal> {
        project_name(world, self.project)?;
        let before = self.before.as_ref();
        check(&self.condition, &self.path, before, moment)?;
        let blob = Blob {
            project: self.project,
            path: self.path,
            size: self.size,
            sha256: self.sha256,
            modified_at: moment.now,
            by: self.actor,
            // The later clock decides, as for artifacts.
            expires_at: self
                .expires_in
                .map(|life| moment.now.max(moment.steady) + life),
        };
        let used = world.blob_usage(self.project);
        let usage = used.with(before, Some(&blob));
        // If the quota was lowered below the usage, a project may still replace a blob by a smaller blob.
        if let Some(maximum) = self.quota
            && usage.bytes > maximum.max(used.bytes)
        {
            return Err(Refusal::QuotaExceeded {
                used: used.bytes,
                maximum,
                wanted: blob.size,
            });
        }
        Ok(Decision {
            changes: vec![
                Change::Blob(Arc::new(blob.clone())),
                Change::BlobUsage(Arc::new(usage)),
            ],
            answer: blob,
        })
    }
}

/// Move a blob to another path. Its content, its time and its author do not change.
#[derive(Debug, Clone)]
pub struct MoveBlob {
    pub blob: Blob,
    pub to: BlobPath,
    /// The current blob at the target path.
    pub before: Option<Blob>,
    /// A condition on `before`.
    pub condition: BlobCondition,
}

impl Command for MoveBlob {
    type Answer = Blob;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Blob>, Refusal> {
        let Self {
            blob,
            to,
            before,
            condition,
        } = self;
        project_name(world, blob.project)?;
        check(&condition, &to, before.as_ref(), moment)?;
        let from = blob.path.clone();
        let moved = Blob { path: to, ..blob };
        let usage = world.blob_usage(moved.project).with(before.as_ref(), None);
        Ok(Decision {
            changes: vec![
                Change::BlobRemoved(moved.project, from),
                Change::Blob(Arc::new(moved.clone())),
                Change::BlobUsage(Arc::new(usage)),
            ],
            answer: moved,
        })
    }
}

#[derive(Debug, Clone)]
pub struct RemoveBlob {
    pub blob: Blob,
    pub condition: BlobCondition,
}

impl Command for RemoveBlob {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let Self { blob, condition } = self;
        check(&condition, &blob.path, Some(&blob), moment)?;
        let usage = world.blob_usage(blob.project).with(Some(&blob), None);
        Ok(Decision::of([
            Change::BlobRemoved(blob.project, blob.path),
            Change::BlobUsage(Arc::new(usage)),
        ]))
    }
}

/// Checks the condition. An expired blob counts as absent.
fn check(
    condition: &BlobCondition,
    path: &BlobPath,
    found: Option<&Blob>,
    moment: &Moment<'_>,
) -> Result<(), Refusal> {
    let found = found.filter(|blob| !blob.is_over(moment.steady));
    if condition.holds(found) {
        return Ok(());
    }
    Err(Refusal::BlobChanged {
        path: path.to_string(),
        exists: found.is_some(),
    })
}
