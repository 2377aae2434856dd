//! Checks that each channel gets every event once and repeats only as its rule says, the end of a condition never before
//! its begin, and that the events agree with the open conditions.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Timelike;
use model::channel::Channel;
use model::condition::Subject;
use model::event::{Event, What};
use model::{ConditionId, EventId, MessageId, World};
use workflow::notify::{DEFAULT_EVENTS, Rule};

use super::Oracle;
use crate::State;
use crate::tests::simulation::steps::{QUIET, rules};

/// What has arrived at a channel.
#[derive(Default)]
pub(super) struct Arrived {
    /// The events of each message, without repeats.
    messages: BTreeMap<MessageId, BTreeSet<EventId>>,
    /// When each event has arrived last, by the steady clock.
    events: BTreeMap<EventId, i64>,
    opened: BTreeSet<ConditionId>,
    closed: BTreeSet<ConditionId>,
    /// The message in which the repeat of an acknowledged condition was left out.
    suppressed: BTreeMap<EventId, MessageId>,
}

fn rule_of(channel: &Channel) -> Option<Rule> {
    rules().into_iter().find(|it| it.channel == channel.name)
}

fn message_of(channel: &Channel) -> MessageId {
    channel.sending.as_ref().unwrap().message
}

impl Oracle {
    /// A message has arrived. Each event comes with whether it is a repeat.
    pub(in crate::tests::simulation) fn message_arrived(
        &mut self,
        channel: &Channel,
        events: &[(Event, bool)],
        steady: i64,
    ) {
        let arrived = self.arrived.entry(channel.id).or_default();
        let sending = channel.sending.as_ref().unwrap();
        assert!(!events.is_empty(), "{} sends nothing", channel.name);
        let minute = sending.at.hour() * 60 + sending.at.minute();
        let is_quiet = rule_of(channel).is_some_and(|rule| rule.quiet.is_some());
        assert!(
            !is_quiet || !(QUIET[0]..QUIET[1]).contains(&minute),
            "a message begins in quiet hours: {sending:?}"
        );
        let first = events.iter().filter(|(_, is_repeat)| !is_repeat);
        let ids: BTreeSet<EventId> = first.map(|(event, _)| event.id).collect();
        match arrived.messages.insert(sending.message, ids.clone()) {
            Some(before) => {
                assert!(sending.is_repeated, "a repeat is not marked: {sending:?}");
                assert_eq!(before, ids, "a repeat has other events: {sending:?}");
            }
            None => {
                let mut known = ids.iter().map(|id| arrived.events.get(id));
                assert!(
                    known.all(|at| at.is_none()),
                    "sent in two messages: {events:?}"
                );
                for (event, _) in events.iter().filter(|(_, is_repeat)| *is_repeat) {
                    let last = arrived.events.get(&event.id);
                    let last = *last.expect("a repeat follows a first message");
                    let every = rule_of(channel).and_then(|rule| rule.repeat());
                    let every = every.expect("a rule asks for the repeat");
                    assert!(
                        steady - last >= every.num_milliseconds() || self.clock_set >= last,
                        "repeated too early: {event:?}"
                    );
                    let condition = event.what.condition().unwrap();
                    assert!(
                        !arrived.closed.contains(&condition),
                        "it is over: {event:?}"
                    );
                }
            }
        }
        for (event, _) in events {
            arrived.events.insert(event.id, steady);
            match &event.what {
                What::Opened { condition, .. } | What::FailedAgain { condition, .. } => {
                    arrived.opened.insert(*condition);
                }
                What::Closed { condition, .. } => {
                    assert!(
                        arrived.opened.contains(condition),
                        "{} learns of an end without a begin: {event:?}",
                        channel.name
                    );
                    arrived.closed.insert(*condition);
                }
                What::SlotMissed
                | What::WorkflowRemoved
                | What::Artifact { .. }
                | What::Interaction { .. } => {}
            }
        }
    }

    /// The repeat of an acknowledged condition was left out. There must be no other one.
    pub(in crate::tests::simulation) fn repeat_was_suppressed(
        &mut self,
        channel: &Channel,
        event: &Event,
    ) {
        let arrived = self.arrived.entry(channel.id).or_default();
        let message = message_of(channel);
        let first = arrived.suppressed.insert(event.id, message);
        assert!(
            first.is_none_or(|first| first == message),
            "{} repeats an acknowledged condition: {event:?}",
            channel.name
        );
    }

