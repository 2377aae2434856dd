//! Composes a message from the events of a channel.

use std::collections::HashSet;

use model::channel::Channel;
use model::event::{Event, What};
use model::limits::DELIVERY_NAMED;
use model::outbox::Suppressed;
use model::{EventId, JobId, OutgoingId, Timestamp, World};
use reconciler::Handle;
use serde_json::json;
use uuid::Uuid;
use workflow::notify::Rule;

use crate::item::Item;
use crate::sender::Settings;
use crate::text::cut;
use crate::{Level, Message};

/// Events that a message shows with their text; the others are counted.
const SHOWN: usize = 10;

/// Bytes of a text.
pub(crate) const TEXT_LIMIT: usize = 16 * 1024;

/// A message, and what the delivery log says about it.
pub(crate) struct Composed {
    pub(crate) message: Message,
    pub(crate) events: Vec<EventId>,
    pub(crate) event_count: u64,
    pub(crate) jobs: Vec<JobId>,
    /// Set if there is nothing to say.
    pub(crate) suppressed: Option<Suppressed>,
}

/// An event that the message is about, and the rule that asked for it.
pub(crate) struct Wanted {
    pub(crate) event: Event,
    pub(crate) rule: Option<Rule>,
    /// Why it is not sent.
    pub(crate) suppressed: Option<Suppressed>,
}

pub(crate) async fn compose(handle: &Handle, settings: &Settings, channel: &Channel) -> Composed {
    let (wanted, left_out) = handle
        .state()
        .read(|world| collect(world, channel, handle.now()));
    let (mut items, mut others): (Vec<Item>, Vec<Event>) = (Vec::new(), Vec::new());
    let mut unsent = Vec::new();
    for wanted in wanted {
        if items.len() == SHOWN {
            if wanted.suppressed.is_none() {
                others.push(wanted.event);
            }
        } else if unsent.len() < SHOWN || wanted.suppressed.is_none() {
            let item = Item::of(handle, settings, channel, wanted).await;
            match item.suppressed {
                Some(_) => unsent.push(item),
                None => items.push(item),
            }
        }
    }
    // If nothing is sent, the delivery log says so about the events that are not sent.
    let mut suppressed = None;
    if items.is_empty() && left_out == 0 {
        suppressed = unsent.last().and_then(|item| item.suppressed);
        items = unsent;
    }
    let events: Vec<&Event> = items.iter().map(|it| &it.event).chain(&others).collect();
    let count = events.len() as u64 + left_out;
    let mut jobs: Vec<JobId> = Vec::new();
    let recovered_by = items.iter().filter_map(|item| item.job);
    for job in events
        .iter()
        .filter_map(|it| it.what.job())
        .chain(recovered_by)
    {
        if !jobs.contains(&job) && jobs.len() < DELIVERY_NAMED {
            jobs.push(job);
        }
    }
    let id = channel.sending.as_ref();
    let id = id.map_or_else(Uuid::nil, |sending| sending.message.uuid());
    let (title, text) = match &items[..] {
        [only] if count == 1 => (only.title.clone(), only.text.clone()),
        _ => (title(&events, count), all(&items, count)),
    };
    let message = Message {
        id,
        at: handle.now(),
        level: level(&events),
        title,
        text: cut(&text, TEXT_LIMIT, char::len_utf8),
        link: items.first().map_or_else(
            || settings.url.as_ref().map(|url| format!("{url}/")),
            |first| first.link.clone(),
        ),
        thread: items.first().and_then(|first| first.thread),
        is_repeated: channel.sending.as_ref().is_some_and(|it| it.is_repeated),
        event: json!({
            "events": items.iter().map(|item| &item.facts).collect::<Vec<_>>(),
            "count": count,
        }),
    };
    Composed {
        message,
        events: events
            .iter()
            .map(|event| event.id)
            .take(DELIVERY_NAMED)
            .collect(),
        event_count: count,
        jobs,
        suppressed,
    }
}

/// The text of a message about several events. Each gets its share of the room.
fn all(items: &[Item], count: u64) -> String {
    let room = TEXT_LIMIT / (items.len() + 1);
    let texts = items
        .iter()
        .map(|it| format!("{}\n{}", it.title, cut(&it.text, room, char::len_utf8)));
    let mut text = texts.collect::<Vec<_>>().join("\n\n");
    let more = count.saturating_sub(items.len() as u64);
    if more > 0 {
        text.push_str(&format!("\n\nand {more} more"));
    }
    text
}

