//! Composes a message from the events of a channel.

use std::collections::{BTreeSet, HashSet};

use chrono::TimeDelta;
use model::channel::Channel;
use model::condition::Ended;
use model::event::{Event, What};
use model::limits::DELIVERY_NAMED;
use model::outbox::Suppressed;
use model::{EventId, JobId, OutgoingId, Timestamp, World};
use reconciler::Handle;
use serde_json::json;
use uuid::Uuid;
use workflow::notify::Rule;

use crate::item::Item;
use crate::job_facts::time;
use crate::sender::Settings;
use crate::text::{cut, line};
use crate::{Level, Message};

/// Events that a message shows with their text.
const SHOWN: usize = 10;

/// Other events that a message shows with their title.
const TITLES: usize = 20;

/// Events that programs get with their facts; the others are counted.
const LISTED: usize = 100;

/// The text of an event that is older says when it was.
const OLD: TimeDelta = TimeDelta::minutes(5);

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
    /// Its place among the events of the message.
    pub(crate) place: usize,
    /// The newest event of its condition.
    pub(crate) is_newest: bool,
    pub(crate) event: Event,
    pub(crate) rule: Option<Rule>,
    /// The condition was reported before, and is still open.
    pub(crate) is_repeat: bool,
    /// Why it is not sent.
    pub(crate) suppressed: Option<Suppressed>,
}

