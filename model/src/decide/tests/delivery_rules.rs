//! What rules change about messages: which, when, how often.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use workflow::notify::{EventName, Quiet, Rule};

use super::deliveries::{
    MANUAL, delivered, end, events, hook, job, minutes, name, plan, project, sent, what,
};
use crate::decide::{Acknowledge, DeleteRule, PlanDeliveries, Retire, SetRule};
use crate::event::What;
use crate::testing::{TestWorld, key};
use crate::{Actor, Change, ScanKey};

fn rule() -> Rule {
    Rule {
        name: name("all"),
        ..Rule::of(name("ops"))
    }
}

/// A world with a channel, a rule and a scan.
fn world(rule: Rule) -> (TestWorld, ScanKey) {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    set(&mut test, rule);
    (test, manual)
}

fn set(test: &mut TestWorld, rule: Rule) {
    let project = project();
    test.run(SetRule { project, rule }).unwrap();
}

#[test]
fn a_channel_with_rules_gets_only_what_they_ask_for() {
    let only_missed = Rule {
        events: BTreeSet::from([EventName::SlotMissed]),
        ..rule()
    };
    let (mut test, manual) = world(only_missed);
    job(&mut test, &manual, false);
    assert!(sent(&mut test).is_empty());
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn a_failing_scan_is_reported_after_as_many_failures_as_the_rule_says() {
    let (mut test, manual) = world(Rule { after: 3, ..rule() });
    for _ in 0..2 {
        job(&mut test, &manual, false);
        assert!(sent(&mut test).is_empty());
    }
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["again"]]);
    job(&mut test, &manual, false);
    minutes(&mut test, 1);
    assert!(sent(&mut test).is_empty());
    job(&mut test, &manual, true);
    assert_eq!(sent(&mut test), [["closed"]]);
    // A failure that ends before is not reported at all.
    job(&mut test, &manual, false);
    job(&mut test, &manual, true);
    minutes(&mut test, 1);
    assert!(sent(&mut test).is_empty());
}

#[test]
fn quiet_hours_hold_messages_and_drop_none() {
    let quiet = Quiet {
        from: "12:00".to_owned(),
        to: "18:00".to_owned(),
        timezone: "UTC".to_owned(),
    };
    let (mut test, manual) = world(Rule {
        quiet: Some(quiet),
        ..rule()
    });
    test.now = "2026-11-28T13:00:00Z".parse().unwrap();
    job(&mut test, &manual, false);
    assert!(sent(&mut test).is_empty());
    minutes(&mut test, 60);
    job(&mut test, &manual, true);
    assert!(sent(&mut test).is_empty());
    let due = PlanDeliveries { at_start: false }.due(&test.world, test.now);
    assert_eq!(due, Some("2026-11-28T18:00:00Z".parse().unwrap()));
    // The clock is set back and forward again: nothing is lost.
    test.jump(TimeDelta::hours(-5));
    assert!(sent(&mut test).is_empty());
    test.jump(TimeDelta::hours(10));
    assert_eq!(sent(&mut test), [["opened", "closed"]]);
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn an_open_condition_is_repeated_until_somebody_knows_of_it_or_it_is_over() {
    let repeated = Rule {
        repeat: Some("1h".to_owned()),
        ..rule()
    };
    for is_acknowledged in [false, true] {
        let (mut test, manual) = world(repeated.clone());
        job(&mut test, &manual, false);
        assert_eq!(sent(&mut test), [["opened"]]);
        minutes(&mut test, 59);
        assert!(sent(&mut test).is_empty());
        minutes(&mut test, 1);
        assert_eq!(sent(&mut test), [["opened"]]);
        if is_acknowledged {
            let condition = test.world.conditions().next().unwrap().id;
            let known = Acknowledge {
                condition,
                note: None,
                actor: Actor::Daemon,
            };
            test.run(known).unwrap();
        }
        job(&mut test, &manual, true);
        minutes(&mut test, 1);
        let over = sent(&mut test);
        // The failure of a scan that only people start is over when somebody knows of it.
        assert_eq!(over, [["closed"]]);
        minutes(&mut test, 61);
        assert!(sent(&mut test).is_empty());
        assert_eq!(test.world.outbox().len(), 0);
    }
}

#[test]
fn held_messages_go_where_they_were_meant_although_their_rule_changes() {
    let grouped = Rule {
        group: Some("10m".to_owned()),
        ..rule()
    };
    let (mut test, manual) = world(grouped);
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    job(&mut test, &manual, true);
    assert!(sent(&mut test).is_empty());
    let project = project();
    let all = name("all");
    test.run(DeleteRule { project, name: all }).unwrap();
    minutes(&mut test, 10);
    assert_eq!(sent(&mut test), [["closed"]]);
}

#[test]
fn of_two_rules_for_a_channel_the_first_sends_an_event() {
    let (mut test, manual) = world(rule());
    let second = Rule {
        name: name("second"),
        ..rule()
    };
    set(&mut test, second);
    job(&mut test, &manual, false);
    let begun = plan(&mut test);
    assert_eq!(what(&events(&test, &begun[0])), ["opened"]);
    end(&mut test, &begun[0], delivered());
    minutes(&mut test, 1);
    assert!(sent(&mut test).is_empty());
}

#[test]
fn a_removed_workflow_is_an_event() {
    let mut test = TestWorld::new();
    let workflow = test.push("w", MANUAL);
    let (changes, ()) = test.changes(Retire { workflow }).unwrap();
    let is_event = |change: &Change| matches!(change, Change::Event(event) if event.what == What::WorkflowRemoved);
    assert_eq!(changes.iter().filter(|change| is_event(change)).count(), 1);
}
