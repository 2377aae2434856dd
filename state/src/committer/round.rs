//! The decisions that share one commit.

use std::time::Duration;

use model::Change;
use store::{Batch, Epoch};

use super::submission::{Decided, Unanswered};
use crate::encode::fold;
use crate::tails::Tails;

pub(super) struct Round {
    pub(super) batch: Batch,
    pub(super) changes: Vec<Change>,
    pub(super) tails: Option<Tails>,
    pub(super) commands: Vec<Box<dyn Unanswered>>,
    pub(super) deciding: Duration,
}

impl Round {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            batch: Batch::new(epoch),
            changes: Vec::new(),
            tails: None,
            commands: Vec::new(),
            deciding: Duration::ZERO,
        }
    }

    pub(super) fn add(&mut self, decided: Decided) {
        fold(&mut self.batch, decided.batch);
        self.changes.extend(decided.changes);
        self.tails = decided.tails.or(self.tails.take());
        self.commands.push(decided.command);
    }
}