/// The events of the message, and how many others it counts.
fn collect(world: &World, channel: &Channel, now: Timestamp) -> (Vec<Wanted>, u64) {
    let at = channel.sending.as_ref().map_or(now, |sending| sending.at);
    let (mut wanted, mut left_out) = (Vec::new(), 0);
    let mut seen: HashSet<OutgoingId> = HashSet::new();
    // The order of decisions: a clock that is set back must not put an end before its begin.
    let mut due: Vec<_> = world.due_for(channel.id, at).collect();
    due.sort_by_key(|outgoing| outgoing.order);
    for outgoing in due {
        if !seen.insert(outgoing.id) {
            continue;
        }
        let mut is_in_message = false;
        for delivery in outgoing.deliveries.iter().flatten() {
            if !delivery.is_in(channel) {
                continue;
            }
            is_in_message = true;
            let rule = world.rule_of(outgoing.project, delivery);
            let is_repeat = delivery.due.is_repeat();
            for event in &outgoing.events {
                if !delivery.events.contains(&event.id) {
                    continue;
                }
                let suppressed = is_repeat.then(|| unwanted(world, event, now)).flatten();
                wanted.push(Wanted {
                    event: event.clone(),
                    rule: rule.cloned(),
                    suppressed,
                });
            }
        }
        if is_in_message {
            left_out += outgoing.left_out;
        }
    }
    (wanted, left_out)
}

/// Why a condition is not reported again.
fn unwanted(world: &World, event: &Event, now: Timestamp) -> Option<Suppressed> {
    let condition = world.condition(event.what.condition()?)?;
    if condition.acknowledged.is_some() {
        return Some(Suppressed::Acknowledged);
    }
    let is_silenced = condition.silenced_until.is_some_and(|until| until > now);
    is_silenced.then_some(Suppressed::Silenced)
}

fn level(events: &[&Event]) -> Level {
    let is_problem = |event: &&Event| match &event.what {
        What::Opened { .. } | What::FailedAgain { .. } | What::SlotMissed => true,
        What::Closed { .. } | What::WorkflowRemoved | What::Artifact { .. } => false,
    };
    let is_over = |event: &&Event| matches!(event.what, What::Closed { .. });
    if events.iter().any(is_problem) {
        Level::Problem
    } else if events.iter().any(is_over) {
        Level::Recovered
    } else {
        Level::Information
    }
}

fn title(events: &[&Event], count: u64) -> String {
    let over = events
        .iter()
        .filter(|it| matches!(it.what, What::Closed { .. }));
    match over.count() {
        0 => format!("{count} events"),
        over => format!("{count} events, {over} of them are over"),
    }
}

pub(crate) fn test_message(channel: &Channel, now: Timestamp, settings: &Settings) -> Message {
    Message {
        id: Uuid::new_v4(),
        at: now,
        level: Level::Information,
        title: "Everscan: test message".to_owned(),
        text: format!("The channel {} works.", channel.name),
        link: settings.url.clone(),
        thread: None,
        is_repeated: false,
        event: json!({ "events": [], "count": 0, "test": true }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::channel::{Offered, Sending, SendingStep, Target};
    use model::outbox::Outgoing;
    use model::{Actor, Change, ChannelId, Edit, MessageId, Order};
    use serde_json::{from_value, json};
    use workflow::notify::NotifyName;

    use super::*;

    #[test]
    fn an_end_follows_its_begin_although_the_clock_was_set_back_between_them() {
        let mut world = World::default();
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let channel = Channel {
            id: ChannelId::from_uuid(Uuid::from_u128(1)),
            project: None,
            name: NotifyName::new("ops").unwrap(),
            offered: Offered::default(),
            target: Target::Slack,
            secret: None,
            edit: Edit {
                version: 1,
                at: now,
                by: Actor::Daemon,
            },
            sent: Vec::new(),
            sending: Some(Sending {
                message: MessageId::from_uuid(Uuid::from_u128(2)),
                at: now,
                planned: Order::START,
                attempt: 1,
                is_repeated: false,
                step: SendingStep::Now,
            }),
            restored: None,
            failing: None,
        };
        let condition = Uuid::from_u128(3).to_string();
        let low = json!({ "code": "disk_low" });
        let opened = json!({ "kind": "opened", "condition": condition, "problem": low });
        let closed =
            json!({ "kind": "closed", "condition": condition, "problem": low, "since": now });
        let records = [
            (2, "2026-11-20T11:00:00Z", closed),
            (1, "2026-11-20T11:59:00Z", opened),
        ];
        for (order, at, what) in records {
            let (record, event) = (Uuid::from_u128(10 + order), Uuid::from_u128(20 + order));
            let record: Outgoing = from_value(json!({
                "id": record.to_string(),
                "order": order as u64,
                "events": [{ "id": event.to_string(), "at": at, "subject": { "kind": "instance" }, "what": what }],
                "deliveries": [{
                    "channel": channel.id, "events": [event.to_string()], "due": { "when": "at", "at": at }, "planned": 0,
                }],
            }))
            .unwrap();
            world.apply(&Change::Outgoing(Arc::new(record)));
        }
        let (wanted, left_out) = collect(&world, &channel, now);
        let ends: Vec<bool> = wanted
            .iter()
            .map(|it| matches!(it.event.what, What::Closed { .. }))
            .collect();
        assert_eq!((ends, left_out), (vec![false, true], 0));
    }
}
