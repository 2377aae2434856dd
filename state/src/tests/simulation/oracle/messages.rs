//! Checks that each channel gets every event once, the end of a condition never before its begin, and that the events
//! agree with the open conditions.

use std::collections::{BTreeMap, BTreeSet};

use model::channel::Channel;
use model::condition::Subject;
use model::event::{Event, What};
use model::{ConditionId, EventId, MessageId};
use workflow::notify::DEFAULT_EVENTS;

use super::Oracle;
use crate::State;

/// What has arrived at a channel.
#[derive(Default)]
pub(super) struct Arrived {
    messages: BTreeMap<MessageId, BTreeSet<EventId>>,
    events: BTreeSet<EventId>,
    opened: BTreeSet<ConditionId>,
}

impl Oracle {
    pub(in crate::tests::simulation) fn message_arrived(
        &mut self,
        channel: &Channel,
        events: &[Event],
    ) {
        let arrived = self.arrived.entry(channel.id).or_default();
        let sending = channel.sending.as_ref().unwrap();
        assert!(!events.is_empty(), "{} sends nothing", channel.name);
        let ids: BTreeSet<EventId> = events.iter().map(|event| event.id).collect();
        match arrived.messages.insert(sending.message, ids.clone()) {
            Some(before) => {
                assert!(sending.is_repeated, "a repeat is not marked: {sending:?}");
                assert_eq!(before, ids, "a repeat has other events: {sending:?}");
            }
            None => assert!(
                arrived.events.is_disjoint(&ids),
                "sent in two messages: {events:?}"
            ),
        }
        arrived.events.extend(ids);
        let opened = events.iter().filter_map(|event| match &event.what {
            What::Opened { condition, .. } => Some(*condition),
            _ => None,
        });
        arrived.opened.extend(opened);
        for event in events {
            if let What::Closed { condition, .. } = &event.what {
                assert!(
                    arrived.opened.contains(condition),
                    "{} learns of an end without a begin: {event:?}",
                    channel.name
                );
            }
        }
    }

    /// Checks the events of the past once the outbox is empty. A channel that refuses messages may lack some.
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
            let own = Subject::Channel {
                channel: channel.id,
            };
            let wanted = events.iter().filter(|event| {
                let is_first = !matches!(event.what, What::FailedAgain { .. });
                let is_its = channel.project.is_none() || channel.project == event.project;
                let is_usual = DEFAULT_EVENTS.contains(&event.what.name());
                is_first && is_its && is_usual && event.subject != own
            });
            let wanted: BTreeMap<EventId, &Event> = wanted.map(|event| (event.id, event)).collect();
            for (id, event) in &wanted {
                let has_it = arrived.events.contains(id);
                assert!(has_it, "{} was not told: {event:?}", channel.name);
            }
            assert_eq!(arrived.events.len(), wanted.len(), "{}", channel.name);
        }
        self.messages += self
            .arrived
            .values()
            .map(|it| it.messages.len())
            .sum::<usize>();
    }
}
