//! Drafts the changes of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::notify::Rule;

use super::{Asked, Route, asked, begin_at, retry_at};
use crate::change::Change;
use crate::channel::{Channel, Sending, SendingStep};
use crate::condition::Condition;
use crate::event::{Event, What};
use crate::limits::DELIVERY_CHANGES;
use crate::moment::{Entropy, Moment};
use crate::outbox::{Delivery, Due, Held, Outgoing};
use crate::world::World;
use crate::{ChannelId, ConditionId, EventId, MessageId, Order, OutgoingId, Timestamp};

/// The changes of a plan, over the records of the world.
pub(super) struct Draft<'w> {
    pub(super) world: &'w World,
    pub(super) now: Timestamp,
    pub(super) order: Order,
    pub(super) outgoing: BTreeMap<OutgoingId, Outgoing>,
    channels: Vec<Channel>,
    pub(super) conditions: BTreeMap<ConditionId, Condition>,
}

impl<'w> Draft<'w> {
    pub(super) fn new(world: &'w World, moment: &Moment<'_>) -> Self {
        Self {
            world,
            now: moment.now,
            order: moment.order,
            outgoing: BTreeMap::new(),
            channels: Vec::new(),
            conditions: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.outgoing.len() + self.channels.len() + self.conditions.len()
    }

    /// The channels that send, or have something to send, also after this plan.
    pub(super) fn busy_channels(&self) -> Vec<Arc<Channel>> {
        let drafted = self.outgoing.values();
        let deliveries = drafted.flat_map(|outgoing| outgoing.deliveries.iter().flatten());
        let mut ids: BTreeSet<ChannelId> = self.world.busy_channels().collect();
        ids.extend(deliveries.map(|delivery| delivery.channel));
        let channels = ids.into_iter().filter_map(|id| self.world.channel(id));
        channels.cloned().collect()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= DELIVERY_CHANGES
    }

    pub(super) fn changes(self) -> Vec<Change> {
        let outgoing = self.outgoing.into_values().map(|outgoing| {
            if outgoing.deliveries.as_ref().is_some_and(Vec::is_empty) {
                return Change::OutgoingRemoved(outgoing.id);
            }
            Change::Outgoing(Arc::new(outgoing))
        });
        let conditions = self.conditions.into_values();
        let channels = self.channels.into_iter();
        outgoing
            .chain(conditions.map(|condition| Change::Condition(Arc::new(condition))))
            .chain(channels.map(|channel| Change::Channel(Arc::new(channel))))
            .collect()
    }

    pub(super) fn record(&self, id: OutgoingId) -> Option<&Outgoing> {
        let drafted = self.outgoing.get(&id);
        drafted.or_else(|| self.world.outgoing(id).map(|outgoing| &**outgoing))
    }

    /// Changes the deliveries of a record that `which` names; none removes a delivery.
    pub(super) fn edit(
        &mut self,
        id: OutgoingId,
        which: impl Fn(&Delivery) -> bool,
        mut change: impl FnMut(Delivery) -> Option<Delivery>,
    ) {
        let Some(record) = self.record(id) else {
            return;
        };
        if !record.deliveries.iter().flatten().any(&which) {
            return;
        }
        let mut record = record.clone();
        let deliveries = record.deliveries.unwrap_or_default().into_iter();
        let kept = deliveries.filter_map(|delivery| {
            if which(&delivery) {
                change(delivery)
            } else {
                Some(delivery)
            }
        });
        record.deliveries = Some(kept.collect());
        self.outgoing.insert(id, record);
    }

    pub(super) fn plan(&mut self, outgoing: &Outgoing) {
        let mut deliveries: Vec<Delivery> = Vec::new();
        let world = self.world;
        for event in &outgoing.events {
            for channel in world.channels_for(outgoing.project) {
                let planned = match &event.what {
                    What::Closed {
                        condition,
                        reported,
                        ..
                    } => self.after_opening(
                        event,
                        *condition,
                        reported.contains(&channel.id),
                        channel,
                    ),
                    _ => asked(world, outgoing.project, event, channel)
                        .map(|by| self.route(by, channel)),
                };
                let Some(Route {
                    rule,
                    is_rule_of_instance,
                    due,
                }) = planned
                else {
                    continue;
                };
                let same = deliveries.iter_mut().find(|delivery| {
                    delivery.channel == channel.id
                        && delivery.rule == rule
                        && delivery.is_rule_of_instance == is_rule_of_instance
                        && delivery.due == due
                });
                match same {
                    Some(same) => same.events.push(event.id),
                    None => deliveries.push(Delivery {
                        channel: channel.id,
                        rule,
                        is_rule_of_instance,
                        events: vec![event.id],
                        due,
                        planned: self.order,
                    }),
                }
            }
        }
        let mut planned = outgoing.clone();
        planned.deliveries = Some(deliveries);
        self.outgoing.insert(outgoing.id, planned);
    }

    fn route(&self, by: Asked<'_>, channel: &Channel) -> Route {
        let (rule, is_rule_of_instance) = match by {
            Asked::Rule {
                rule,
                is_of_instance,
            } => (Some(rule), is_of_instance),
            Asked::Usual => (None, false),
        };
        Route {
            rule: rule.map(|rule| rule.name.clone()),
            is_rule_of_instance,
            due: self.due(rule, channel),
        }
    }

    /// When a delivery of a rule is due.
    fn due(&self, rule: Option<&Rule>, channel: &Channel) -> Due {
        let group = rule.map_or(Rule::GROUP, Rule::group);
        let begun = channel.begun().map(|begun| begun.min(self.now));
        let grouped = begun.map(|begun| begun + group);
        let grouped = grouped.filter(|until| *until > self.now);
        let (at, held) = grouped.map_or((self.now, None), |at| (at, Some(Held::Group)));
        Due::At { at, held }
    }

    /// The end of a condition goes where its begin went, and never before it.
    fn after_opening(
        &mut self,
        event: &Event,
        condition: ConditionId,
        was_reported: bool,
        channel: &Channel,
    ) -> Option<Route> {
        self.end_repeats(condition, channel);
        match self.pending(condition, channel.id) {
            Some(opening) => {
                let due = if opening.is_in(channel) {
                    Due::AfterOpening
                } else {
                    opening.due
                };
                return Some(Route {
                    rule: opening.rule,
                    is_rule_of_instance: opening.is_rule_of_instance,
                    due,
                });
            }
            None if was_reported => {}
            None => return None,
        }
        let by = asked(self.world, event.project, event, channel);
        Some(self.route(by.unwrap_or(Asked::Usual), channel))
    }

    /// A closed condition is not reported again. What the channel is sending stays as it is.
    fn end_repeats(&mut self, condition: ConditionId, channel: &Channel) {
        for outgoing in self.world.outgoing_about(condition) {
            let about = outgoing.events.iter();
            let about = about.filter(|event| event.what.condition() == Some(condition));
            let about: BTreeSet<EventId> = about.map(|event| event.id).collect();
            let repeats = |delivery: &Delivery| {
                delivery.channel == channel.id
                    && delivery.due.is_repeat()
                    && !delivery.is_in(channel)
            };
            self.edit(outgoing.id, repeats, |mut delivery| {
                delivery.events.retain(|event| !about.contains(event));
                (!delivery.events.is_empty()).then_some(delivery)
            });
        }
    }

    /// The first delivery of a condition's begin that is not over.
    fn pending(&self, condition: ConditionId, channel: ChannelId) -> Option<Delivery> {
        let ids = self
            .world
            .outgoing_about(condition)
            .map(|outgoing| outgoing.id);
        ids.filter_map(|id| self.record(id)).find_map(|outgoing| {
            let opens = |event: &&Event| {
                event.what.condition() == Some(condition)
                    && !matches!(event.what, What::Closed { .. })
            };
            let event = outgoing.events.iter().find(opens)?;
            let mut deliveries = outgoing.deliveries.iter().flatten();
            let delivery = deliveries.find(|delivery| {
                delivery.channel == channel
                    && delivery.events.contains(&event.id)
                    && !delivery.due.is_repeat()
            })?;
            Some(delivery.clone())
        })
    }

    /// Sends now what a clock that was set back holds.
    pub(super) fn release(&mut self, channel: ChannelId) {
        let (now, planned) = (self.now, self.order);
        let due = Due::At {
            at: now,
            held: None,
        };
        let is_held =
            |delivery: &Delivery| delivery.channel == channel && delivery.due.is_overheld(now);
        for outgoing in self.world.due_for(channel, Timestamp::MAX_UTC) {
            if self.is_full() {
                break;
            }
            self.edit(outgoing.id, is_held, |delivery| {
                Some(Delivery {
                    due,
                    planned,
                    ..delivery
                })
            });
        }
    }

    /// The daemon stopped while the channel sent its message.
    pub(super) fn interrupt(&mut self, channel: &Channel) {
        let mut channel = channel.clone();
        if let Some(sending) = &mut channel.sending {
            sending.is_repeated = true;
            sending.step = SendingStep::RetryAt { at: self.now };
        }
        self.channels.push(channel);
    }

    /// Ends the message of a channel that is over, or begins the next attempt or message, and returns it.
    pub(super) fn serve(
        &mut self,
        channel: &Channel,
        entropy: &mut dyn Entropy,
    ) -> Option<Arc<Channel>> {
        let sending = match channel.sending.clone() {
            None => {
                let begin = begin_at(channel, self.first_due(channel)?, self.now)?;
                if begin > self.now || self.hold(channel) {
                    return None;
                }
                let sending = Sending {
                    message: MessageId::random(entropy),
                    at: self.now,
                    planned: self.order,
                    attempt: 1,
                    is_repeated: self.is_restored(channel),
                    step: SendingStep::Now,
                };
                Some(sending)
            }
            Some(sending) => match sending.step {
                SendingStep::Over { delivered } => {
                    self.settle(channel, delivered).then_some(None)?
                }
                SendingStep::Now => return None,
                SendingStep::RetryAt { at } => {
                    let is_due = retry_at(at, self.now) <= self.now;
                    is_due.then_some(Some(Sending {
                        attempt: sending.attempt + 1,
                        step: SendingStep::Now,
                        ..sending
                    }))?
                }
            },
        };
        let channel = Channel {
            sending,
            ..Channel::clone(channel)
        };
        self.channels.push(channel.clone());
        channel.sending.is_some().then(|| Arc::new(channel))
    }

    /// Holds what is due during the quiet hours of its rule. True if there was something: then the next plan begins the
    /// message.
    fn hold(&mut self, channel: &Channel) -> bool {
        let (world, now, planned) = (self.world, self.now, self.order);
        let mut rules = world.all_rules().flat_map(|rules| rules.all());
        if !rules.any(|rule| rule.channel == channel.name && rule.quiet_until(now).is_some()) {
            return false;
        }
        let due = world.due_for(channel.id, now).map(|outgoing| outgoing.id);
        let due: BTreeSet<OutgoingId> = due.chain(self.outgoing.keys().copied()).collect();
        let mut has_held = false;
        for id in due {
            let Some(record) = self.record(id) else {
                continue;
            };
            let project = record.project;
            let end = |delivery: &Delivery| {
                let is_due = delivery.due.at().is_some_and(|at| at <= now);
                let rule = world.rule_of(project, delivery);
                rule.filter(|_| is_due && delivery.channel == channel.id)?
                    .quiet_until(now)
            };
            let is_quiet = |delivery: &Delivery| end(delivery).is_some();
            if !record.deliveries.iter().flatten().any(is_quiet) {
                continue;
            }
            if self.is_full() {
                return true;
            }
            has_held = true;
            self.edit(id, is_quiet, |delivery| {
                let is_repeat = delivery.due.is_repeat();
                let held = if is_repeat {
                    Held::Repeat
                } else {
                    Held::QuietHours
                };
                let due = Due::At {
                    at: end(&delivery)?,
                    held: Some(held),
                };
                Some(Delivery {
                    due,
                    planned,
                    ..delivery
                })
            });
        }
        has_held
    }

    /// Whether the next message of the channel contains events from before a restore.
    fn is_restored(&self, channel: &Channel) -> bool {
        let due = self.world.due_for(channel.id, self.now);
        let mut due = due.map(|it| &**it).chain(self.outgoing.values());
        let restored = channel.restored;
        restored.is_some_and(|restored| due.any(|outgoing| outgoing.order <= restored))
    }

    fn first_due(&self, channel: &Channel) -> Option<Timestamp> {
        let drafted = self.outgoing.values();
        let drafted = drafted.flat_map(|outgoing| outgoing.deliveries.iter().flatten());
        let of_channel = drafted.filter(|delivery| delivery.channel == channel.id);
        let drafted = of_channel.filter_map(|delivery| delivery.due.at()).min();
        let is_drafted = |id: &OutgoingId| self.outgoing.contains_key(id);
        let others = self.world.first_due(channel.id, is_drafted);
        drafted.into_iter().chain(others).min()
    }
}
