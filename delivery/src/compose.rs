//! Composes a message from the events of a channel.

use std::collections::HashSet;

use model::channel::Channel;
use model::event::{Event, What};
use model::outbox::{Due, Held, Suppressed};
use model::{EventId, JobId, OutgoingId, Timestamp, World};
use reconciler::Handle;
use serde_json::json;
use uuid::Uuid;
use workflow::notify::EventName;

use crate::sender::Settings;
use crate::{Level, Message, Thread};

/// Events that a message shows with their text; the others are counted.
const SHOWN: usize = 10;

/// Events and jobs that a line of the delivery log names.
const NAMED: usize = 50;

/// A message, and what the delivery log says about it.
pub(crate) struct Composed {
    pub(crate) message: Message,
    pub(crate) events: Vec<EventId>,
    pub(crate) event_count: u64,
    pub(crate) jobs: Vec<JobId>,
    /// Set if there is nothing to say.
    pub(crate) suppressed: Option<Suppressed>,
}

/// An event of the message, and what the reader needs besides.
struct Item {
    event: Event,
    title: String,
    text: String,
}

pub(crate) async fn compose(handle: &Handle, settings: &Settings, channel: &Channel) -> Composed {
    let (mut events, left_out, suppressed) = handle
        .state()
        .read(|world| collect(world, channel, handle.now()));
    events.sort_by_key(|event| event.at);
    let count = events.len() as u64 + left_out;
    let jobs = events.iter().filter_map(|event| event.what.job());
    let jobs: Vec<JobId> = jobs.take(NAMED).collect();
    let named = events.iter().map(|event| event.id).take(NAMED).collect();
    let id = channel.sending.as_ref();
    let id = id.map_or_else(Uuid::nil, |sending| sending.message.uuid());
    let is_repeated = channel.sending.as_ref().is_some_and(|it| it.is_repeated);
    let items: Vec<Item> = handle.state().read(|world| {
        let shown = events.iter().take(SHOWN);
        shown.map(|event| item(world, event)).collect()
    });
    let level = level(&events);
    let title = match &items[..] {
        [only] if count == 1 => only.title.clone(),
        _ => title(&events, count),
    };
    let mut text = match &items[..] {
        [only] if count == 1 => only.text.clone(),
        _ => {
            let lines = items.iter().map(|it| format!("{}\n{}", it.title, it.text));
            lines.collect::<Vec<_>>().join("\n\n")
        }
    };
    let more = count.saturating_sub(items.len() as u64);
    if more > 0 {
        text.push_str(&format!("\n\nand {more} more"));
    }
    let link = settings.url.as_ref().map(|url| {
        jobs.first()
            .map_or_else(|| format!("{url}/"), |job| format!("{url}/jobs/{job}"))
    });
    let thread = items.first().and_then(|first| thread(&first.event));
    let message = Message {
        id,
        at: handle.now(),
        level,
        title,
        text,
        link,
        thread,
        is_repeated,
        event: facts(&items, count),
    };
    let is_empty = items.is_empty() && left_out == 0;
    Composed {
        message,
        events: named,
        event_count: count,
        jobs,
        suppressed: suppressed.filter(|_| is_empty),
    }
}

/// The events of the message, how many others it counts, and why events were left out.
fn collect(
    world: &World,
    channel: &Channel,
    now: Timestamp,
) -> (Vec<Event>, u64, Option<Suppressed>) {
    let at = channel.sending.as_ref().map_or(now, |sending| sending.at);
    let (mut events, mut left_out, mut suppressed) = (Vec::new(), 0, None);
    let mut seen: HashSet<OutgoingId> = HashSet::new();
    // Events of one moment stay in their order.
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
            let is_repeat = matches!(
                delivery.due,
                Due::At {
                    held: Some(Held::Repeat),
                    ..
                }
            );
            for event in &outgoing.events {
                if !delivery.events.contains(&event.id) {
                    continue;
                }
                match is_repeat.then(|| unwanted(world, event, now)).flatten() {
                    Some(reason) => suppressed = Some(reason),
                    None => events.push(event.clone()),
                }
            }
        }
        if is_in_message {
            left_out += outgoing.left_out;
        }
    }
    (events, left_out, suppressed)
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

fn item(world: &World, event: &Event) -> Item {
    let subject = world.label_of(&event.subject);
    let (word, text) = match &event.what {
        What::Opened { problem, .. } | What::FailedAgain { problem, .. } => {
            (word(problem.event()), problem.to_string())
        }
        What::Closed { problem, since, .. } => {
            let lasted = workflow::format_duration(event.at - *since);
            (
                "Over",
                format!("It is over after {lasted}. It was: {problem}"),
            )
        }
        What::SlotMissed => (
            "Not run",
            "a slot of its schedule passed without a job".to_owned(),
        ),
        What::WorkflowRemoved => ("Removed", "the workflow file is gone".to_owned()),
        What::Artifact { artifact, .. } => ("New result", format!("artifact {artifact}")),
    };
    Item {
        title: format!("{word}: {subject}"),
        text,
        event: event.clone(),
    }
}

/// The first word of a title.
const fn word(event: EventName) -> &'static str {
    match event {
        EventName::Failing => "Failed",
        EventName::Overdue => "Overdue",
        EventName::Late => "Late",
        EventName::TooShort => "Too short",
        EventName::TooLong => "Too long",
        EventName::Circle => "Circle",
        EventName::Stuck => "Waiting",
        EventName::HistoryDamaged => "Damaged",
        EventName::Suspended => "Suspended",
        EventName::SourceFailing => "Source failing",
        EventName::InvalidFile => "Invalid file",
        EventName::RemovalHeld => "Held",
        EventName::MissingVar | EventName::MissingSecret | EventName::MissingChannel => "Missing",
        EventName::RunnerLost => "Runner lost",
        EventName::TokenExpires | EventName::CertificateExpires => "Expires soon",
        EventName::DiskLow => "Disk nearly full",
        EventName::BackupOld => "No new backup",
        EventName::ChannelFailing => "Channel failing",
        EventName::SlotMissed => "Not run",
        EventName::WorkflowRemoved => "Removed",
        EventName::Artifact | EventName::NewLines => "New result",
    }
}

fn level(events: &[Event]) -> Level {
    let is_problem = |event: &Event| match &event.what {
        What::Opened { .. } | What::FailedAgain { .. } | What::SlotMissed => true,
        What::Closed { .. } | What::WorkflowRemoved | What::Artifact { .. } => false,
    };
    let is_over = |event: &Event| matches!(event.what, What::Closed { .. });
    if events.iter().any(is_problem) {
        Level::Problem
    } else if events.iter().any(is_over) {
        Level::Recovered
    } else {
        Level::Information
    }
}

fn title(events: &[Event], count: u64) -> String {
    let over = events
        .iter()
        .filter(|it| matches!(it.what, What::Closed { .. }));
    match over.count() {
        0 => format!("{count} events"),
        over => format!("{count} events, {over} of them are over"),
    }
}

/// Mails about one condition are one conversation.
fn thread(event: &Event) -> Option<Thread> {
    let condition = event.what.condition()?;
    Some(Thread {
        first: condition.uuid(),
        is_first: matches!(event.what, What::Opened { .. }),
    })
}

fn facts(items: &[Item], count: u64) -> serde_json::Value {
    let events = items.iter().map(|item| {
        json!({
            "id": item.event.id,
            "at": item.event.at,
            "event": item.event.what.name().name(),
            "title": item.title,
            "text": item.text,
            "job": item.event.what.job(),
        })
    });
    json!({ "events": events.collect::<Vec<_>>(), "count": count })
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
