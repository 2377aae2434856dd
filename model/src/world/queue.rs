//! Jobs that wait for a runner, filed by what they ask of one: an offer costs no walk over those it cannot take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{JobId, WorkflowId};

/// Labels a runner must have, sorted.
type Labels = Arc<[String]>;

/// The waiting jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    /// By labels, then by workflow, oldest first.
    offerable: BTreeMap<Labels, BTreeMap<WorkflowId, BTreeSet<JobId>>>,
    orphans: BTreeSet<JobId>,
    places: BTreeMap<WorkflowId, BTreeMap<JobId, Place>>,
}

/// Where a waiting job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// It waits for a runner with these labels.
    Offerable(Labels),
    /// Its scan is gone: nobody is to run it.
    Orphan,
    /// What it runs could not be read: nobody can tell what it needs.
    Unknown,
}

impl Queue {
    /// Files a job, also one that stands elsewhere.
    pub(super) fn file(&mut self, workflow: WorkflowId, job: JobId, place: Place) {
        self.remove(workflow, job);
        match &place {
            Place::Offerable(labels) => {
                let workflows = self.offerable.entry(labels.clone()).or_default();
                workflows.entry(workflow).or_default().insert(job);
            }
            Place::Orphan => {
                self.orphans.insert(job);
            }
            Place::Unknown => {}
        }
        self.places.entry(workflow).or_default().insert(job, place);
    }

    /// Takes a job out.
    pub(super) fn remove(&mut self, workflow: WorkflowId, job: JobId) {
        let Some(places) = self.places.get_mut(&workflow) else {
            return;
        };
        let place = places.remove(&job);
        if places.is_empty() {
            self.places.remove(&workflow);
        }
        match place {
            Some(Place::Offerable(labels)) => self.unfile(&labels, workflow, job),
            Some(Place::Orphan) => {
                self.orphans.remove(&job);
            }
            Some(Place::Unknown) | None => {}
        }
    }

    fn unfile(&mut self, labels: &Labels, workflow: WorkflowId, job: JobId) {
        let Some(workflows) = self.offerable.get_mut(labels) else {
            return;
        };
        if let Some(jobs) = workflows.get_mut(&workflow) {
            jobs.remove(&job);
            if jobs.is_empty() {
                workflows.remove(&workflow);
            }
        }
        if workflows.is_empty() {
            self.offerable.remove(labels);
        }
    }

    /// What a runner with these labels may execute: by workflow, oldest first. A workflow comes once for each set of
    /// labels its jobs ask for.
    pub(super) fn offerable(
        &self,
        labels: &[String],
    ) -> impl Iterator<Item = (WorkflowId, &BTreeSet<JobId>)> {
        self.offerable
            .iter()
            .filter(|(wanted, _)| wanted.iter().all(|wanted| labels.contains(wanted)))
            .flat_map(|(_, workflows)| workflows)
            .map(|(workflow, jobs)| (*workflow, jobs))
    }

    /// Workflows that have a job waiting.
    pub(super) fn workflows(&self) -> impl ExactSizeIterator<Item = WorkflowId> {
        self.places.keys().copied()
    }

    /// The waiting jobs of a workflow, oldest first.
    pub(super) fn of_workflow(&self, workflow: WorkflowId) -> impl Iterator<Item = JobId> {
        self.places
            .get(&workflow)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .copied()
    }

    /// Waiting jobs nobody is to run.
    pub(super) fn orphans(&self) -> impl Iterator<Item = JobId> {
        self.orphans.iter().copied()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.offerable.is_empty() && self.orphans.is_empty() && self.places.is_empty()
    }
}
