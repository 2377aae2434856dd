//! Plans what is sent to which channel and when, and records the result of each attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use workflow::notify::{DEFAULT_EVENTS, EventName, NotifyName, Rule};

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::channel::{Channel, ChannelFailure, Sending, SendingStep};
use crate::condition::{Condition, Subject};
use crate::event::{Event, What};
use crate::limits::{
    CHANNEL_FAILS_AFTER, DELIVERY_CHANGES, DELIVERY_RETRIES, LONGEST_RETRY, MESSAGES_BEGUN,
    RETRY_AFTER,
};
use crate::moment::{Entropy, Moment};
use crate::outbox::{Delivery, DeliveryRecord, Due, Held, Outgoing, SendResult};
use crate::world::World;
use crate::{ChannelId, ConditionId, MessageId, Order, OutgoingId, ProjectId, Timestamp};

/// Ask the rules about new records of the outbox, and begin the messages that are due.
#[derive(Debug, Clone)]
pub struct PlanDeliveries {
    /// The process has just started: messages that were being sent are sent again, and nothing else is planned.
    pub at_start: bool,
}

impl PlanDeliveries {
    /// When there is something to plan; none until the outbox changes.
    pub fn due(&self, world: &World, now: Timestamp) -> Option<Timestamp> {
        if self.at_start {
            return world.channels().any(|it| is_sent_now(it)).then_some(now);
        }
        if world.unplanned().next().is_some() || world.orphaned().next().is_some() {
            return Some(now);
        }
        let at = |channel: &Arc<Channel>| match channel.sending.as_ref().map(|it| it.step) {
            Some(SendingStep::Over { .. }) => Some(now),
            Some(SendingStep::Now) => None,
            Some(SendingStep::RetryAt { at }) => Some(retry_at(at, now)),
            None if is_overheld(world, channel, now) => Some(now),
            None => begin_at(channel, world.first_due(channel.id)?, now),
        };
        world.channels().filter_map(at).min()
    }
}

/// Whether a clock that was set back holds what is sent first.
fn is_overheld(world: &World, channel: &Channel, now: Timestamp) -> bool {
    let first = world.due_for(channel.id, Timestamp::MAX_UTC).next();
    let mut deliveries = first.iter().flat_map(|it| it.deliveries.iter().flatten());
    let is_held = |it: &Delivery| it.channel == channel.id && it.due.is_overheld(now);
    channel.sending.is_none() && deliveries.any(is_held)
}

fn is_sent_now(channel: &Channel) -> bool {
    let sending = channel.sending.as_ref();
    sending.is_some_and(|sending| sending.step == SendingStep::Now)
}

/// A retry whose time is far away belongs to a clock that was set back.
fn retry_at(at: Timestamp, now: Timestamp) -> Timestamp {
    if at - now > LONGEST_RETRY { now } else { at }
}

/// When the next message of a channel may begin, if its first delivery is due at `first`.
fn begin_at(channel: &Channel, first: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let is_gone = channel
        .failing
        .as_ref()
        .is_some_and(|failing| failing.is_gone);
    let at = channel.free_at(now).map_or(first, |free| free.max(first));
    (!is_gone).then_some(at)
}

impl Command for PlanDeliveries {
    /// The channels whose message is to be sent.
    type Answer = Vec<Arc<Channel>>;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Vec<Arc<Channel>>>, Refusal> {
        let mut draft = Draft::new(world, moment);
        if self.at_start {
            let sent = world.channels().filter(|channel| is_sent_now(channel));
            for channel in sent.take(DELIVERY_CHANGES) {
                draft.interrupt(channel);
            }
            return Ok(Decision {
                changes: draft.changes(),
                answer: Vec::new(),
            });
        }
        let unplanned: Vec<_> = world
            .unplanned()
            .take(DELIVERY_CHANGES + 1)
            .cloned()
            .collect();
        for outgoing in &unplanned {
            draft.plan(outgoing);
            if draft.is_full() {
                break;
            }
        }
        for (channel, outgoing) in world.orphaned() {
            if draft.is_full() {
                break;
            }
            draft.edit(
                outgoing.id,
                |delivery| delivery.channel == channel,
                |_| None,
            );
        }
        let mut begun = Vec::new();
        for channel in world.channels() {
            if draft.len() >= DELIVERY_CHANGES + MESSAGES_BEGUN {
                break;
            }
            if is_overheld(world, channel, moment.now) {
                draft.release(channel.id);
                continue;
            }
            begun.extend(draft.serve(channel, moment.entropy));
        }
        Ok(Decision {
            changes: draft.changes(),
            answer: begun,
        })
    }
}

