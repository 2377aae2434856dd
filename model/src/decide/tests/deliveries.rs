//! What happens is sent once to each channel, in few messages, whatever fails.

mod deleted;
mod limits;
mod retry;

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;
use workflow::notify::NotifyName;

use crate::channel::{Channel, Offered, SendingStep, Target};
use crate::condition::Problem;
use crate::decide::{Complete, EndAttempt, PlanDeliveries, Precondition, SendAgain, SetChannel};
use crate::event::{Event, What};
use crate::outbox::{DeliveryRecord, SendResult};
use crate::sealing::{SealingKey, SecretValue};
use crate::testing::{TestWorld, complete, key, source, step, succeeded};
use crate::{Actor, Change, ProjectId, ScanKey, StepOutcome, StepStatus};

pub(super) const MANUAL: &str = "
scans:
  manual:
    on: {dispatch: {}}
    steps: [{run: once}]
  other:
    on: {dispatch: {}}
    steps: [{run: once}]
";

pub(super) fn name(text: &str) -> NotifyName {
    NotifyName::new(text).unwrap()
}

pub(super) fn hook(project: Option<ProjectId>, text: &str) -> SetChannel {
    SetChannel {
        project,
        name: name(text),
        offered: Offered::default(),
        target: Target::Webhook {
            url: "https://hook.example/in".to_owned(),
            ca: None,
        },
        secret: Some(SecretValue::new("whsec_c2VjcmV0".to_owned())),
        key: Some(SealingKey::random(&mut crate::moment::SeededEntropy::new(
            7,
        ))),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    }
}

pub(super) fn project() -> Option<ProjectId> {
    Some(ProjectId::of_source(&source()))
}

pub(super) fn channel(test: &TestWorld, text: &str) -> Arc<Channel> {
    let mut all = test.world.channels();
    all.find(|channel| channel.name == name(text))
        .unwrap()
        .clone()
}

pub(super) fn job(test: &mut TestWorld, scan: &ScanKey, succeeds: bool) -> Vec<Change> {
    let runner = test.world.runners().next().map(|runner| runner.id);
    let runner = runner.unwrap_or_else(|| test.runner("first", &[]));
    let job = test
        .dispatch(scan.workflow, scan.scan.as_str(), json!({}))
        .unwrap();
    let token = test.claim(job, runner).unwrap();
    let failed = step(0, StepStatus::Failed, Some(StepOutcome::Failed));
    let steps = if succeeds { succeeded(1) } else { vec![failed] };
    let complete = Complete {
        steps,
        ..complete(job, token)
    };
    test.changes(complete).unwrap().0
}

const PLAN: PlanDeliveries = PlanDeliveries { at_start: false };

/// Plans until a message begins, or there is nothing to plan now.
pub(super) fn plan(test: &mut TestWorld) -> Vec<Arc<Channel>> {
    while PLAN
        .due(&test.world, test.now)
        .is_some_and(|at| at <= test.now)
    {
        let (changes, begun) = test.changes(PLAN).unwrap();
        assert!(!changes.is_empty(), "a plan is due and changes nothing");
        if !begun.is_empty() {
            return begun;
        }
    }
    Vec::new()
}

/// The events of the message that a channel is sending, oldest first.
pub(super) fn events(test: &TestWorld, channel: &Channel) -> Vec<Event> {
    let at = channel.sending.as_ref().unwrap().at;
    let mut found: Vec<Event> = Vec::new();
    let mut due: Vec<_> = test.world.due_for(channel.id, at).collect();
    due.sort_by_key(|outgoing| outgoing.order);
    for outgoing in due {
        for delivery in outgoing.deliveries.iter().flatten() {
            if delivery.is_in(channel) {
                let events = outgoing.events.iter();
                found.extend(
                    events
                        .filter(|it| delivery.events.contains(&it.id))
                        .cloned(),
                );
            }
        }
    }
    found.sort_by_key(|event| event.at);
    found
}

pub(super) fn what(events: &[Event]) -> Vec<&'static str> {
    let word = |event: &Event| match &event.what {
        What::Opened { .. } => "opened",
        What::FailedAgain { .. } => "again",
        What::Closed { .. } => "closed",
        What::SlotMissed => "missed",
        What::WorkflowRemoved => "removed",
        What::Artifact { .. } => "artifact",
        What::Interaction { .. } => "interaction",
    };
    events.iter().map(word).collect()
}

