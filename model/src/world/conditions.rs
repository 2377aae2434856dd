//! The open conditions, and when the next one begins.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::World;
use crate::condition::{Condition, Subject};
use crate::derive::{After, derived, scans_of};
use crate::limits::OPEN_CONDITIONS;
use crate::{ConditionId, ProjectId, Projects, Timestamp};

#[derive(Debug, Clone, Default)]
pub(super) struct Conditions {
    by_id: BTreeMap<ConditionId, Arc<Condition>>,
    by_subject: HashMap<Subject, BTreeSet<ConditionId>>,
    of_project: HashMap<Option<ProjectId>, usize>,
    /// When the next condition of a subject begins, if nothing changes before.
    next: HashMap<Subject, Timestamp>,
    by_time: BTreeSet<(Timestamp, Subject)>,
}

impl Conditions {
    fn put(&mut self, condition: &Arc<Condition>) {
        let before = self.by_id.insert(condition.id, condition.clone());
        if before.is_none() {
            *self.of_project.entry(condition.project).or_default() += 1;
        }
        self.by_subject
            .entry(condition.subject.clone())
            .or_default()
            .insert(condition.id);
    }

    fn remove(&mut self, condition: &Condition) {
        if self.by_id.remove(&condition.id).is_none() {
            return;
        }
        if let Some(count) = self.of_project.get_mut(&condition.project) {
            *count = count.saturating_sub(1);
        }
        if let Some(ids) = self.by_subject.get_mut(&condition.subject) {
            ids.remove(&condition.id);
            if ids.is_empty() {
                self.by_subject.remove(&condition.subject);
            }
        }
    }

    fn set_next(&mut self, subject: &Subject, next: Option<Timestamp>) {
        let before = match next {
            Some(next) => self.next.insert(subject.clone(), next),
            None => self.next.remove(subject),
        };
        if before == next {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, subject.clone()));
        }
        if let Some(next) = next {
            self.by_time.insert((next, subject.clone()));
        }
    }
}

impl World {
    /// Every open condition, by id.
    pub fn conditions(&self) -> impl ExactSizeIterator<Item = &Arc<Condition>> {
        self.conditions.by_id.values()
    }

    pub fn condition(&self, id: ConditionId) -> Option<&Arc<Condition>> {
        self.conditions.by_id.get(&id)
    }

    /// The projects of a runner. Other subjects belong to one project, or to the instance.
    pub(crate) fn projects_of(&self, subject: &Subject) -> Projects {
        match subject {
            Subject::Runner { runner } => {
                let runner = self.runner(*runner);
                runner.map_or(Projects::All, |runner| runner.projects.clone())
            }
            Subject::Scan { .. }
            | Subject::Workflow { .. }
            | Subject::Source { .. }
            | Subject::Project { .. }
            | Subject::Token { .. }
            | Subject::Channel { .. }
            | Subject::Instance => Projects::All,
        }
    }

    pub fn conditions_of(&self, subject: &Subject) -> impl Iterator<Item = &Arc<Condition>> {
        let ids = self.conditions.by_subject.get(subject);
        ids.into_iter()
            .flatten()
            .filter_map(|id| self.condition(*id))
    }

    /// How many more conditions may open in a project, or for the instance.
    pub fn room_for_conditions(&self, project: Option<ProjectId>) -> usize {
        let open = self.conditions.of_project.get(&project).copied();
        OPEN_CONDITIONS.saturating_sub(open.unwrap_or_default())
    }

    /// The subjects with a condition that begins or ends by `now`, earliest first.
    pub fn conditions_due(&self, now: Timestamp) -> Vec<Subject> {
        let due = self.conditions.by_time.iter();
        due.take_while(|(at, _)| *at <= now)
            .filter(|(_, subject)| !self.has_expired(subject, now))
            .map(|(_, subject)| subject.clone())
            .collect()
    }

    /// True if nothing of a subject needs a look any more: a token has expired, and no condition says that it will.
    fn has_expired(&self, subject: &Subject, now: Timestamp) -> bool {
        let Subject::Token { token } = subject else {
            return false;
        };
        let end = self.token(*token).and_then(|token| token.expires_at);
        end.is_some_and(|end| end <= now) && self.conditions_of(subject).next().is_none()
    }

    /// When the first condition after `now` begins or ends.
    pub fn next_condition(&self, now: Timestamp) -> Option<Timestamp> {
        let mut times = self.conditions.by_time.iter().map(|(at, _)| *at);
        times.find(|at| *at > now)
    }

    pub(super) fn open(&mut self, condition: &Arc<Condition>) {
        let had_room = self.room_for_conditions(condition.project) > 0;
        self.conditions.put(condition);
        self.expect(&condition.subject);
        if had_room && self.room_for_conditions(condition.project) == 0 {
            self.expect_all(condition.project);
        }
    }

    pub(super) fn close(&mut self, condition: &Condition) {
        let was_full = self.room_for_conditions(condition.project) == 0;
        self.conditions.remove(condition);
        self.expect(&condition.subject);
        if was_full {
            self.expect_all(condition.project);
        }
    }

    /// Updates when a subject must be looked at again: when its next condition begins or an open one ends, or at once if its open conditions
    /// do not follow from the records, because a decision had no room for them or a state is older than a rule. A project
    /// with too many open conditions waits for none.
    pub(super) fn expect(&mut self, subject: &Subject) {
        let next = self.next_look(subject);
        self.conditions.set_next(subject, next);
    }

    fn next_look(&self, subject: &Subject) -> Option<Timestamp> {
        let after = After::of(self, &[]);
        let open: Vec<&Condition> = self
            .conditions_of(subject)
            .map(|open| &**open)
            .filter(|open| !open.problem.is_measured())
            .collect();
        let Some(project) = after.project_of(subject) else {
            return (!open.is_empty()).then_some(Timestamp::UNIX_EPOCH);
        };
        let derived = derived(&after, subject);
        let begins = derived.iter().map(|one| (one.problem.key(), one.from));
        let mut begins: BTreeMap<_, Option<Timestamp>> = begins.collect();
        let holds = |open: &Condition| {
            let begin = begins.get(&open.problem.key());
            begin.is_some_and(|from| from.is_none_or(|from| from <= open.since))
        };
        if !open.iter().all(|open| holds(open)) {
            return Some(Timestamp::UNIX_EPOCH);
        }
        let ends = open.iter().filter_map(|open| open.problem.ends_at());
        let end = ends.min();
        for open in open {
            begins.remove(&open.problem.key());
        }
        let next = begins.into_values();
        let next = next.map(|from| from.unwrap_or(Timestamp::UNIX_EPOCH));
        let next = next.min();
        let next = next.filter(|_| self.room_for_conditions(project) > 0);
        next.into_iter().chain(end).min()
    }

    /// Updates all subjects of a project that has become full, or has room again.
    fn expect_all(&mut self, project: Option<ProjectId>) {
        let mut subjects: BTreeSet<Subject> = self.conditions.next.keys().cloned().collect();
        let sources = self
            .sources()
            .filter(|source| Some(source.project) == project);
        subjects.extend(sources.flat_map(|source| {
            let source_name = source.name.clone();
            [
                Subject::Source {
                    source: source_name,
                },
                Subject::Project {
                    project: source.project,
                },
            ]
        }));
        let workflows = self.workflows();
        let workflows = workflows.filter(|workflow| Some(workflow.record.project) == project);
        for workflow in workflows {
            subjects.insert(Subject::Workflow {
                workflow: workflow.record.id,
            });
            subjects.extend(scans_of(&workflow));
        }
        for subject in &subjects {
            self.expect(subject);
        }
    }
}
