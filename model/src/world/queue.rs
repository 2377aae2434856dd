//! Waiting jobs, grouped by the abilities that they need. An offer skips jobs that the runner cannot take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::matching::Turn;
use crate::scope::Projects;
use crate::{Abilities, JobId, ProjectId, Reach, Timestamp, WorkflowId};

/// The abilities that a runner must have.
type Needs = Arc<Abilities>;

/// A job that must not start before this time.
type Delayed = (Timestamp, JobId, Turn);

/// Each job that may be offered is in two shelves, so that no look visits what it cannot take: a runner of all projects
/// looks into one shelf, a runner of some projects only into theirs.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    of_all: Shelf,
    of_project: BTreeMap<ProjectId, Shelf>,
    /// The earliest times of delayed jobs.
    delays: BTreeSet<(Timestamp, JobId)>,
    orphans: BTreeSet<JobId>,
    withdrawn: BTreeSet<JobId>,
    places: BTreeMap<WorkflowId, BTreeMap<JobId, Place>>,
}

/// Jobs that may be offered, now or later.
#[derive(Debug, Clone, Default)]
struct Shelf {
    /// By needs, then by workflow, oldest first.
    offerable: BTreeMap<Needs, BTreeMap<Turn, BTreeSet<JobId>>>,
    /// Jobs that must not start before a time, by needs, then by this time.
    delayed: BTreeMap<Needs, BTreeSet<Delayed>>,
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

impl Shelf {
    fn offer(&mut self, needs: &Needs, turn: Turn, job: JobId) {
        let workflows = self.offerable.entry(needs.clone()).or_default();
        workflows.entry(turn).or_default().insert(job);
    }

    fn delay(&mut self, needs: &Needs, delayed: Delayed) {
        let jobs = self.delayed.entry(needs.clone()).or_default();
        jobs.insert(delayed);
    }

    fn remove_offerable(&mut self, needs: &Needs, turn: Turn, job: JobId) {
        let Some(workflows) = self.offerable.get_mut(needs) else {
            return;
        };
        if let Some(jobs) = workflows.get_mut(&turn) {
            jobs.remove(&job);
            if jobs.is_empty() {
                workflows.remove(&turn);
            }
        }
        if workflows.is_empty() {
            self.offerable.remove(needs);
        }
    }

    fn remove_delayed(&mut self, needs: &Needs, delayed: &Delayed) {
        if let Some(jobs) = self.delayed.get_mut(needs) {
            jobs.remove(delayed);
            if jobs.is_empty() {
                self.delayed.remove(needs);
            }
        }
    }

    fn due(
        &self,
        time: Timestamp,
        take: impl Fn(&Abilities) -> bool,
    ) -> impl Iterator<Item = (Turn, JobId)> {
        self.delayed
            .iter()
            .filter(move |(needs, _)| take(needs))
            .flat_map(move |(_, jobs)| jobs.iter().take_while(move |(at, _, _)| *at <= time))
            .map(|(_, job, turn)| (*turn, *job))
    }

