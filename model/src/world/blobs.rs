//! The data about blobs that decisions need: the usage of each project, links, and blobs that expire.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::World;
use crate::blob::{Blob, BlobLink, BlobPath, BlobUsage};
use crate::{BlobLinkId, ProjectId, Timestamp, TokenHash};

#[derive(Debug, Clone, Default)]
pub(super) struct Blobs {
    usage: BTreeMap<ProjectId, Arc<BlobUsage>>,
    expiring: BTreeMap<(ProjectId, BlobPath), Arc<Blob>>,
    ends: BTreeSet<(Timestamp, ProjectId, BlobPath)>,
    links: BTreeMap<BlobLinkId, Arc<BlobLink>>,
    link_hashes: HashMap<TokenHash, BlobLinkId>,
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

    pub(super) fn link(&mut self, link: &Arc<BlobLink>) {
        self.link_hashes.insert(link.hash, link.id);
        self.links.insert(link.id, link.clone());
    }

    pub(super) fn each_link(&mut self, change: impl Fn(BlobLinkId, Timestamp) -> Timestamp) {
        for (id, link) in &mut self.links {
            let end = change(*id, link.expires_at);
            if end != link.expires_at {
                Arc::make_mut(link).expires_at = end;
            }
        }
    }

    pub(super) fn unlink(&mut self, id: BlobLinkId) {
        if let Some(link) = self.links.remove(&id) {
            self.link_hashes.remove(&link.hash);
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
    pub fn blob_usage(&self, project: ProjectId) -> BlobUsage {
        let counted = self.blobs.usage.get(&project);
        counted.map_or_else(|| BlobUsage::none(project), |usage| BlobUsage::clone(usage))
    }

    /// True if the blob exists and has expired at `now`.
    pub fn is_blob_over(&self, project: ProjectId, path: &BlobPath, now: Timestamp) -> bool {
        let expiring = self.blobs.expiring.get(&(project, path.clone()));
        expiring.is_some_and(|blob| blob.is_over(now))
    }

    /// All links to blobs, including expired links.
    pub fn blob_links(&self) -> impl Iterator<Item = &Arc<BlobLink>> {
        self.blobs.links.values()
    }

    pub fn blob_link(&self, id: BlobLinkId) -> Option<&Arc<BlobLink>> {
        self.blobs.links.get(&id)
    }

    pub fn blob_link_of(&self, secret: &TokenHash) -> Option<&Arc<BlobLink>> {
        self.blob_link(*self.blobs.link_hashes.get(secret)?)
    }

    /// Some blobs that have expired at `now`, earliest first.
    pub fn expired_blobs(&self, now: Timestamp, limit: usize) -> Vec<Arc<Blob>> {
        let Blobs { expiring, ends, .. } = &self.blobs;
        let over = ends.iter().take_while(|(end, ..)| *end <= now);
        over.take(limit)
            .filter_map(|(_, project, path)| expiring.get(&(*project, path.clone())).cloned())
            .collect()
    }
}