/// Record the result of an attempt.
#[derive(Debug, Clone)]
pub struct EndAttempt {
    pub record: DeliveryRecord,
    /// For a failed attempt: how much later the receiver wants the next one.
    pub after: Option<TimeDelta>,
    /// The receiver said that it is gone for ever.
    pub is_gone: bool,
    /// A random number below 1 that spreads retries.
    pub spread: f64,
}

impl Command for EndAttempt {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut record = self.record;
        let known = world.channel(record.channel);
        let sending = known.and_then(|channel| channel.sending.as_ref());
        let (Some(channel), Some(sending)) = (known, sending) else {
            return Ok(Decision::unchanged(()));
        };
        if sending.message != record.message || sending.step != SendingStep::Now {
            return Ok(Decision::unchanged(()));
        }
        let mut channel = Channel::clone(channel);
        let mut sending = sending.clone();
        if let SendResult::Retry { reason, .. } = &record.result {
            let reason = reason.clone();
            record.result = match retry_after(sending.attempt, self.after, self.spread) {
                Some(after) => SendResult::Retry {
                    reason,
                    at: moment.now + after,
                },
                None => SendResult::Failed { reason },
            };
        }
        let failure = |reason: &String, channel: &Channel| ChannelFailure {
            since: channel.failing.as_ref().map_or(moment.now, |it| it.since),
            reason: reason.clone(),
            is_gone: self.is_gone,
        };
        match &record.result {
            SendResult::Delivered { .. } => {
                channel.failing = None;
                sending.step = SendingStep::Over { delivered: true };
            }
            SendResult::Retry { reason, at } => {
                if sending.attempt >= CHANNEL_FAILS_AFTER {
                    channel.failing = Some(failure(reason, &channel));
                }
                sending.step = SendingStep::RetryAt { at: *at };
            }
            SendResult::Failed { reason } => {
                channel.failing = Some(failure(reason, &channel));
                sending.step = SendingStep::Over { delivered: false };
            }
            SendResult::Suppressed { .. } => {
                sending.step = SendingStep::Over { delivered: false };
            }
        }
        if !matches!(record.result, SendResult::Suppressed { .. }) {
            channel.note_sent(moment.now.max(sending.at));
        }
        channel.sending = Some(sending);
        Ok(Decision::of([
            Change::Channel(Arc::new(channel)),
            Change::Delivery(Arc::new(record)),
        ]))
    }
}

/// How long a failed message waits; none after the last attempt. A receiver may ask for more, up to an hour.
fn retry_after(attempt: u32, asked: Option<TimeDelta>, spread: f64) -> Option<TimeDelta> {
    let index = usize::try_from(attempt).ok()?.checked_sub(1)?;
    let seconds = DELIVERY_RETRIES.get(index).copied().or_else(|| {
        // Then each hour, for a day.
        (index < DELIVERY_RETRIES.len() + 23).then_some(3600)
    })?;
    let factor = 0.8 + 0.4 * spread.clamp(0.0, 1.0);
    let own = TimeDelta::milliseconds((seconds as f64 * 1000.0 * factor) as i64);
    Some(asked.map_or(own, |asked| own.max(asked.min(RETRY_AFTER))))
}

/// The changes of a plan, over the records of the world.
struct Draft<'w> {
    world: &'w World,
    now: Timestamp,
    order: Order,
    outgoing: BTreeMap<OutgoingId, Outgoing>,
    channels: Vec<Channel>,
    conditions: BTreeMap<ConditionId, Condition>,
}