pub(crate) async fn compose(handle: &Handle, settings: &Settings, channel: &Channel) -> Composed {
    let (wanted, left_out) = handle
        .state()
        .read(|world| collect(world, channel, handle.now()));
    let (mut items, mut others): (Vec<Item>, Vec<Wanted>) = (Vec::new(), Vec::new());
    let mut unsent = Vec::new();
    for wanted in ranked(wanted) {
        let is_unsent = wanted.suppressed.is_some();
        if is_unsent && unsent.len() == SHOWN {
            continue;
        }
        if items.len() == LISTED && !is_unsent {
            others.push(wanted);
            continue;
        }
        let with_records = wanted.is_newest && items.len() < SHOWN;
        let item = Item::of(handle, settings, channel, wanted, with_records).await;
        match item.suppressed {
            Some(_) => unsent.push(item),
            None => items.push(item),
        }
    }
    // If nothing is sent, the delivery log says so about the events that are not sent.
    let mut suppressed = None;
    if items.is_empty() && left_out == 0 {
        suppressed = unsent.last().and_then(|item| item.suppressed);
        items = unsent;
    }
    let (sent, unlisted) = (items.iter(), others.iter());
    let events: Vec<&Event> = sent
        .map(|it| &it.event)
        .chain(unlisted.map(|it| &it.event))
        .collect();
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
    let newest: Vec<&Item> = items.iter().filter(|item| item.is_newest).collect();
    let unlisted = others.iter().filter(|it| it.is_newest).count() as u64 + left_out;
    let about = newest.len() as u64 + unlisted;
    let (title, text) = match newest.first() {
        Some(only) if about == 1 => (only.title.clone(), alone(only, handle.now())),
        Some(first) => (title(&first.title, about - 1), all(&newest, unlisted)),
        None => (
            format!("{about} events"),
            format!("{about} events that are not listed"),
        ),
    };
    let overview = settings.url.as_ref().map(|url| format!("{url}/"));
    let of_one = newest.first().filter(|_| about == 1);
    let mut seen = BTreeSet::new();
    let threads = newest.iter().filter_map(|item| item.thread);
    let threads = threads.filter(|thread| seen.insert(thread.first)).collect();
    let mut listed: Vec<&Item> = items.iter().collect();
    listed.sort_by_key(|item| item.place);
    let message = Message {
        id,
        at: handle.now(),
        level: level(newest.iter().map(|item| &item.event)),
        title,
        text: cut(&text, TEXT_LIMIT, char::len_utf8),
        link: of_one.map_or(overview, |item| item.link.clone()),
        threads,
        is_repeated: channel.sending.as_ref().is_some_and(|it| it.is_repeated),
        event: json!({
            "events": listed.iter().map(|item| &item.facts).collect::<Vec<_>>(),
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

/// The order in which a message says its events: of each condition only the newest event, problems first, then the newest
/// ones. Earlier events of the conditions follow.
fn ranked(mut wanted: Vec<Wanted>) -> Vec<Wanted> {
    let mut seen = HashSet::new();
    for one in wanted.iter_mut().rev().filter(|it| it.suppressed.is_none()) {
        let condition = one.event.what.condition();
        one.is_newest = condition.is_none_or(|condition| seen.insert(condition));
    }
    wanted.reverse();
    wanted.sort_by_key(|it| (!it.is_newest, !is_problem(&it.event)));
    wanted
}

/// The text of a message about one event.
fn alone(item: &Item, now: Timestamp) -> String {
    let is_old = now - item.event.at > OLD && !item.is_repeat;
    match is_old && item.is_built_in {
        true => format!("{}\nThis was at {}.", item.text, time(item.event.at)),
        false => item.text.clone(),
    }
}

fn title(first: &str, others: u64) -> String {
    match others {
        1 => format!("{first}, and 1 other"),
        _ => format!("{first}, and {others} others"),
    }
}

/// The text of a message about several events. Each gets its share of the room.
fn all(items: &[&Item], unlisted: u64) -> String {
    let (shown, named) = items.split_at(SHOWN.min(items.len()));
    let room = TEXT_LIMIT * 3 / 4 / (shown.len() + 1);
    let texts = shown.iter().map(|it| {
        let (title, at) = (&it.title, time(it.event.at));
        let text = cut(&it.text, room, char::len_utf8);
        let link = it.link.iter().map(|link| format!("\n{link}"));
        format!("{title}\n{at}\n{text}{}", link.collect::<String>())
    });
    let mut text = texts.collect::<Vec<_>>().join("\n\n");
    if !named.is_empty() {
        text.push('\n');
    }
    for item in named.iter().take(TITLES) {
        let title = cut(&line(&item.title), TEXT_LIMIT / 4 / TITLES, char::len_utf8);
        text.push_str(&format!("\n{title}"));
    }
    let more = named.len().saturating_sub(TITLES) as u64 + unlisted;
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
                let mut event = event.clone();
                let open = event.what.condition().and_then(|id| world.condition(id));
                if let Some(open) = open.filter(|_| is_repeat) {
                    event.what = What::Opened {
                        condition: open.id,
                        problem: open.problem.clone(),
                    };
                }
                wanted.push(Wanted {
                    place: wanted.len(),
                    is_newest: true,
                    event,
                    rule: rule.cloned(),
                    is_repeat,
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

const fn is_problem(event: &Event) -> bool {
    match &event.what {
        What::Opened { .. } | What::FailedAgain { .. } | What::SlotMissed => true,
        What::Closed { .. }
        | What::WorkflowRemoved
        | What::Artifact { .. }
        | What::Interaction { .. } => false,
    }
}

const fn is_cured(event: &Event) -> bool {
    matches!(
        event.what,
        What::Closed {
            ended: Ended::Cured,
            ..
        }
    )
}

fn level<'e>(mut events: impl Iterator<Item = &'e Event> + Clone) -> Level {
    if events.clone().any(is_problem) {
        Level::Problem
    } else if events.any(is_cured) {
        Level::Recovered
    } else {
        Level::Information
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
        threads: Vec::new(),
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
    fn the_newest_event_of_each_condition_comes_first_and_problems_before_others() {
        let at: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let low = json!({ "code": "disk_low" });
        let wanted = |(place, (kind, condition)): (usize, (&str, u128))| {
            let condition = Uuid::from_u128(condition).to_string();
            let what = json!({ "kind": kind, "condition": condition, "problem": low, "since": at });
            Wanted {
                place,
                is_newest: true,
                event: Event {
                    id: EventId::from_uuid(Uuid::from_u128(1)),
                    at,
                    project: None,
                    subject: model::condition::Subject::Instance,
                    what: from_value(what).unwrap(),
                },
                rule: None,
                is_repeat: false,
                suppressed: None,
            }
        };
        let events = [
            ("opened", 1),
            ("opened", 2),
            ("closed", 1),
            ("closed", 3),
            ("opened", 4),
        ];
        let ranked = ranked(events.into_iter().enumerate().map(wanted).collect());
        let places: Vec<_> = ranked.iter().map(|it| (it.place, it.is_newest)).collect();
        let expected = [(4, true), (1, true), (3, true), (2, true), (0, false)];
        assert_eq!(places, expected);
    }

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
            delivered: None,
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
