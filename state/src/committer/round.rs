//! The decisions that share one commit.

use std::time::Duration;

use model::Change;
use store::{Batch, Epoch};

use super::submission::{Decided, Unanswered};
use crate::audit::AuditTail;
use crate::encode::fold;

pub(super) struct Round {
    pub(super) batch: Batch,
    pub(super) changes: Vec<Change>,
    pub(super) audit: Option<AuditTail>,
    pub(super) commands: Vec<Box<dyn Unanswered>>,
    pub(super) deciding: Duration,
}

impl Round {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            batch: Batch::new(epoch),
            changes: Vec::new(),
            audit: None,
            commands: Vec::new(),
            deciding: Duration::ZERO,
        }
    }

    pub(super) fn add(&mut self, decided: Decided) {
        fold(&mut self.batch, decided.batch);
        self.changes.extend(decided.changes);
        self.audit = decided.audit.or(self.audit.take());
        self.commands.push(decided.command);
    }
}