pub(super) fn end(test: &mut TestWorld, channel: &Channel, result: SendResult) -> Vec<Change> {
    let sending = channel.sending.as_ref().unwrap();
    let record = DeliveryRecord {
        at: test.now,
        message: sending.message,
        channel: channel.id,
        channel_name: channel.name.clone(),
        project: channel.project,
        attempt: sending.attempt,
        is_repeated: sending.is_repeated,
        result,
        title: String::new(),
        events: Vec::new(),
        event_count: 0,
        jobs: Vec::new(),
    };
    let end = EndAttempt {
        record,
        after: None,
        is_gone: false,
        spread: 0.5,
    };
    test.changes(end).unwrap().0
}

pub(super) fn delivered() -> SendResult {
    SendResult::Delivered {
        reply: "200".to_owned(),
    }
}

fn refused() -> SendResult {
    SendResult::Failed {
        reason: "403".to_owned(),
    }
}

pub(super) fn retry(test: &TestWorld) -> SendResult {
    SendResult::Retry {
        reason: "503".to_owned(),
        at: test.now,
    }
}

/// Plans, and returns what each channel sends; everything arrives.
pub(super) fn sent(test: &mut TestWorld) -> Vec<Vec<&'static str>> {
    let mut sent = Vec::new();
    for channel in plan(test) {
        sent.push(what(&events(test, &channel)));
        end(test, &channel, delivered());
    }
    test.run(PLAN).unwrap();
    sent
}

pub(super) fn minutes(test: &mut TestWorld, minutes: i64) {
    test.pass(TimeDelta::minutes(minutes));
}

#[test]
fn a_failure_and_its_end_are_sent_once_each() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    let changes = job(&mut test, &manual, false);
    assert!(
        changes.iter().any(|it| matches!(it, Change::Outgoing(_))),
        "the commit of the failure carries its message"
    );
    assert_eq!(sent(&mut test), [["opened"]]);
    assert_eq!(test.world.outbox().len(), 0);
    minutes(&mut test, 1);
    job(&mut test, &manual, false);
    assert!(sent(&mut test).is_empty(), "it is still the same failure");
    job(&mut test, &manual, true);
    assert_eq!(sent(&mut test), [["closed"]]);
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn without_a_channel_nothing_is_kept_for_sending() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    let changes = job(&mut test, &manual, false);
    assert!(changes.iter().any(|it| matches!(it, Change::Event(_))));
    assert_eq!(test.world.outbox().len(), 0);
    // A channel that is added later does not hear of the end.
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, true);
    assert!(sent(&mut test).is_empty());
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn what_follows_a_message_within_half_a_minute_is_one_message() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", MANUAL);
    let (manual, other) = (key(workflow, "manual"), key(workflow, "other"));
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    job(&mut test, &other, false);
    job(&mut test, &manual, true);
    test.pass(TimeDelta::seconds(29));
    assert!(sent(&mut test).is_empty());
    test.pass(TimeDelta::seconds(1));
    assert_eq!(sent(&mut test), [["opened", "closed"]]);
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn a_burst_of_failures_is_two_messages() {
    let mut test = TestWorld::new();
    test.run(hook(project(), "ops")).unwrap();
    let scans: Vec<ScanKey> = (0..200)
        .map(|number| key(test.push(&format!("w{number}"), MANUAL), "manual"))
        .collect();
    for scan in &scans {
        job(&mut test, scan, false);
    }
    let begun = plan(&mut test);
    let first = events(&test, &begun[0]).len();
    end(&mut test, &begun[0], delivered());
    assert!(plan(&mut test).is_empty());
    test.pass(TimeDelta::seconds(30));
    let begun = plan(&mut test);
    assert_eq!(first + events(&test, &begun[0]).len(), scans.len());
    end(&mut test, &begun[0], delivered());
    assert!(plan(&mut test).is_empty());
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn the_end_of_a_condition_waits_for_its_begin() {
    for arrives in [true, false] {
        let mut test = TestWorld::new();
        let manual = key(test.push("w", MANUAL), "manual");
        test.run(hook(project(), "ops")).unwrap();
        job(&mut test, &manual, false);
        let begun = plan(&mut test);
        job(&mut test, &manual, true);
        assert!(plan(&mut test).is_empty());
        let result = if arrives { delivered() } else { refused() };
        end(&mut test, &begun[0], result);
        let next = plan(&mut test);
        minutes(&mut test, 1);
        let later = plan(&mut test);
        let mut messages = next.iter().chain(&later);
        if arrives {
            let closing = messages.next().unwrap();
            assert_eq!(what(&events(&test, closing)), ["closed"]);
            end(&mut test, closing, delivered());
        }
        assert!(plan(&mut test).is_empty());
        assert_eq!(test.world.outbox().len(), 0);
    }
}

#[test]
fn a_begin_that_is_still_held_goes_with_its_end() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", MANUAL);
    let (manual, other) = (key(workflow, "manual"), key(workflow, "other"));
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    job(&mut test, &other, false);
    plan(&mut test);
    job(&mut test, &other, true);
    assert!(sent(&mut test).is_empty());
    test.pass(TimeDelta::seconds(30));
    assert_eq!(sent(&mut test), [["opened", "closed"]]);
}

