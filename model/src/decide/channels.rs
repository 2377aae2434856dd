//! Sets and deletes channels, and sends a message again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::hex;
use workflow::notify::NotifyName;

use super::values::{Precondition, edited, project_name};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::channel::{
    Channel, Email, Offered, SIGNING_KEY_PREFIX, Security, Sending, SendingStep, Target, place,
    signing_keys,
};
use crate::event::Event;
use crate::limits::{
    CHANNEL_CA_BYTES, CHANNEL_TEXT_BYTES, CHANNELS, DELIVERY_NAMED, RECIPIENTS, SIGNING_KEY_BYTES,
};
use crate::moment::Moment;
use crate::outbox::{Delivery, DeliveryRecord, Due, Outgoing, SendResult, Suppressed};
use crate::sealing::{Sealed, SealingKey, SecretValue};
use crate::sealing_keys::{KeyState, SealingKeys};
use crate::world::World;
use crate::{Actor, ChannelId, JobId, MessageId, OutgoingId, ProjectId, Timestamp};

/// Create a channel, or change it. A channel with another target loses its secret.
#[derive(Debug, Clone)]
pub struct SetChannel {
    /// None for a channel of the instance.
    pub project: Option<ProjectId>,
    pub name: NotifyName,
    pub offered: Offered,
    pub target: Target,
    /// None keeps the secret.
    pub secret: Option<SecretValue>,
    /// None if the daemon has no key for secrets.
    pub key: Option<SealingKey>,
    pub actor: Actor,
    pub expects: Precondition,
}

/// A channel that was set.
#[derive(Debug, Clone)]
pub struct SetAnswer {
    pub channel: Arc<Channel>,
    /// The key that was made for a new webhook.
    pub new_key: Option<SecretValue>,
}

impl Command for SetChannel {
    type Answer = SetAnswer;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<SetAnswer>, Refusal> {
        if let Some(project) = self.project {
            project_name(world, project)?;
        }
        check(&self.target)?;
        let before = world.channel_of(self.project, &self.name);
        let edit = before.map(|channel| &channel.edit);
        self.expects.check("channel", self.name.as_str(), edit)?;
        if before.is_none() && world.channels_of(self.project).count() >= CHANNELS {
            let problem = format!("there are {CHANNELS} channels already: delete one first");
            return Err(Refusal::invalid("name", problem));
        }
        let id = before.map_or_else(|| ChannelId::random(moment.entropy), |channel| channel.id);
        let same = before.filter(|channel| channel.target == self.target);
        let kept = same.and_then(|channel| channel.secret.clone());
        let is_hook = matches!(self.target, Target::Webhook { .. });
        let new_key = (is_hook && self.secret.is_none() && kept.is_none() && before.is_none())
            .then(|| signing_key(moment));
        let value = self.secret.as_ref().or(new_key.as_ref());
        let has_secret = value.is_some() || kept.is_some();
        check_secret(&self.target, has_secret, before.is_some())?;
        let secret = match value {
            Some(value) => {
                check_value(&self.target, value)?;
                let key = self.key.as_ref().ok_or(Refusal::NoSecretKey)?;
                Some(seal(key, id, value, moment)?)
            }
            None => kept,
        };
        let mut version = before.map_or(0, |channel| channel.edit.version);
        let channel = Arc::new(Channel {
            id,
            project: self.project,
            name: self.name,
            offered: self.offered,
            target: self.target,
            secret,
            edit: edited(&mut version, self.actor, moment),
            sent: before.map_or_else(Vec::new, |channel| channel.sent.clone()),
            delivered: before.and_then(|channel| channel.delivered),
            sending: before.and_then(|channel| channel.sending.clone()),
            restored: before.and_then(|channel| channel.restored),
            failing: None,
        });
        Ok(Decision {
            changes: vec![Change::Channel(channel.clone())],
            answer: SetAnswer { channel, new_key },
        })
    }
}

/// A key as Standard Webhooks writes it. Hexadecimal digits are also base64.
fn signing_key(moment: &mut Moment<'_>) -> SecretValue {
    let mut bytes = [0; SIGNING_KEY_BYTES];
    moment.entropy.fill(&mut bytes);
    SecretValue::new(format!("{SIGNING_KEY_PREFIX}{}", hex(&bytes)))
}

