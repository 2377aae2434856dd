//! Conditions that time or a measurement opens and closes, and what people say about open conditions.

use std::sync::Arc;

use chrono::TimeDelta;

use super::observe::{look, settle};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::condition::{Acknowledgement, Condition, Problem, Subject};
use crate::derive::After;
use crate::limits::{CONDITION_NOTE_CHARS, LONGEST_SILENCE, OBSERVED};
use crate::moment::Moment;
use crate::scan_head::{Failing, ScanHead};
use crate::world::World;
use crate::{Actor, ConditionId, ScanKey};

/// Open the conditions of a subject whose time has come. The subject stays due if not all changes fit into the commit.
#[derive(Debug, Clone)]
pub struct Look {
    pub subject: Subject,
}

impl Command for Look {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let after = After::of(world, &[]);
        let changes = look(&after, world, &self.subject, moment);
        Ok(Decision::of(changes.into_iter().take(OBSERVED)))
    }
}

/// Report all measured problems that a subject has now. The others of the subject are over. The answer is true if not all
/// changes fit into the commit: then report them again.
#[derive(Debug, Clone)]
pub struct Measure {
    pub subject: Subject,
    pub problems: Vec<Problem>,
}

impl Measure {
    /// True if the open conditions say something else.
    pub fn is_news(&self, world: &World) -> bool {
        let open = measured(world, &self.subject);
        let is_open = |problem: &Problem| open.iter().any(|open| open.problem == *problem);
        open.len() != self.problems.len() || !self.problems.iter().all(is_open)
    }
}

impl Command for Measure {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let open = measured(world, &self.subject);
        let after = After::of(world, &[]);
        let mut changes = settle(&after, world, &self.subject, &open, self.problems, moment);
        let answer = changes.len() > OBSERVED;
        changes.truncate(OBSERVED);
        Ok(Decision { changes, answer })
    }
}

fn measured<'w>(world: &'w World, subject: &Subject) -> Vec<&'w Arc<Condition>> {
    let open = world.conditions_of(subject);
    open.filter(|open| open.problem.is_measured()).collect()
}

/// A person knows of a condition. The failure of a scan that only people start is settled by this.
#[derive(Debug, Clone)]
pub struct Acknowledge {
    pub condition: ConditionId,
    pub note: Option<String>,
    pub actor: Actor,
}

impl Command for Acknowledge {
    type Answer = Arc<Condition>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Arc<Condition>>, Refusal> {
        let mut condition = Condition::clone(find(world, self.condition)?);
        let note = self.note.filter(|note| !note.is_empty());
        if note
            .as_ref()
            .is_some_and(|note| note.chars().count() > CONDITION_NOTE_CHARS)
        {
            let problem = format!("is longer than {CONDITION_NOTE_CHARS} characters");
            return Err(Refusal::invalid("note", problem));
        }
        condition.acknowledged = Some(Acknowledgement {
            by: self.actor,
            at: moment.now,
            note,
        });
        let condition = Arc::new(condition);
        let mut changes = vec![Change::Condition(condition.clone())];
        if let (Problem::Failing { .. }, Subject::Scan { workflow, scan }) =
            (&condition.problem, &condition.subject)
        {
            let key = ScanKey::new(*workflow, scan);
            changes.extend(forgive(world, &key).map(|head| Change::Head(Arc::new(head))));
        }
        Ok(Decision {
            changes,
            answer: condition,
        })
    }
}

/// The head without its failures, if only people start the scan: no later job of a trigger would end the condition.
fn forgive(world: &World, scan: &ScanKey) -> Option<ScanHead> {
    let workflow = world.workflow(scan.workflow)?;
    let on = &workflow.scan(&scan.scan)?.on;
    let mut head = ScanHead::clone(world.head(scan)?);
    let failing = head.failing()?;
    // The next failure ends no time in which the scan was fine.
    if let Some(succeeded) = &mut head.succeeded {
        succeeded.since = None;
    }
    head.failing = Some(Failing {
        failures: 0,
        ..failing
    });
    (on.cron.is_none() && on.expr.is_none()).then_some(head)
}

/// Fold a condition away for this long; none ends the silence.
#[derive(Debug, Clone)]
pub struct Silence {
    pub condition: ConditionId,
    pub seconds: Option<u64>,
}

impl Command for Silence {
    type Answer = Arc<Condition>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Arc<Condition>>, Refusal> {
        let before = find(world, self.condition)?;
        let span = match self.seconds {
            Some(seconds) => Some(silence(seconds)?),
            None => None,
        };
        let condition = Arc::new(Condition {
            silenced_until: span.map(|span| moment.now + span),
            ..Condition::clone(before)
        });
        Ok(Decision {
            changes: vec![Change::Condition(condition.clone())],
            answer: condition,
        })
    }
}

fn silence(seconds: u64) -> Result<TimeDelta, Refusal> {
    let span = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
    span.filter(|span| (TimeDelta::seconds(1)..=LONGEST_SILENCE).contains(span))
        .ok_or_else(|| {
            let days = LONGEST_SILENCE.num_days();
            Refusal::invalid("seconds", format!("must be from 1 second to {days} days"))
        })
}

fn find(world: &World, id: ConditionId) -> Result<&Arc<Condition>, Refusal> {
    world
        .condition(id)
        .ok_or(Refusal::NoSuchCondition { condition: id })
}
