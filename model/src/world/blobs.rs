//! What decisions need of blobs: how much each project has, and those that expire.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::World;
use crate::blob::{Blob, BlobPath, BlobUsage};
use crate::{ProjectId, Timestamp};

#[derive(Debug, Clone, Default)]
pub(super) struct Blobs {
    usage: BTreeMap<ProjectId, Arc<BlobUsage>>,
    /// Those that expire.
    expiring: BTreeMap<(ProjectId, BlobPath), Arc<Blob>>,
    ends: BTreeSet<(Timestamp, ProjectId, BlobPath)>,
}

impl Blobs {
    pub(super) fn count(&mut self, usage: &Arc<BlobUsage>) {
        self.usage.insert(usage.project, usage.clone());
    }

    pub(super) fn put(&mut self, blob: &Arc<Blob>) {
        self.remove(blob.project, &blob.path);
        if let Some(end) = blob.expires_at {
            let place = (blob.project, blob.path.clone());
            self.ends.insert((end, place.0, place.1.clone()));
            self.expiring.insert(place, blob.clone());
        }
    }

    pub(super) fn remove(&mut self, project: ProjectId, path: &BlobPath) {
        let gone = self.expiring.remove(&(project, path.clone()));
        if let Some(end) = gone.and_then(|blob| blob.expires_at) {
            self.ends.remove(&(end, project, path.clone()));
        }
    }
}

impl World {
    /// How much the blobs of a project are.
    pub fn blob_usage(&self, project: ProjectId) -> BlobUsage {
        let counted = self.blobs.usage.get(&project);
        counted.map_or_else(|| BlobUsage::none(project), |usage| BlobUsage::clone(usage))
    }

    /// Some blobs whose time is over at `now`, the earliest first.
    pub fn expired_blobs(&self, now: Timestamp, limit: usize) -> Vec<Arc<Blob>> {
        let Blobs { expiring, ends, .. } = &self.blobs;
        let over = ends.iter().take_while(|(end, ..)| *end <= now);
        over.take(limit)
            .filter_map(|(_, project, path)| expiring.get(&(*project, path.clone())).cloned())
            .collect()
    }
}
