//! Waiting jobs, grouped by the abilities that they need. An offer skips jobs that the runner cannot take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Abilities, JobId, Timestamp, WorkflowId};

/// The abilities that a runner must have.
type Needs = Arc<Abilities>;

/// A job that must not start before this time.
type Delayed = (Timestamp, JobId, WorkflowId);

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    /// By needs, then by workflow, oldest first.
    offerable: BTreeMap<Needs, BTreeMap<WorkflowId, BTreeSet<JobId>>>,
    /// Jobs that must not start before a time, by needs, then by this time.
    delayed: BTreeMap<Needs, BTreeSet<Delayed>>,
    /// The earliest times of these jobs.
    delays: BTreeSet<(Timestamp, JobId)>,
    orphans: BTreeSet<JobId>,
    withdrawn: BTreeSet<JobId>,
    places: BTreeMap<WorkflowId, BTreeMap<JobId, Place>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The job waits for a runner with these abilities.
    Offerable(Needs),
    /// The job waits for a runner with these abilities, but not before this time.
    Delayed(Needs, Timestamp),
    /// The scan no longer exists. No runner may take the job.
    Orphan,
    /// The scan is suspended. The job waits for the resumption.
    Held,
    /// The scan is suspended, and the job must end. The resumption checks its cause again.
    Withdrawn,
    /// The revision could not be read, so the needs are unknown.
    Unknown,
}

impl Queue {
    /// Adds a job at its place, or moves it to this place.
    pub(super) fn file(&mut self, workflow: WorkflowId, job: JobId, place: Place) {
        self.remove(workflow, job);
        match &place {
            Place::Offerable(needs) => {
                let workflows = self.offerable.entry(needs.clone()).or_default();
                workflows.entry(workflow).or_default().insert(job);
            }
            Place::Delayed(needs, at) => {
                let jobs = self.delayed.entry(needs.clone()).or_default();
                jobs.insert((*at, job, workflow));
                self.delays.insert((*at, job));
            }
            Place::Orphan => {
                self.orphans.insert(job);
            }
            Place::Withdrawn => {
                self.withdrawn.insert(job);
            }
            Place::Held | Place::Unknown => {}
        }
        self.places.entry(workflow).or_default().insert(job, place);
    }

    /// Changes the time of a delayed job.
    pub(super) fn retime(&mut self, workflow: WorkflowId, job: JobId, at: Timestamp) {
        let place = self.places.get(&workflow).and_then(|of| of.get(&job));
        if let Some(Place::Delayed(needs, _)) = place {
            let place = Place::Delayed(needs.clone(), at);
            self.file(workflow, job, place);
        }
    }

    pub(super) fn remove(&mut self, workflow: WorkflowId, job: JobId) {
        let Some(places) = self.places.get_mut(&workflow) else {
            return;
        };
        let place = places.remove(&job);
        if places.is_empty() {
            self.places.remove(&workflow);
        }
        match place {
            Some(Place::Offerable(needs)) => self.unfile(&needs, workflow, job),
            Some(Place::Delayed(needs, at)) => {
                self.delays.remove(&(at, job));
                if let Some(jobs) = self.delayed.get_mut(&needs) {
                    jobs.remove(&(at, job, workflow));
                    if jobs.is_empty() {
                        self.delayed.remove(&needs);
                    }
                }
            }
            Some(Place::Orphan) => {
                self.orphans.remove(&job);
            }
            Some(Place::Withdrawn) => {
                self.withdrawn.remove(&job);
            }
            Some(Place::Held | Place::Unknown) | None => {}
        }
    }

    fn unfile(&mut self, needs: &Needs, workflow: WorkflowId, job: JobId) {
        let Some(workflows) = self.offerable.get_mut(needs) else {
            return;
        };
        if let Some(jobs) = workflows.get_mut(&workflow) {
            jobs.remove(&job);
            if jobs.is_empty() {
                workflows.remove(&workflow);
            }
        }
        if workflows.is_empty() {
            self.offerable.remove(needs);
        }
    }

    /// The jobs that a runner with these abilities can take: by workflow, oldest first. A workflow appears once per set
    /// of needs.
    pub(super) fn offerable(
        &self,
        abilities: &Abilities,
    ) -> impl Iterator<Item = (WorkflowId, &BTreeSet<JobId>)> {
        self.offerable
            .iter()
            .filter(|(needs, _)| abilities.cover(needs))
            .flat_map(|(_, workflows)| workflows)
            .map(|(workflow, jobs)| (*workflow, jobs))
    }

    /// The jobs older than `job` that may be offered at `time` and whose needs `take` accepts.
    pub(super) fn before(
        &self,
        job: JobId,
        time: Timestamp,
        take: &impl Fn(&Abilities) -> bool,
    ) -> impl Iterator<Item = JobId> {
        let offerable = self.offerable.iter();
        let prompt = offerable
            .filter(move |(needs, _)| take(needs))
            .flat_map(|(_, workflows)| workflows.values())
            .flat_map(move |jobs| jobs.range(..job).copied());
        let delayed = self.due(time, move |needs| take(needs));
        prompt.chain(delayed.map(|(_, id)| id).filter(move |id| *id < job))
    }

    /// The delayed jobs that a runner with these abilities can take at `time`.
    pub(super) fn due_delayed(
        &self,
        abilities: &Abilities,
        time: Timestamp,
    ) -> impl Iterator<Item = (WorkflowId, JobId)> {
        self.due(time, |needs| abilities.cover(needs))
    }

    fn due(
        &self,
        time: Timestamp,
        take: impl Fn(&Abilities) -> bool,
    ) -> impl Iterator<Item = (WorkflowId, JobId)> {
        self.delayed
            .iter()
            .filter(move |(needs, _)| take(needs))
            .flat_map(move |(_, jobs)| jobs.iter().take_while(move |(at, _, _)| *at <= time))
            .map(|(_, job, workflow)| (*workflow, *job))
    }

    /// When the first delayed job after `time` is due.
    pub(super) fn next_delayed(&self, time: Timestamp) -> Option<Timestamp> {
        let later = self.delays.iter().find(|(at, _)| *at > time);
        later.map(|(at, _)| *at)
    }

    /// All delayed jobs that may be offered, now or later.
    pub(super) fn delayed(&self) -> impl Iterator<Item = JobId> {
        self.delays.iter().map(|(_, job)| *job)
    }

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

    /// Waiting jobs whose scan was removed.
    pub(super) fn orphans(&self) -> impl Iterator<Item = JobId> {
        self.orphans.iter().copied()
    }

    /// Waiting jobs that must end, because their scan is suspended.
    pub(super) fn withdrawn(&self) -> impl Iterator<Item = JobId> {
        self.withdrawn.iter().copied()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.offerable.is_empty()
            && self.delayed.is_empty()
            && self.delays.is_empty()
            && self.orphans.is_empty()
            && self.withdrawn.is_empty()
            && self.places.is_empty()
    }
}
