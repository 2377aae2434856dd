//! Opens and closes conditions after a decision. Every decision passes here, so that no cause is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::change::Change;
use crate::condition::{Condition, Problem, Subject};
use crate::derive::{After, Derived, derived, touched};
use crate::limits::{DECISION_CHANGES, OBSERVED};
use crate::moment::Moment;
use crate::world::World;
use crate::{ConditionId, Timestamp};

/// The changes of conditions that follow from the changes of a decision.
pub(super) fn observe(world: &World, changes: &[Change], moment: &mut Moment<'_>) -> Vec<Change> {
    let mut subjects = BTreeSet::new();
    for change in changes {
        touched(world, change, &mut subjects);
    }
    let after = After::of(world, changes);
    // Each change may need a record of the outbox.
    let room = DECISION_CHANGES.saturating_sub(changes.len()) / 2;
    let room = room.min(OBSERVED);
    let mut found = Vec::new();
    for subject in &subjects {
        if found.len() >= room {
            break;
        }
        found.extend(look(&after, world, subject, moment));
    }
    // What does not fit is due at once: see `World::expect`.
    found.truncate(room);
    found
}

/// The changes of the conditions of a subject that follow from records.
pub(super) fn look(
    after: &After<'_>,
    world: &World,
    subject: &Subject,
    moment: &mut Moment<'_>,
) -> Vec<Change> {
    let present = present(derived(after, subject), moment.now);
    // What was measured of a removed runner is over at once.
    let is_runner_removed = matches!(subject, Subject::Runner { .. }) && !after.exists(subject);
    let derived: Vec<&Arc<Condition>> = world
        .conditions_of(subject)
        .filter(|open| !open.problem.is_measured() || is_runner_removed)
        .collect();
    if present.is_empty() && derived.is_empty() {
        return Vec::new();
    }
    settle(after, world, subject, &derived, present, moment)
}

fn present(derived: Vec<Derived>, now: Timestamp) -> Vec<Problem> {
    derived
        .into_iter()
        .filter(|one| one.from.is_none_or(|from| from <= now))
        .filter(|one| one.problem.ends_at().is_none_or(|end| now < end))
        .map(|one| one.problem)
        .collect()
}

/// Compares the `open` conditions of a subject with the problems that it has now.
pub(super) fn settle(
    after: &After<'_>,
    world: &World,
    subject: &Subject,
    open: &[&Arc<Condition>],
    present: Vec<Problem>,
    moment: &mut Moment<'_>,
) -> Vec<Change> {
    let (project, present) = match after.project_of(subject) {
        Some(project) => (project, present),
        None => (None, Vec::new()),
    };
    let keys: BTreeSet<_> = present.iter().map(Problem::key).collect();
    let known: BTreeMap<_, _> = open.iter().map(|open| (open.problem.key(), open)).collect();
    let mut changes: Vec<Change> = open
        .iter()
        .filter(|open| !keys.contains(&open.problem.key()))
        .map(|open| Change::ConditionClosed(Arc::clone(open), after.ended(open, moment.now)))
        .collect();
    let mut room = world.room_for_conditions(project) + changes.len();
    for problem in present {
        let condition = match known.get(&problem.key()).copied() {
            Some(known) if known.problem == problem => continue,
            Some(known) => Condition {
                problem,
                ..Condition::clone(known)
            },
            None if room == 0 => continue,
            None => {
                room -= 1;
                Condition {
                    id: ConditionId::random(moment.entropy),
                    project,
                    subject: subject.clone(),
                    projects: world.projects_of(subject),
                    problem,
                    since: moment.now,
                    acknowledged: None,
                    silenced_until: None,
                    reported: BTreeSet::new(),
                }
            }
        };
        changes.push(Change::Condition(Arc::new(condition)));
    }
    changes
}