/// The text of a refusal never quotes the secret.
fn check_value(target: &Target, value: &SecretValue) -> Result<(), Refusal> {
    let text = value.reveal();
    if text.is_empty() || text.chars().count() > CHANNEL_TEXT_BYTES || text.contains('\n') {
        let problem = format!("must be one line of 1 to {CHANNEL_TEXT_BYTES} characters");
        return Err(Refusal::invalid("secret", problem));
    }
    if matches!(target, Target::Webhook { .. }) && signing_keys(value).is_none() {
        let problem = format!(
            "must be a signing key, `{SIGNING_KEY_PREFIX}` and base64, or two with a space between them"
        );
        return Err(Refusal::invalid("secret", problem));
    }
    Ok(())
}

fn seal(
    key: &SealingKey,
    id: ChannelId,
    value: &SecretValue,
    moment: &mut Moment<'_>,
) -> Result<Sealed, Refusal> {
    Sealed::seal(key, place(id), value, moment.entropy)
        .map_err(|error| Refusal::invalid("secret", error.to_string()))
}

/// Whether the target has the secret that it needs, and no other.
fn check_secret(target: &Target, has_secret: bool, is_edit: bool) -> Result<(), Refusal> {
    let needed = match target {
        Target::Email(email) => email
            .username
            .as_ref()
            .map(|_| "the password of the account"),
        Target::Webhook { .. } => Some("a signing key"),
        Target::Slack | Target::Discord => Some("the address of the webhook"),
        Target::Ntfy { .. } => return Ok(()),
        Target::Command { .. } => None,
    };
    let problem = match (needed, has_secret) {
        (Some(needed), false) if is_edit => {
            format!("is missing: a channel with another target needs {needed} again")
        }
        (Some(needed), false) => format!("is missing: the channel needs {needed}"),
        (None, true) => "has no effect for this kind of channel: leave it out".to_owned(),
        (Some(_), true) | (None, false) => return Ok(()),
    };
    Err(Refusal::invalid("secret", problem))
}

/// Whether the parts of the target have their bounds. Whether a message can be sent there, the sender knows.
fn check(target: &Target) -> Result<(), Refusal> {
    let short = |field, text: &str| {
        let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
        (is_plain && text.len() <= CHANNEL_TEXT_BYTES)
            .then_some(())
            .ok_or_else(|| {
                let problem = format!("must be one line of 1 to {CHANNEL_TEXT_BYTES} bytes");
                Refusal::invalid(field, problem)
            })
    };
    let authority = |ca: &Option<String>| match ca {
        Some(pem) if pem.len() > CHANNEL_CA_BYTES || !pem.contains("BEGIN CERTIFICATE") => {
            let problem =
                format!("must be a certificate as PEM of at most {CHANNEL_CA_BYTES} bytes");
            Err(Refusal::invalid("ca", problem))
        }
        Some(_) | None => Ok(()),
    };
    match target {
        Target::Email(Email {
            host,
            port,
            security,
            from,
            to,
            username,
            ca,
        }) => {
            short("host", host)?;
            if *port == 0 {
                return Err(Refusal::invalid("port", "must be from 1 to 65535"));
            }
            if to.is_empty() || to.len() > RECIPIENTS {
                let problem = format!("must be 1 to {RECIPIENTS} addresses");
                return Err(Refusal::invalid("to", problem));
            }
            short("from", from)?;
            to.iter().try_for_each(|to| short("to", to))?;
            if let Some(username) = username {
                short("username", username)?;
                if *security == Security::None {
                    let problem = "a password needs `starttls` or `tls`";
                    return Err(Refusal::invalid("security", problem));
                }
            }
            authority(ca)
        }
        Target::Webhook { url: to, ca } => {
            short("url", to)?;
            authority(ca)
        }
        Target::Slack | Target::Discord => Ok(()),
        Target::Ntfy { server, topic, ca } => {
            short("server", server)?;
            let is_topic = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if topic.is_empty() || topic.len() > 64 || !topic.chars().all(is_topic) {
                let problem = "must be 1 to 64 letters, digits, `-` or `_`";
                return Err(Refusal::invalid("topic", problem));
            }
            authority(ca)
        }
        Target::Command { command } => short("command", command),
    }
}

