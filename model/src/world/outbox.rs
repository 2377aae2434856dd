//! The channels, and what is not sent yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use workflow::notify::{NotifyName, Rule};

use super::World;
use crate::channel::{Channel, SendingStep};
use crate::condition::Subject;
use crate::limits::OUTBOX;
use crate::outbox::{Delivery, Due, Held, Outgoing, Wait, Waiting};
use crate::{ChannelId, ConditionId, Order, OutgoingId, ProjectId, Timestamp};

#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    channels: BTreeMap<ChannelId, Arc<Channel>>,
    channels_of: HashMap<Option<ProjectId>, BTreeMap<NotifyName, ChannelId>>,
    /// The channels with a message on its way.
    sending: BTreeSet<ChannelId>,
    by_id: HashMap<OutgoingId, Arc<Outgoing>>,
    /// Records whose deliveries are not planned yet, oldest first.
    unplanned: BTreeSet<(Order, OutgoingId)>,
    /// The planned records of each channel, by the time when they are due.
    due: BTreeMap<ChannelId, BTreeSet<(Timestamp, OutgoingId)>>,
    of_condition: HashMap<ConditionId, BTreeSet<OutgoingId>>,
    of_project: HashMap<Option<ProjectId>, BTreeSet<OutgoingId>>,
}

/// The time under which a delivery that waits for another message is indexed.
fn time(delivery: &Delivery) -> Timestamp {
    delivery.due.at().unwrap_or(Timestamp::MAX_UTC)
}

impl Outbox {
    pub(super) fn put_channel(&mut self, channel: &Arc<Channel>) {
        self.channels_of
            .entry(channel.project)
            .or_default()
            .insert(channel.name.clone(), channel.id);
        if channel.sending.is_some() {
            self.sending.insert(channel.id);
        } else {
            self.sending.remove(&channel.id);
        }
        self.channels.insert(channel.id, channel.clone());
    }

    pub(super) fn remove_channel(&mut self, id: ChannelId) {
        self.sending.remove(&id);
        if let Some(channel) = self.channels.remove(&id)
            && let Some(names) = self.channels_of.get_mut(&channel.project)
        {
            names.remove(&channel.name);
        }
    }

    pub(super) fn put(&mut self, outgoing: &Arc<Outgoing>) {
        self.remove(outgoing.id);
        match &outgoing.deliveries {
            None => {
                self.unplanned.insert((outgoing.order, outgoing.id));
            }
            Some(deliveries) => {
                for delivery in deliveries {
                    let due = self.due.entry(delivery.channel).or_default();
                    due.insert((time(delivery), outgoing.id));
                }
            }
        }
        for event in &outgoing.events {
            if let Some(condition) = event.what.condition() {
                let ids = self.of_condition.entry(condition).or_default();
                ids.insert(outgoing.id);
            }
        }
        self.of_project
            .entry(outgoing.project)
            .or_default()
            .insert(outgoing.id);
        self.by_id.insert(outgoing.id, outgoing.clone());
    }

    pub(super) fn remove(&mut self, id: OutgoingId) {
        let Some(outgoing) = self.by_id.remove(&id) else {
            return;
        };
        self.unplanned.remove(&(outgoing.order, id));
        for delivery in outgoing.deliveries.iter().flatten() {
            if let Some(due) = self.due.get_mut(&delivery.channel) {
                due.remove(&(time(delivery), id));
                if due.is_empty() {
                    self.due.remove(&delivery.channel);
                }
            }
        }
        for event in &outgoing.events {
            if let Some(condition) = event.what.condition()
                && let Some(ids) = self.of_condition.get_mut(&condition)
            {
                ids.remove(&id);
                if ids.is_empty() {
                    self.of_condition.remove(&condition);
                }
            }
        }
        if let Some(ids) = self.of_project.get_mut(&outgoing.project) {
            ids.remove(&id);
            if ids.is_empty() {
                self.of_project.remove(&outgoing.project);
            }
        }
    }
}

