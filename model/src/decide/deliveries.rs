//! Plans what is sent to which channel and when, and records the result of each attempt.

mod draft;
mod settle;

use std::sync::Arc;

use chrono::TimeDelta;
use workflow::notify::{DEFAULT_EVENTS, EventName, NotifyName, Rule};

use self::draft::Draft;
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::channel::{Channel, ChannelFailure, SendingStep};
use crate::condition::Subject;
use crate::event::{Event, What};
use crate::limits::{
    CHANNEL_FAILS_AFTER, DELIVERY_CHANGES, DELIVERY_RETRIES, LONGEST_RETRY, MESSAGES_BEGUN,
    RETRY_AFTER,
};
use crate::moment::Moment;
use crate::outbox::{Delivery, DeliveryRecord, Due, SendResult};
use crate::world::World;
use crate::{ProjectId, Timestamp};

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
            return busy(world).any(|it| is_sent_now(it)).then_some(now);
        }
        if world.unplanned().next().is_some() || world.orphaned().next().is_some() {
            return Some(now);
        }
        let at = |channel: &Arc<Channel>| match channel.sending.as_ref().map(|it| it.step) {
            Some(SendingStep::Over { .. }) => Some(now),
            Some(SendingStep::Now) => None,
            Some(SendingStep::RetryAt { at }) => Some(retry_at(at, now)),
            None if is_overheld(world, channel, now) => Some(now),
            None => begin_at(channel, world.first_due(channel.id, |_| false)?, now),
        };
        busy(world).filter_map(at).min()
    }
}

fn busy(world: &World) -> impl Iterator<Item = &Arc<Channel>> {
    world.busy_channels().filter_map(|id| world.channel(id))
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
    let at = channel.free_at(now).map_or(first, |free| free.max(first));
    (!channel.is_gone()).then_some(at)
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
            let sent = busy(world).filter(|channel| is_sent_now(channel));
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
        for channel in draft.busy_channels() {
            if draft.len() >= DELIVERY_CHANGES + MESSAGES_BEGUN {
                break;
            }
            if is_overheld(world, &channel, moment.now) {
                draft.release(channel.id);
                continue;
            }
            begun.extend(draft.serve(&channel, moment.entropy));
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
        let Some(channel) = world.channel(record.channel) else {
            // It was deleted meanwhile, which ended what waited for it. The log says how this attempt ended.
            let is_over = !matches!(record.result, SendResult::Retry { .. });
            let line = is_over.then(|| Change::Delivery(Arc::new(record)));
            return Ok(Decision::of(line));
        };
        let Some(sending) = &channel.sending else {
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
                channel.delivered = Some(moment.now);
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
            channel.note_sent(moment.now);
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

/// Where and when an event goes.
struct Route {
    rule: Option<NotifyName>,
    is_rule_of_instance: bool,
    due: Due,
}

/// Who asked for an event.
pub(super) enum Asked<'w> {
    Rule {
        rule: &'w Rule,
        is_of_instance: bool,
    },
    /// No rule names the channel: it gets what most people want.
    Usual,
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
pub(super) fn asked<'w>(
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
    if is_own || channel.is_gone() {
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
            let is_of_instance = owner.is_none();
            return Some(Asked::Rule {
                rule,
                is_of_instance,
            });
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
    names(event).any(|name| rule.takes(name, workflow.as_deref(), scan))
        && rule.takes_callback(event.what.callback())
        && is_due(rule, event)
}

/// Whether a scan has failed as often as the rule says.
fn is_due(rule: &Rule, event: &Event) -> bool {
    match &event.what {
        What::Opened { problem, .. } => problem.failures().is_none_or(|it| it >= rule.after()),
        What::FailedAgain { problem, .. } => problem.failures() == Some(rule.after()),
        What::Closed { .. }
        | What::SlotMissed
        | What::WorkflowRemoved
        | What::Artifact { .. }
        | What::Interaction { .. } => true,
    }
}