/// Delete a channel. What waits for it is not sent, and the delivery log says so.
#[derive(Debug, Clone)]
pub struct DeleteChannel {
    pub project: Option<ProjectId>,
    pub name: NotifyName,
    pub expects: Precondition,
}

impl Command for DeleteChannel {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let channel = find(world, self.project, self.name)?;
        self.expects
            .check("channel", channel.name.as_str(), Some(&channel.edit))?;
        let removed = Change::ChannelRemoved(channel.id);
        let unsent = unsent(world, channel, moment).map(|it| Change::Delivery(Arc::new(it)));
        Ok(Decision::of([removed].into_iter().chain(unsent)))
    }
}

/// The line of the delivery log about what a channel that is deleted does not send. None if nothing waits.
fn unsent(world: &World, channel: &Channel, moment: &mut Moment<'_>) -> Option<DeliveryRecord> {
    let is_over = |sending: &Sending| matches!(sending.step, SendingStep::Over { .. });
    let (over, sending) = match &channel.sending {
        Some(sending) if is_over(sending) => (true, None),
        sending => (false, sending.as_ref()),
    };
    let waits = |it: &&Delivery| it.channel == channel.id && !(over && it.is_in(channel));
    // A record is found once for each of its deliveries.
    let records = world.due_for(channel.id, Timestamp::MAX_UTC);
    let records: BTreeMap<_, _> = records.map(|it| ((it.order, it.id), it)).collect();
    let (mut events, mut left_out) = (Vec::new(), 0);
    for record in records.values() {
        let deliveries = record.deliveries.iter().flatten().filter(waits);
        let ids: BTreeSet<_> = deliveries.flat_map(|it| &it.events).collect();
        if !ids.is_empty() {
            events.extend(record.events.iter().filter(|it| ids.contains(&it.id)));
            left_out += record.left_out;
        }
    }
    let event_count = events.len() as u64 + left_out;
    let jobs: BTreeSet<JobId> = events.iter().filter_map(|it| it.what.job()).collect();
    (event_count > 0).then(|| DeliveryRecord {
        at: moment.now,
        message: sending.map_or_else(|| MessageId::random(moment.entropy), |it| it.message),
        channel: channel.id,
        channel_name: channel.name.clone(),
        project: channel.project,
        attempt: sending.map_or(1, |it| it.attempt),
        is_repeated: sending.is_some_and(|it| it.is_repeated),
        result: SendResult::Suppressed {
            reason: Suppressed::ChannelDeleted,
        },
        title: format!("Unsent events: {event_count}"),
        events: events.iter().map(|it| it.id).take(DELIVERY_NAMED).collect(),
        event_count,
        jobs: jobs.into_iter().take(DELIVERY_NAMED).collect(),
    })
}

/// Send what waits for a channel now, or a failed message again.
#[derive(Debug, Clone)]
pub struct SendAgain {
    pub project: Option<ProjectId>,
    pub name: NotifyName,
    pub failed: Option<FailedMessage>,
}

/// A message that has failed.
#[derive(Debug, Clone)]
pub struct FailedMessage {
    /// Its newest line in the delivery log.
    pub record: DeliveryRecord,
    /// Those of its events that the line names.
    pub events: Vec<Event>,
}