    /// Checks the events of the past once only repeats are left in the outbox. A channel that refuses messages may lack
    /// some.
    pub(in crate::tests::simulation) async fn check_messages(&mut self, state: &State) {
        let mut events = state
            .events((None, None), |_| true, usize::MAX)
            .await
            .unwrap();
        events.reverse();
        let mut open = BTreeSet::new();
        for event in &events {
            match &event.what {
                What::Opened { condition, .. } => {
                    assert!(open.insert(*condition), "opened twice: {event:?}");
                }
                What::Closed { condition, .. } => {
                    assert!(open.remove(condition), "closed twice: {event:?}");
                }
                _ => {}
            }
        }
        let (known, channels) = state.read(|world| {
            let known: BTreeSet<ConditionId> = world.conditions().map(|it| it.id).collect();
            let channels: Vec<_> = world.channels().cloned().collect();
            (known, channels)
        });
        assert_eq!(open, known, "the events and the open conditions");
        let none = Arrived::default();
        for channel in channels.iter().filter(|it| it.name.as_str() != "refuses") {
            let arrived = self.arrived.get(&channel.id).unwrap_or(&none);
            let wanted = wanted(channel, &events);
            for (id, event) in &wanted {
                let has_it = arrived.events.contains_key(id);
                assert!(has_it, "{} was not told: {event:?}", channel.name);
            }
            assert_eq!(arrived.events.len(), wanted.len(), "{}", channel.name);
            state.read(|world| check_repeats(world, channel));
        }
        self.messages += self
            .arrived
            .values()
            .map(|it| it.messages.len())
            .sum::<usize>();
    }
}

/// The events that a channel must have got.
fn wanted<'e>(channel: &Channel, events: &'e [Event]) -> BTreeMap<EventId, &'e Event> {
    let rule = rule_of(channel);
    let own = Subject::Channel {
        channel: channel.id,
    };
    let mut begun = BTreeSet::new();
    let is_wanted = |event: &&Event| {
        let is_its = channel.project.is_none() || channel.project == event.project;
        let name = event.what.name();
        let is_asked = match &rule {
            Some(rule) if !rule.events.is_empty() => rule.events.contains(&name),
            _ => DEFAULT_EVENTS.contains(&name),
        };
        if !is_its || !is_asked || event.subject == own {
            return false;
        }
        let failures = |problem: &_| match problem {
            model::condition::Problem::Failing { failures, .. } => Some(*failures),
            _ => None,
        };
        let after = rule.as_ref().map_or(1, |rule| u64::from(rule.after));
        match &event.what {
            What::Opened { condition, problem } => {
                let is_due = failures(problem).is_none_or(|it| it >= after);
                is_due && begun.insert(*condition)
            }
            What::FailedAgain { condition, problem } => {
                rule.is_some() && failures(problem) == Some(after) && begun.insert(*condition)
            }
            What::Closed { condition, .. } => begun.contains(condition),
            What::SlotMissed
            | What::WorkflowRemoved
            | What::Artifact { .. }
            | What::Interaction { .. } => true,
        }
    };
    let wanted = events.iter().filter(is_wanted);
    wanted.map(|event| (event.id, event)).collect()
}

/// Each open condition that the channel has reported is repeated, unless a person has acknowledged it, and no other one.
fn check_repeats(world: &World, channel: &Channel) {
    let mut repeated = BTreeSet::new();
    for outgoing in world.outbox() {
        let deliveries = outgoing.deliveries.iter().flatten();
        for delivery in deliveries.filter(|it| it.channel == channel.id) {
            let events = outgoing.events.iter();
            let events = events.filter(|event| delivery.events.contains(&event.id));
            repeated.extend(events.filter_map(|event| event.what.condition()));
        }
    }
    let repeats = rule_of(channel).is_some_and(|rule| rule.repeat.is_some());
    for open in world.conditions() {
        let is_known = open.reported.contains(&channel.id);
        let is_wanted = repeats && is_known && open.acknowledged.is_none();
        let is_repeated = repeated.remove(&open.id);
        assert!(is_repeated || !is_wanted, "is not repeated: {open:?}");
    }
    assert!(repeated.is_empty(), "repeated although over: {repeated:?}");
}
