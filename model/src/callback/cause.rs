//! Interactions as the cause of jobs: those that a scan has not considered yet, and those that started a job.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use workflow::CallbackSummary;
use workflow::notify::NotifyName;

use super::{Callback, CallbackId, Interaction, PlantedBy, RequestType};
use crate::{JobId, Order, ScanKey, Timestamp};

/// The interactions of a server that a scan has not considered yet. They are kept with the server, whose record is written with
/// each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconsidered {
    pub scan: ScanKey,
    /// When the first of them was recorded, in the order of decisions.
    pub since: Order,
    pub first: u64,
    pub last: u64,
    pub count: u64,
    /// How many of them used names that jobs of the scan itself have made. They start nothing.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub own: u64,
    /// The kinds of the others.
    pub types: BTreeSet<RequestType>,
    /// The job that made the name of the newest one of the others that was made by a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PlantedBy>,
}

impl Unconsidered {
    const fn new(scan: ScanKey, since: Order, first: u64) -> Self {
        Self {
            scan,
            since,
            first,
            last: first,
            count: 0,
            own: 0,
            types: BTreeSet::new(),
            by: None,
        }
    }

    fn add(&mut self, interaction: &Interaction) {
        self.last = interaction.number;
        self.count += 1;
        let by = interaction.planted.job.as_ref();
        if by.is_some_and(|by| by.scan == self.scan) {
            self.own += 1;
            return;
        }
        self.types.insert(interaction.heard.request.kind());
        if let Some(by) = by {
            self.by = Some(by.clone());
        }
    }
}

impl Callback {
    /// What this scan has not considered yet.
    pub fn unconsidered_by(&self, scan: &ScanKey) -> Option<&Unconsidered> {
        self.unconsidered.iter().find(|it| it.scan == *scan)
    }

    /// Adds interactions for each scan that the server starts. `listeners` has these scans, each with the place from which
    /// interactions count.
    pub(crate) fn add_unconsidered(
        &mut self,
        listeners: &[(ScanKey, Order)],
        interactions: &[Interaction],
        order: Order,
    ) {
        let Some(first) = interactions.first() else {
            return;
        };
        self.unconsidered.retain(|it| {
            let mut listeners = listeners.iter();
            listeners.any(|(scan, armed)| *scan == it.scan && it.since > *armed)
        });
        for (scan, _) in listeners {
            let known = self.unconsidered.iter().position(|it| it.scan == *scan);
            let at = known.unwrap_or_else(|| {
                let new = Unconsidered::new(scan.clone(), order, first.number);
                self.unconsidered.push(new);
                self.unconsidered.len() - 1
            });
            if let Some(unconsidered) = self.unconsidered.get_mut(at) {
                interactions.iter().for_each(|it| unconsidered.add(it));
            }
        }
    }

    /// The same server after a scan has considered its interactions.
    pub(crate) fn considered_by(&self, scan: &ScanKey) -> Self {
        let mut considered = self.clone();
        considered.unconsidered.retain(|it| it.scan != *scan);
        considered
    }
}

/// Up to where a scan has considered the interactions of the server that starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsideredInteractions {
    pub server: CallbackId,
    pub last: u64,
    /// When it did so.
    pub at: Timestamp,
}

/// The interactions that started a job. Nothing here was written by a stranger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackCause {
    pub server: CallbackId,
    pub name: NotifyName,
    /// The numbers of the first and the last one. Between them may be interactions of names that the scan's own jobs have made;
    /// these are not counted.
    pub first: u64,
    pub last: u64,
    pub count: u64,
    pub types: BTreeSet<RequestType>,
    /// The job that made the name of the newest one that was made by a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
}

impl CallbackCause {
    pub(crate) fn of(callback: &Callback, heard: &Unconsidered) -> Self {
        Self {
            server: callback.id,
            name: callback.name.clone(),
            first: heard.first,
            last: heard.last,
            count: heard.count - heard.own,
            types: heard.types.clone(),
            job: heard.by.as_ref().map(|by| by.id),
        }
    }

    /// True if the interaction is one of those that started a job of `scan`.
    pub fn has(&self, scan: &ScanKey, interaction: &Interaction) -> bool {
        let by = interaction.planted.job.as_ref();
        (self.first..=self.last).contains(&interaction.number)
            && by.is_none_or(|by| by.scan != *scan)
    }

    /// As expressions read it.
    pub fn summary(&self) -> CallbackSummary {
        CallbackSummary {
            server: self.name.to_string(),
            count: self.count,
            first: self.first,
            last: self.last,
            types: self.types.iter().map(|it| it.name().to_owned()).collect(),
            job: self.job.map_or_else(String::new, |job| job.to_string()),
        }
    }
}