impl Command for SendAgain {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let known = find(world, self.project, self.name)?;
        let mut channel = Channel::clone(known);
        if let Some(failing) = &mut channel.failing {
            failing.is_gone = false;
        }
        // The plan begins the next attempt, also during quiet hours.
        let step = SendingStep::RetryAt { at: moment.now };
        let planned = moment.order;
        let mut again = None;
        channel.sending = Some(match (self.failed, channel.sending) {
            (Some(failed), Some(sending)) if sending.message == failed.record.message => {
                let problem = "is on its way again already";
                return Err(Refusal::invalid("message", problem));
            }
            (Some(_), Some(_)) => {
                let problem = "must wait: the channel has another message on its way";
                return Err(Refusal::invalid("message", problem));
            }
            (Some(FailedMessage { record, events }), None) => {
                // No other delivery is due so early: the message stays the same.
                let at = Timestamp::UNIX_EPOCH;
                again = Some(Outgoing {
                    id: OutgoingId::random(moment.entropy),
                    order: planned,
                    project: events.first().and_then(|event| event.project),
                    left_out: record.event_count.saturating_sub(events.len() as u64),
                    deliveries: Some(vec![Delivery {
                        channel: channel.id,
                        rule: None,
                        is_rule_of_instance: false,
                        events: events.iter().map(|event| event.id).collect(),
                        due: Due::At { at, held: None },
                        planned,
                    }]),
                    events,
                });
                Sending {
                    message: record.message,
                    at,
                    planned,
                    attempt: record.attempt,
                    is_repeated: true,
                    step,
                }
            }
            (None, Some(sending)) => match sending.step {
                SendingStep::RetryAt { .. } => Sending { step, ..sending },
                SendingStep::Now | SendingStep::Over { .. } => {
                    let problem = "is sending its message now";
                    return Err(Refusal::invalid("channel", problem));
                }
            },
            (None, None) => {
                let Some(last) = world.held(channel.id).filter_map(|it| it.due.at()).max() else {
                    let problem = "has nothing that waits; `everscan notify log` shows the messages that have failed";
                    return Err(Refusal::invalid("channel", problem));
                };
                let mut waiting = world.due_for(channel.id, last);
                let restored = channel.restored;
                Sending {
                    message: MessageId::random(moment.entropy),
                    at: last.max(moment.now),
                    planned,
                    attempt: 0,
                    is_repeated: restored.is_some_and(|it| waiting.any(|out| out.order <= it)),
                    step,
                }
            }
        });
        let again = again.map(|it| Change::Outgoing(Arc::new(it)));
        Ok(Decision::of(
            again
                .into_iter()
                .chain([Change::Channel(Arc::new(channel))]),
        ))
    }
}

/// Mark what waits for a channel as possibly sent: the state is a restored backup.
#[derive(Debug, Clone)]
pub struct NoteRestored {
    pub channel: ChannelId,
}

impl Command for NoteRestored {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let Some(channel) = world.channel(self.channel) else {
            return Ok(Decision::unchanged(()));
        };
        let mut channel = Channel::clone(channel);
        channel.restored = Some(moment.order);
        if let Some(sending) = &mut channel.sending {
            sending.is_repeated = true;
        }
        Ok(Decision::of([Change::Channel(Arc::new(channel))]))
    }
}

/// Seal the secret of a channel with the current key. The answer is false if it is damaged.
#[derive(Debug, Clone)]
pub struct ResealChannel {
    pub channel: ChannelId,
    pub keys: SealingKeys,
}

impl Command for ResealChannel {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let Some(channel) = world.channel(self.channel) else {
            return Ok(Decision::unchanged(true));
        };
        let is_old = |sealed: &Sealed| self.keys.state_of(&sealed.key) == KeyState::Old;
        let (Some(opened), true) = (
            channel.open(&self.keys),
            channel.secret.as_ref().is_some_and(is_old),
        ) else {
            return Ok(Decision::unchanged(true));
        };
        let sealed = opened.and_then(|value| {
            Sealed::seal(
                self.keys.current(),
                place(channel.id),
                &value,
                moment.entropy,
            )
        });
        let Ok(sealed) = sealed else {
            return Ok(Decision::unchanged(false));
        };
        let channel = Channel {
            secret: Some(sealed),
            ..Channel::clone(channel)
        };
        Ok(Decision {
            changes: vec![Change::Channel(Arc::new(channel))],
            answer: true,
        })
    }
}

fn find(
    world: &World,
    project: Option<ProjectId>,
    name: NotifyName,
) -> Result<&Arc<Channel>, Refusal> {
    world
        .channel_of(project, &name)
        .ok_or_else(|| Refusal::NoSuchChannel {
            name: name.to_string(),
        })
}