impl World {
    pub fn channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.outbox.channels.values()
    }

    /// The channels that send, or have something to send.
    pub(crate) fn busy_channels(&self) -> impl Iterator<Item = ChannelId> {
        let due = self.outbox.due.keys();
        let sending = self.outbox.sending.iter();
        let others = sending.filter(|id| !self.outbox.due.contains_key(id));
        due.chain(others).copied()
    }

    pub fn channel(&self, id: ChannelId) -> Option<&Arc<Channel>> {
        self.outbox.channels.get(&id)
    }

    /// The project's own channels, or the instance's, by name.
    pub fn channels_of(&self, project: Option<ProjectId>) -> impl Iterator<Item = &Arc<Channel>> {
        let names = self.outbox.channels_of.get(&project);
        let ids = names.into_iter().flat_map(BTreeMap::values);
        ids.filter_map(|id| self.channel(*id))
    }

    /// The channel that a rule of the project, or of the instance, means: its own, or one that the instance offers to it.
    pub fn channel_named(
        &self,
        project: Option<ProjectId>,
        name: &NotifyName,
    ) -> Option<&Arc<Channel>> {
        let offered = || {
            let of_instance = self.channel_of(None, name);
            of_instance.filter(|channel| channel.serves(project))
        };
        self.channel_of(project, name).or_else(offered)
    }

    /// The channel of exactly this owner.
    pub fn channel_of(
        &self,
        project: Option<ProjectId>,
        name: &NotifyName,
    ) -> Option<&Arc<Channel>> {
        let id = self.outbox.channels_of.get(&project)?.get(name)?;
        self.channel(*id)
    }

    /// The rule that asked for a delivery of events of the project, or of the instance, if it still names the channel.
    pub fn rule_of(&self, project: Option<ProjectId>, delivery: &Delivery) -> Option<&Rule> {
        let name = delivery.rule.as_ref()?;
        let channel = self.channel(delivery.channel)?;
        let owner = project.filter(|_| !delivery.is_rule_of_instance);
        let mut rules = self.rules_of(owner);
        rules.find(|rule| rule.name == *name && rule.channel == channel.name)
    }

    /// The channels that events of the project, or of the instance, can go to.
    pub fn channels_for(&self, project: Option<ProjectId>) -> impl Iterator<Item = &Arc<Channel>> {
        let own = project.is_some().then(|| self.channels_of(project));
        let offered = self.channels_of(None);
        let offered = offered.filter(move |channel| channel.serves(project));
        own.into_iter().flatten().chain(offered)
    }

    pub fn outgoing(&self, id: OutgoingId) -> Option<&Arc<Outgoing>> {
        self.outbox.by_id.get(&id)
    }

    pub fn outbox(&self) -> impl ExactSizeIterator<Item = &Arc<Outgoing>> {
        self.outbox.by_id.values()
    }

    /// A record to which the outbox adds the count of further events, if it has no room for more of the project.
    pub(crate) fn full_outbox(&self, project: Option<ProjectId>) -> Option<&Arc<Outgoing>> {
        let ids = self.outbox.of_project.get(&project)?;
        let last = (ids.len() >= OUTBOX).then(|| ids.last())??;
        self.outgoing(*last)
    }

    /// The records that no rule was asked about, oldest first.
    pub(crate) fn unplanned(&self) -> impl Iterator<Item = &Arc<Outgoing>> {
        let ids = self.outbox.unplanned.iter();
        ids.filter_map(|(_, id)| self.outgoing(*id))
    }

    /// The records with deliveries of the channel that are due by `now`, earliest first.
    pub fn due_for(
        &self,
        channel: ChannelId,
        now: Timestamp,
    ) -> impl Iterator<Item = &Arc<Outgoing>> {
        let due = self.outbox.due.get(&channel).into_iter().flatten();
        due.take_while(move |(at, _)| *at <= now)
            .filter_map(|(_, id)| self.outgoing(*id))
    }

    /// The deliveries of a channel that are not over, without those that are sent again while a condition is open.
    pub(crate) fn held(&self, channel: ChannelId) -> impl Iterator<Item = &Delivery> {
        let known = self.channel(channel);
        let over = known.filter(|it| {
            let sending = it.sending.as_ref();
            sending.is_some_and(|it| matches!(it.step, SendingStep::Over { .. }))
        });
        let ids = self.outbox.due.get(&channel).into_iter().flatten();
        let ids: BTreeSet<OutgoingId> = ids.map(|(_, id)| *id).collect();
        let records = ids.into_iter().filter_map(|id| self.outgoing(id));
        let deliveries = records.flat_map(|it| it.deliveries.iter().flatten());
        deliveries.filter(move |it| {
            it.channel == channel
                && !it.due.is_repeat()
                && !over.is_some_and(|channel| it.is_in(channel))
        })
    }

    /// What is not sent to the channel yet. None if nothing waits.
    pub fn waiting(&self, channel: &Channel, now: Timestamp) -> Option<Waiting> {
        let held = || self.held(channel.id);
        let events = held().map(|it| it.events.len() as u64).sum();
        let step = channel.sending.as_ref().map(|it| it.step);
        let (why, until) = match step {
            _ if channel.is_gone() => (Wait::Gone, None),
            Some(SendingStep::Now) => (Wait::Sending, None),
            Some(SendingStep::RetryAt { at }) => (Wait::Retry, Some(at)),
            Some(SendingStep::Over { .. }) | None => {
                let first = held().filter_map(|it| match it.due {
                    Due::At { at, held } => Some((at, held)),
                    Due::AfterOpening => None,
                });
                let (at, held) = first.min_by_key(|(at, _)| *at)?;
                match held {
                    Some(Held::Group) => (Wait::Group, Some(at)),
                    Some(Held::QuietHours) => (Wait::QuietHours, Some(at)),
                    Some(Held::Repeat) | None => (Wait::Pace, channel.free_at(now)),
                }
            }
        };
        (events > 0).then_some(Waiting { events, until, why })
    }

    /// When the first delivery of the channel is due, without those of some records.
    pub(crate) fn first_due(
        &self,
        channel: ChannelId,
        is_left_out: impl Fn(&OutgoingId) -> bool,
    ) -> Option<Timestamp> {
        let mut due = self.outbox.due.get(&channel)?.iter();
        let (at, _) = due.find(|(_, id)| !is_left_out(id))?;
        (*at < Timestamp::MAX_UTC).then_some(*at)
    }

    /// The records of channels that no longer exist.
    pub(crate) fn orphaned(&self) -> impl Iterator<Item = (ChannelId, &Arc<Outgoing>)> {
        let due = self.outbox.due.iter();
        due.filter(|(channel, _)| self.channel(**channel).is_none())
            .flat_map(|(channel, ids)| ids.iter().map(move |(_, id)| (*channel, *id)))
            .filter_map(|(channel, id)| Some((channel, self.outgoing(id)?)))
    }

    /// The records with events about a condition.
    pub(crate) fn outgoing_about(
        &self,
        condition: ConditionId,
    ) -> impl Iterator<Item = &Arc<Outgoing>> {
        let ids = self.outbox.of_condition.get(&condition);
        ids.into_iter()
            .flatten()
            .filter_map(|id| self.outgoing(*id))
    }

    /// What people call a subject.
    pub fn label_of(&self, subject: &Subject) -> String {
        let project = |id| {
            let source = self.source_of(id);
            source.map_or_else(String::new, |source| format!("project {}", source.name))
        };
        match subject {
            Subject::Scan { .. } | Subject::Workflow { .. } => match self.names_of(subject) {
                (Some(workflow), Some(scan)) => format!("{workflow} {scan}"),
                (workflow, _) => workflow.unwrap_or_default(),
            },
            Subject::Source { source } => format!("source {source}"),
            Subject::Project { project: id } => project(*id),
            Subject::Runner { runner } => {
                let runner = self.runner(*runner);
                runner.map_or_else(String::new, |it| format!("runner {}", it.name))
            }
            Subject::Token { token } => {
                let token = self.token(*token);
                token.map_or_else(String::new, |it| format!("token {}", it.name))
            }
            Subject::Channel { channel } => {
                let channel = self.channel(*channel);
                channel.map_or_else(String::new, |it| format!("channel {}", it.name))
            }
            Subject::Instance => "this daemon".to_owned(),
        }
    }

    /// Whether a rule reports a failing scan at this number of failures.
    pub(crate) fn waits_for_failure(&self, project: Option<ProjectId>, failures: u64) -> bool {
        let mut rules = self.rules_of(project).chain(self.rules_of(None));
        rules.any(|rule| rule.after() == failures)
    }

    /// The workflow (`SOURCE/NAME`) and the scan of a subject, as rules name them.
    pub fn names_of<'s>(&'s self, subject: &'s Subject) -> (Option<String>, Option<&'s str>) {
        let name = |id| {
            let record = self.workflow_record(id)?;
            Some(format!("{}/{}", record.source, record.name))
        };
        match subject {
            Subject::Scan { workflow, scan } => (name(*workflow), Some(scan.as_str())),
            Subject::Workflow { workflow } => (name(*workflow), None),
            Subject::Source { .. }
            | Subject::Project { .. }
            | Subject::Runner { .. }
            | Subject::Token { .. }
            | Subject::Channel { .. }
            | Subject::Instance => (None, None),
        }
    }
}
