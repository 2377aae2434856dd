//! The waiting polls in order of arrival. A runner has at most one waiting poll.
//!
//! There may be thousands of idle runners with few different abilities, and most changes do not affect idle runners. So
//! idle polls wait in lines, one per reach (projects and abilities). Only the lines that serve a project with waiting jobs are
//! examined, and of a line only the first poll.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use model::{ProjectId, Projects, Reach, RunnerId, World};
use tokio::sync::oneshot;

use super::{Message, Poll};

/// The place of a poll in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Arrival(u64);

pub(super) struct Waiting {
    pub(super) poll: Poll,
    pub(super) answer: oneshot::Sender<Vec<Message>>,
    line: Line,
}

/// The line in which a poll waits.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    /// The poll arrived after the last round.
    Fresh,
    /// The runner holds a job or is offered a job, so its poll is examined separately.
    Engaged,
    /// The runner has this reach, and no job.
    Idle(Arc<Reach>),
    Draining,
}

#[derive(Default)]
pub(super) struct Polls {
    by_arrival: BTreeMap<Arrival, Waiting>,
    of_runner: HashMap<RunnerId, Arrival>,
    fresh: Vec<Arrival>,
    engaged: BTreeSet<Arrival>,
    idle: BTreeMap<Arc<Reach>, BTreeSet<Arrival>>,
    /// The idle lines that serve all projects.
    of_all: BTreeSet<Arc<Reach>>,
    /// The other idle lines, by each of their projects.
    of_project: BTreeMap<ProjectId, BTreeSet<Arc<Reach>>>,
    arrivals: u64,
}

impl Polls {
    pub(super) fn len(&self) -> usize {
        self.by_arrival.len()
    }

    /// Puts a poll behind all others. The earlier poll of the same runner ends.
    pub(super) fn insert(&mut self, poll: Poll, answer: oneshot::Sender<Vec<Message>>) -> Arrival {
        self.remove(poll.runner);
        self.arrivals += 1;
        let arrival = Arrival(self.arrivals);
        self.of_runner.insert(poll.runner, arrival);
        let line = Line::Fresh;
        self.by_arrival
            .insert(arrival, Waiting { poll, answer, line });
        self.fresh.push(arrival);
        arrival
    }

    pub(super) fn remove(&mut self, runner: RunnerId) -> Option<Waiting> {
        let arrival = self.of_runner.remove(&runner)?;
        let waiting = self.by_arrival.remove(&arrival)?;
        match &waiting.line {
            // `line_up` skips this poll.
            Line::Fresh | Line::Draining => {}
            Line::Engaged => {
                self.engaged.remove(&arrival);
            }
            Line::Idle(reach) => {
                if let Some(line) = self.idle.get_mut(reach) {
                    line.remove(&arrival);
                    if line.is_empty() {
                        self.idle.remove(reach);
                        self.close_line(reach);
                    }
                }
            }
        }
        Some(waiting)
    }

    fn open_line(&mut self, reach: &Arc<Reach>) {
        match &reach.projects {
            Projects::All => drop(self.of_all.insert(reach.clone())),
            Projects::Only(projects) => {
                for project in projects {
                    let lines = self.of_project.entry(*project).or_default();
                    lines.insert(reach.clone());
                }
            }
        }
    }

    fn close_line(&mut self, reach: &Arc<Reach>) {
        match &reach.projects {
            Projects::All => drop(self.of_all.remove(reach)),
            Projects::Only(projects) => {
                for project in projects {
                    if let Some(lines) = self.of_project.get_mut(project) {
                        lines.remove(reach);
                        if lines.is_empty() {
                            self.of_project.remove(project);
                        }
                    }
                }
            }
        }
    }

    /// Removes a poll, unless the runner has sent another poll since.
    pub(super) fn withdraw(&mut self, runner: RunnerId, arrival: Arrival) {
        if self.of_runner.get(&runner) == Some(&arrival) {
            self.remove(runner);
        }
    }

    pub(super) fn of(&self, runner: RunnerId) -> Option<&Poll> {
        let waiting = self.by_arrival.get(self.of_runner.get(&runner)?)?;
        Some(&waiting.poll)
    }

    /// Puts the polls that arrived since the last round into their lines. `offered` are the runners with offers. Polls
    /// of unknown runners are removed.
    pub(super) fn line_up(&mut self, world: &World, offered: &HashSet<RunnerId>) {
        for arrival in std::mem::take(&mut self.fresh) {
            let Some(waiting) = self.by_arrival.get_mut(&arrival) else {
                continue;
            };
            let poll = &waiting.poll;
            let Some(runner) = world.runner(poll.runner) else {
                let runner = poll.runner;
                self.remove(runner);
                continue;
            };
            let line = if !poll.holding.is_empty() || offered.contains(&poll.runner) {
                self.engaged.insert(arrival);
                Line::Engaged
            } else if poll.capacity == 0 {
                Line::Draining
            } else {
                Line::Idle(Arc::new(Reach::of(runner)))
            };
            waiting.line = line.clone();
            if let Line::Idle(reach) = line {
                let line = self.idle.entry(reach.clone()).or_default();
                line.insert(arrival);
                if line.len() == 1 {
                    self.open_line(&reach);
                }
            }
        }
    }

    /// The lines to examine, each in order of arrival. Lines of idle polls are returned with their reach.
    pub(super) fn lines(&self, world: &World) -> Vec<(Option<&Reach>, &BTreeSet<Arrival>)> {
        let waiting = world.waiting_projects();
        // Walk over the shorter of the two.
        let some: BTreeSet<&Arc<Reach>> = if waiting.len() <= self.of_project.len() {
            let lines = waiting.filter_map(|project| self.of_project.get(&project));
            lines.flatten().collect()
        } else {
            let lines = self.of_project.iter();
            let lines = lines.filter(|(project, _)| world.has_waiting(**project));
            lines.flat_map(|(_, lines)| lines).collect()
        };
        let idle = self.of_all.iter().chain(some);
        let idle = idle.filter_map(|reach| Some((Some(&**reach), self.idle.get(reach)?)));
        std::iter::once((None, &self.engaged)).chain(idle).collect()
    }

    pub(super) fn at(&self, arrival: Arrival) -> Option<&Poll> {
        Some(&self.by_arrival.get(&arrival)?.poll)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.by_arrival.values()
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            arrivals: self.arrivals,
            ..Self::default()
        };
    }
}