    fn is_empty(&self) -> bool {
        self.offerable.is_empty() && self.delayed.is_empty()
    }
}

impl Queue {
    /// Adds a job at its place, or moves it to this place.
    pub(super) fn file(&mut self, turn: Turn, job: JobId, place: Place) {
        self.remove(turn, job);
        match &place {
            Place::Offerable(needs) => self.on_shelves(turn.project, |shelf| {
                shelf.offer(needs, turn, job);
            }),
            Place::Delayed(needs, at) => {
                self.on_shelves(turn.project, |shelf| shelf.delay(needs, (*at, job, turn)));
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
        let places = self.places.entry(turn.workflow).or_default();
        places.insert(job, place);
    }

    /// Changes the time of a delayed job.
    pub(super) fn retime(&mut self, turn: Turn, job: JobId, at: Timestamp) {
        let places = self.places.get(&turn.workflow);
        if let Some(Place::Delayed(needs, _)) = places.and_then(|of| of.get(&job)) {
            let place = Place::Delayed(needs.clone(), at);
            self.file(turn, job, place);
        }
    }

    pub(super) fn remove(&mut self, turn: Turn, job: JobId) {
        let Some(places) = self.places.get_mut(&turn.workflow) else {
            return;
        };
        let place = places.remove(&job);
        if places.is_empty() {
            self.places.remove(&turn.workflow);
        }
        match place {
            Some(Place::Offerable(needs)) => self.on_shelves(turn.project, |shelf| {
                shelf.remove_offerable(&needs, turn, job);
            }),
            Some(Place::Delayed(needs, at)) => {
                self.delays.remove(&(at, job));
                let delayed = (at, job, turn);
                self.on_shelves(turn.project, |shelf| shelf.remove_delayed(&needs, &delayed));
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

    /// Changes both shelves of a project's job.
    fn on_shelves(&mut self, project: ProjectId, change: impl Fn(&mut Shelf)) {
        change(&mut self.of_all);
        let shelf = self.of_project.entry(project).or_default();
        change(shelf);
        if shelf.is_empty() {
            self.of_project.remove(&project);
        }
    }

    /// The shelves for a runner of these projects.
    fn shelves(&self, projects: &Projects) -> Vec<&Shelf> {
        let shelves = &self.of_project;
        match projects {
            Projects::All => vec![&self.of_all],
            // Walk over the shorter of the two.
            Projects::Only(few) if few.len() <= shelves.len() => {
                few.iter().filter_map(|one| shelves.get(one)).collect()
            }
            Projects::Only(many) => {
                let its = shelves.iter().filter(|(one, _)| many.contains(one));
                its.map(|(_, shelf)| shelf).collect()
            }
        }
    }

    /// The jobs that a runner with this reach can take: by workflow, oldest first. A workflow appears once per set of needs.
    pub(super) fn offerable(
        &self,
        reach: &Reach,
    ) -> impl Iterator<Item = (Turn, &BTreeSet<JobId>)> {
        let shelves = self.shelves(&reach.projects).into_iter();
        shelves
            .flat_map(|shelf| &shelf.offerable)
            .filter(|(needs, _)| reach.abilities.cover(needs))
            .flat_map(|(_, workflows)| workflows)
            .map(|(turn, jobs)| (*turn, jobs))
    }

    /// The jobs older than `job` that may be offered at `time` and that `take` accepts by their project and needs.
    pub(super) fn before(
        &self,
        job: JobId,
        time: Timestamp,
        take: &impl Fn(ProjectId, &Abilities) -> bool,
    ) -> impl Iterator<Item = JobId> {
        self.of_project.iter().flat_map(move |(project, shelf)| {
            let offerable = shelf.offerable.iter();
            let prompt = offerable
                .filter(move |(needs, _)| take(*project, needs))
                .flat_map(|(_, workflows)| workflows.values())
                .flat_map(move |jobs| jobs.range(..job).copied());
            let delayed = shelf.due(time, move |needs| take(*project, needs));
            prompt.chain(delayed.map(|(_, id)| id).filter(move |id| *id < job))
        })
    }

    /// The delayed jobs that a runner with this reach can take at `time`.
    pub(super) fn due_delayed(
        &self,
        reach: &Reach,
        time: Timestamp,
    ) -> impl Iterator<Item = (Turn, JobId)> {
        let shelves = self.shelves(&reach.projects).into_iter();
        shelves.flat_map(move |shelf| shelf.due(time, |needs| reach.abilities.cover(needs)))
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

    /// The projects with jobs that may be offered, now or later.
    pub(super) fn projects(&self) -> impl ExactSizeIterator<Item = ProjectId> {
        self.of_project.keys().copied()
    }

    pub(super) fn has_project(&self, project: ProjectId) -> bool {
        self.of_project.contains_key(&project)
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
        self.of_all.is_empty()
            && self.of_project.is_empty()
            && self.delays.is_empty()
            && self.orphans.is_empty()
            && self.withdrawn.is_empty()
            && self.places.is_empty()
    }
}