#[test]
fn a_failed_attempt_is_repeated_with_the_same_id_and_then_given_up() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, false);
    let first = plan(&mut test).remove(0);
    let message = first.sending.as_ref().unwrap().message;
    let mut attempt = first;
    let begin = test.now;
    let mut attempts = 1;
    loop {
        let result = retry(&test);
        end(&mut test, &attempt, result);
        let failing = channel(&test, "ops").failing.is_some();
        assert_eq!(failing, attempts >= 3, "attempt {attempts}");
        let mut begun = Vec::new();
        while begun.is_empty()
            && let Some(at) = PLAN.due(&test.world, test.now)
        {
            test.now = test.now.max(at);
            begun = plan(&mut test);
        }
        let Some(next) = begun.pop() else { break };
        attempt = next;
        attempts += 1;
        let sending = attempt.sending.as_ref().unwrap();
        assert_eq!((sending.message, sending.attempt), (message, attempts));
    }
    let took = test.now - begin;
    assert!((23..=24).contains(&took.num_hours()), "{took}");
    plan(&mut test);
    assert!(channel(&test, "ops").sending.is_none());
    let open: Vec<_> = test
        .world
        .conditions()
        .map(|it| it.problem.code())
        .collect();
    assert!(open.contains(&"channel_failing"), "{open:?}");
}

#[test]
fn a_channel_that_works_again_is_no_problem_any_more() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    test.run(hook(project(), "second")).unwrap();
    job(&mut test, &manual, false);
    let begun = plan(&mut test);
    let (ops, second) = match begun[0].name.as_str() {
        "ops" => (&begun[0], &begun[1]),
        _ => (&begun[1], &begun[0]),
    };
    end(&mut test, second, delivered());
    end(&mut test, ops, refused());
    let reason = test.world.conditions().find_map(|it| match &it.problem {
        Problem::ChannelFailing { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert_eq!(reason.as_deref(), Some("403"));
    minutes(&mut test, 1);
    // The other channel reports it, and it does not report itself.
    assert_eq!(sent(&mut test), [["opened"]]);
    job(&mut test, &manual, true);
    minutes(&mut test, 1);
    let sent = sent(&mut test);
    assert_eq!(
        sent,
        [["closed"]],
        "the failed message is not followed by its end"
    );
}

#[test]
fn a_message_that_was_being_sent_when_the_daemon_stopped_is_sent_again_and_marked() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, false);
    let first = plan(&mut test).remove(0);
    assert!(plan(&mut test).is_empty(), "the sender has it");
    test.run(PlanDeliveries { at_start: true }).unwrap();
    let again = plan(&mut test);
    let (before, after) = (
        first.sending.clone().unwrap(),
        again[0].sending.clone().unwrap(),
    );
    assert_eq!(before.message, after.message);
    assert!(after.is_repeated && after.step == SendingStep::Now);
    assert_eq!(what(&events(&test, &again[0])), ["opened"]);
}

#[test]
fn a_channel_of_the_instance_gets_events_of_projects_that_it_is_offered_to() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(None, "all")).unwrap();
    job(&mut test, &manual, false);
    assert!(sent(&mut test).is_empty());
    job(&mut test, &manual, true);
    test.run(SetChannel {
        offered: Offered::All,
        ..hook(None, "all")
    })
    .unwrap();
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
}
