//! Ends a message: what it reported, and what is sent again or released by it.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::channel::Channel;
use crate::condition::Condition;
use crate::event::{Event, What};
use crate::outbox::{Delivery, Due, Held};
use crate::{ChannelId, ConditionId, EventId, OutgoingId};

impl Draft<'_> {
    /// Removes the deliveries of a message that is over. False if not all fit into the commit.
    pub(super) fn settle(&mut self, channel: &Channel, delivered: bool) -> bool {
        let world = self.world;
        let Some(sending) = &channel.sending else {
            return true;
        };
        let ids: Vec<OutgoingId> = world
            .due_for(channel.id, sending.at)
            .map(|outgoing| outgoing.id)
            .collect();
        for id in ids {
            if self.is_full() {
                return false;
            }
            let Some(record) = self.record(id).cloned() else {
                continue;
            };
            let over: Vec<&Delivery> = record
                .deliveries
                .iter()
                .flatten()
                .filter(|delivery| delivery.is_in(channel))
                .collect();
            let events = over.iter().flat_map(|delivery| &delivery.events);
            let events: Vec<&Event> = events
                .filter_map(|id| record.events.iter().find(|event| event.id == *id))
                .collect();
            for event in &events {
                self.note_reported(event, channel.id, delivered);
            }
            // A repeat that does not arrive does not end the repeats: the condition may be silenced for a while.
            let is_repeated = |event: &&&Event| {
                let condition = event.what.condition().and_then(|id| world.condition(id));
                condition.is_some_and(|condition| {
                    let is_known = delivered || condition.reported.contains(&channel.id);
                    is_known && condition.acknowledged.is_none() && !channel.is_gone()
                })
            };
            let repeated = events.iter().filter(is_repeated);
            let repeated: BTreeSet<EventId> = repeated.map(|event| event.id).collect();
            let (now, planned) = (self.now, self.order);
            self.edit(
                id,
                |delivery| delivery.is_in(channel),
                |mut delivery| {
                    let repeat = world.rule_of(record.project, &delivery)?.repeat()?;
                    delivery.events.retain(|event| repeated.contains(event));
                    let due = Due::At {
                        at: now + repeat,
                        held: Some(Held::Repeat),
                    };
                    (!delivery.events.is_empty()).then_some(Delivery {
                        due,
                        planned,
                        ..delivery
                    })
                },
            );
        }
        true
    }

    /// The message about the begin of a condition has arrived, or will not arrive.
    fn note_reported(&mut self, event: &Event, channel: ChannelId, delivered: bool) {
        let Some(id) = event.what.condition() else {
            return;
        };
        if matches!(event.what, What::Closed { .. }) {
            return;
        }
        if let Some(open) = self.world.condition(id) {
            if delivered && !open.reported.contains(&channel) {
                let drafted = self.conditions.entry(id);
                let condition = drafted.or_insert_with(|| Condition::clone(open));
                condition.reported.insert(channel);
            }
            return;
        }
        let waits =
            |delivery: &Delivery| delivery.channel == channel && delivery.due == Due::AfterOpening;
        let about = self.world.outgoing_about(id).map(|outgoing| outgoing.id);
        let about: Vec<OutgoingId> = about.collect();
        let (now, order) = (self.now, self.order);
        for record in about {
            self.edit(record, waits, |delivery| {
                let due = Due::At {
                    at: now,
                    held: None,
                };
                delivered.then_some(Delivery {
                    due,
                    planned: order,
                    ..delivery
                })
            });
            if delivered {
                self.note_in_closing(record, id, channel);
            }
        }
    }

    /// The end of the condition is in the outbox, but not planned yet.
    fn note_in_closing(&mut self, record: OutgoingId, condition: ConditionId, channel: ChannelId) {
        let Some(record) = self
            .record(record)
            .filter(|record| record.deliveries.is_none())
        else {
            return;
        };
        let mut record = record.clone();
        for event in &mut record.events {
            if let What::Closed {
                condition: closed,
                reported,
                ..
            } = &mut event.what
                && *closed == condition
            {
                reported.insert(channel);
            }
        }
        self.outgoing.insert(record.id, record);
    }
}