impl<'w> Draft<'w> {
    fn new(world: &'w World, moment: &Moment<'_>) -> Self {
        Self {
            world,
            now: moment.now,
            order: moment.order,
            outgoing: BTreeMap::new(),
            channels: Vec::new(),
            conditions: BTreeMap::new(),
        }
    }

    fn len(&self) -> usize {
        self.outgoing.len() + self.channels.len() + self.conditions.len()
    }

    fn is_full(&self) -> bool {
        self.len() >= DELIVERY_CHANGES
    }

    fn changes(self) -> Vec<Change> {
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

    fn record(&self, id: OutgoingId) -> Option<&Outgoing> {
        let drafted = self.outgoing.get(&id);
        drafted.or_else(|| self.world.outgoing(id).map(|outgoing| &**outgoing))
    }

    /// Changes the deliveries of a record that `which` names; none removes a delivery.
    fn edit(
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

    fn plan(&mut self, outgoing: &Outgoing) {
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
                let Some(Route { rule, due }) = planned else {
                    continue;
                };
                let same = deliveries.iter_mut().find(|delivery| {
                    delivery.channel == channel.id && delivery.rule == rule && delivery.due == due
                });
                match same {
                    Some(same) => same.events.push(event.id),
                    None => deliveries.push(Delivery {
                        channel: channel.id,
                        rule,
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
        let rule = by.rule();
        Route {
            rule: rule.map(|rule| rule.name.clone()),
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
        let quiet = rule.and_then(|rule| rule.quiet_until(at));
        match quiet {
            Some(at) => Due::At {
                at,
                held: Some(Held::QuietHours),
            },
            None => Due::At { at, held },
        }
    }

    /// The end of a condition goes where its begin went, and never before it.
    fn after_opening(
        &mut self,
        event: &Event,
        condition: ConditionId,
        was_reported: bool,
        channel: &Channel,
    ) -> Option<Route> {
        match self.pending(condition, channel.id) {
            Some((id, opening)) if opening.due.is_repeat() => {
                // It was reported; nothing is repeated any more.
                let repeats = |delivery: &Delivery| {
                    delivery.channel == channel.id && delivery.due.is_repeat()
                };
                self.edit(id, repeats, |_| None);
            }
            Some((_, opening)) => {
                let due = if opening.is_in(channel) {
                    Due::AfterOpening
                } else {
                    opening.due
                };
                return Some(Route {
                    rule: opening.rule,
                    due,
                });
            }
            None if was_reported => {}
            None => return None,
        }
        let by = asked(self.world, event.project, event, channel);
        Some(self.route(by.unwrap_or(Asked::Usual), channel))
    }

    /// The delivery of a condition's begin that is not over.
    fn pending(
        &self,
        condition: ConditionId,
        channel: ChannelId,
    ) -> Option<(OutgoingId, Delivery)> {
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
                delivery.channel == channel && delivery.events.contains(&event.id)
            })?;
            Some((outgoing.id, delivery.clone()))
        })
    }

    /// Sends now what a clock that was set back holds.
    fn release(&mut self, channel: ChannelId) {
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
    fn interrupt(&mut self, channel: &Channel) {
        let mut channel = channel.clone();
        if let Some(sending) = &mut channel.sending {
            sending.is_repeated = true;
            sending.step = SendingStep::RetryAt { at: self.now };
        }
        self.channels.push(channel);
    }

    /// Ends the message of a channel that is over, or begins the next attempt or message, and returns it.
    fn serve(&mut self, channel: &Channel, entropy: &mut dyn Entropy) -> Option<Arc<Channel>> {
        let sending = match channel.sending.clone() {
            None => {
                let begin = begin_at(channel, self.first_due(channel)?, self.now)?;
                let sending = Sending {
                    message: MessageId::random(entropy),
                    at: self.now,
                    planned: self.order,
                    attempt: 1,
                    is_repeated: self.is_restored(channel),
                    step: SendingStep::Now,
                };
                (begin <= self.now).then_some(Some(sending))?
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
        drafted
            .into_iter()
            .chain(self.world.first_due(channel.id))
            .min()
    }

    /// Removes the deliveries of a message that is over. False if not all fit into the commit.
    fn settle(&mut self, channel: &Channel, delivered: bool) -> bool {
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
            let open = events.iter().any(|event| {
                event.what.condition().is_some_and(|id| {
                    let condition = world.condition(id);
                    condition.is_some_and(|condition| condition.acknowledged.is_none())
                })
            });
            let (now, order) = (self.now, self.order);
            let project = record.project;
            self.edit(
                id,
                |delivery| delivery.is_in(channel),
                |delivery| {
                    let name = delivery.rule.as_ref()?;
                    let (_, rule) =
                        rules_for(world, project).find(|(_, rule)| rule.name == *name)?;
                    let repeat = rule.repeat().filter(|_| open && delivered)?;
                    Some(Delivery {
                        due: Due::At {
                            at: now + repeat,
                            held: Some(Held::Repeat),
                        },
                        planned: order,
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

/// Where and when an event goes.
struct Route {
    rule: Option<NotifyName>,
    due: Due,
}

/// Who asked for an event.
enum Asked<'w> {
    Rule(&'w Rule),
    /// No rule names the channel: it gets what most people want.
    Usual,
}

impl<'w> Asked<'w> {
    const fn rule(&self) -> Option<&'w Rule> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Usual => None,
        }
    }
}

/// The rules that events of a project, or of the instance, are checked against. Each with its owner.
fn rules_for(
    world: &World,
    project: Option<ProjectId>,
) -> impl Iterator<Item = (Option<ProjectId>, &Rule)> {
    let own = project.is_some().then(|| world.rules_of(project));
    let own = own.into_iter().flatten().map(move |rule| (project, rule));
    own.chain(world.rules_of(None).map(|rule| (None, rule)))
}

/// The first rule that sends the event to the channel.
fn asked<'w>(
    world: &'w World,
    project: Option<ProjectId>,
    event: &Event,
    channel: &Channel,
) -> Option<Asked<'w>> {
    // A channel does not report that it fails.
    let is_own = event.subject
        == Subject::Channel {
            channel: channel.id,
        };
    let is_gone = channel.failing.as_ref().is_some_and(|it| it.is_gone);
    if is_own || is_gone {
        return None;
    }
    let mut is_named = false;
    for (owner, rule) in rules_for(world, project) {
        let meant = world.channel_named(owner, &rule.channel);
        if meant.is_none_or(|meant| meant.id != channel.id) {
            continue;
        }
        is_named = true;
        if takes(world, rule, event) {
            return Some(Asked::Rule(rule));
        }
    }
    let is_usual = names(event).any(|name| DEFAULT_EVENTS.contains(&name));
    let is_first = !matches!(event.what, What::FailedAgain { .. });
    (!is_named && is_usual && is_first).then_some(Asked::Usual)
}

/// What rules call the event.
fn names(event: &Event) -> impl Iterator<Item = EventName> {
    let is_artifact = matches!(event.what, What::Artifact { .. });
    let new_lines = is_artifact.then_some(EventName::NewLines);
    std::iter::once(event.what.name()).chain(new_lines)
}

/// Whether the rule asks for the event.
pub(super) fn takes(world: &World, rule: &Rule, event: &Event) -> bool {
    let (workflow, scan) = world.names_of(&event.subject);
    names(event).any(|name| rule.takes(name, workflow.as_deref(), scan)) && is_due(rule, event)
}

/// Whether a scan has failed as often as the rule says.
fn is_due(rule: &Rule, event: &Event) -> bool {
    match &event.what {
        What::Opened { problem, .. } => problem.failures().is_none_or(|it| it >= rule.after()),
        What::FailedAgain { problem, .. } => problem.failures() == Some(rule.after()),
        What::Closed { .. } | What::SlotMissed | What::WorkflowRemoved | What::Artifact { .. } => {
            true
        }
    }
}
