//! Payload groups.

use std::sync::Arc;

use workflow::notify::NotifyName;

use super::World;
use crate::payload::PayloadGroup;
use crate::{PayloadGroupId, ProjectId};

impl World {
    /// Payload groups, except those that are deleted.
    pub fn payload_groups(&self) -> impl Iterator<Item = &Arc<PayloadGroup>> {
        let all = self.payload_groups.values();
        all.filter(|group| !group.is_deleted)
    }

    pub fn payload_group(&self, id: PayloadGroupId) -> Option<&Arc<PayloadGroup>> {
        self.any_payload_group(id).filter(|group| !group.is_deleted)
    }

    /// A payload group, also if it is deleted and its files are being removed.
    pub(crate) fn any_payload_group(&self, id: PayloadGroupId) -> Option<&Arc<PayloadGroup>> {
        self.payload_groups.get(&id)
    }

    pub fn payload_group_of(
        &self,
        project: ProjectId,
        name: &NotifyName,
    ) -> Option<&Arc<PayloadGroup>> {
        let mut of_project = self.payload_groups().filter(|it| it.project == project);
        of_project.find(|group| group.name == *name)
    }

    /// Payload groups whose files are being removed.
    pub fn deleted_payload_groups(&self) -> impl Iterator<Item = PayloadGroupId> {
        let all = self.payload_groups.values();
        all.filter(|group| group.is_deleted).map(|group| group.id)
    }
}
