//! What rules change about messages: which, when, how often.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use workflow::notify::{EventName, Quiet, Rule};

use super::deliveries::{
    MANUAL, delivered, end, events, hook, job, minutes, name, plan, project, retry, sent, what,
};
use crate::channel::Offered;
use crate::decide::{
    Acknowledge, DeleteRule, PlanDeliveries, Precondition, Retire, SendAgain, SetChannel, SetRule,
    SetVar, Silence,
};
use crate::outbox::{SendResult, Suppressed, Wait};
use crate::testing::{TestWorld, key};
use crate::{Actor, ScanKey};

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

/// A rule that is quiet from 12:00 to 18:00.
fn afternoon() -> Rule {
    let quiet = Quiet {
        from: "12:00".to_owned(),
        to: "18:00".to_owned(),
        timezone: "UTC".to_owned(),
    };
    Rule {
        quiet: Some(quiet),
        ..rule()
    }
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
    let (mut test, manual) = world(afternoon());
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
fn what_quiet_hours_hold_is_shown_and_sent_at_once_on_request() {
    let (mut test, manual) = world(afternoon());
    test.now = "2026-11-28T13:00:00Z".parse().unwrap();
    job(&mut test, &manual, false);
    assert!(sent(&mut test).is_empty());
    let ops = test.world.channel_of(project(), &name("ops")).unwrap();
    let waiting = test.world.waiting(ops, test.now).unwrap();
    let end = "2026-11-28T18:00:00Z".parse().unwrap();
    let shown = (waiting.events, waiting.until, waiting.why);
    assert_eq!(shown, (1, Some(end), Wait::QuietHours));
    let now = SendAgain {
        project: project(),
        name: name("ops"),
        failed: None,
    };
    test.run(now).unwrap();
    assert_eq!(sent(&mut test), [["opened"]]);
    // What follows is held again.
    job(&mut test, &manual, true);
    assert!(sent(&mut test).is_empty());
    minutes(&mut test, 300);
    assert_eq!(sent(&mut test), [["closed"]]);
}

/// A rule that repeats each hour.
fn hourly() -> Rule {
    Rule {
        repeat: Some("1h".to_owned()),
        ..rule()
    }
}

#[test]
fn an_open_condition_is_repeated_until_somebody_knows_of_it_or_it_is_over() {
    for is_acknowledged in [false, true] {
        let (mut test, manual) = world(hourly());
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
fn no_message_begins_in_quiet_hours_although_it_was_due_before() {
    let (mut test, manual) = world(afternoon());
    let second = key(test.push("second", MANUAL), "manual");
    test.now = "2026-11-28T11:55:00Z".parse().unwrap();
    job(&mut test, &manual, false);
    let failing = plan(&mut test).remove(0);
    // The channel fails until the quiet hours have begun. What was due meanwhile waits for their end.
    job(&mut test, &second, false);
    minutes(&mut test, 10);
    end(&mut test, &failing, delivered());
    assert!(sent(&mut test).is_empty());
    minutes(&mut test, 355);
    assert_eq!(sent(&mut test), [["opened"]]);
}

#[test]
fn a_repeat_waits_for_the_end_of_quiet_hours() {
    let quiet = Rule {
        repeat: Some("1h".to_owned()),
        ..afternoon()
    };
    let (mut test, manual) = world(quiet);
    test.now = "2026-11-28T11:30:00Z".parse().unwrap();
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    for _ in 0..5 {
        minutes(&mut test, 60);
        assert!(sent(&mut test).is_empty());
    }
    minutes(&mut test, 90);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, 60);
    assert_eq!(sent(&mut test), [["opened"]]);
}

#[test]
fn a_clock_that_was_wrong_by_weeks_holds_nothing_for_weeks() {
    let (mut test, manual) = world(afternoon());
    test.now = "2026-12-28T13:00:00Z".parse().unwrap();
    job(&mut test, &manual, false);
    assert!(sent(&mut test).is_empty());
    test.jump(TimeDelta::days(-30));
    assert!(sent(&mut test).is_empty(), "these are quiet hours, too");
    minutes(&mut test, 300);
    assert_eq!(sent(&mut test), [["opened"]]);
}

#[test]
fn a_silence_suppresses_repeats_until_it_ends() {
    let (mut test, manual) = world(hourly());
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    let condition = test.world.conditions().next().unwrap().id;
    let seconds = Some(90 * 60);
    test.run(Silence { condition, seconds }).unwrap();
    minutes(&mut test, 60);
    let silenced = plan(&mut test).remove(0);
    let reason = Suppressed::Silenced;
    end(&mut test, &silenced, SendResult::Suppressed { reason });
    assert!(sent(&mut test).is_empty());
    minutes(&mut test, 60);
    assert_eq!(sent(&mut test), [["opened"]]);
}

#[test]
fn a_repeat_that_does_not_arrive_is_not_the_last() {
    let (mut test, manual) = world(hourly());
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, 60);
    let repeat = plan(&mut test).remove(0);
    let reason = "403".to_owned();
    end(&mut test, &repeat, SendResult::Failed { reason });
    assert!(sent(&mut test).is_empty());
    minutes(&mut test, 60);
    assert_eq!(sent(&mut test), [["opened"]]);
}

#[test]
fn conditions_of_one_decision_are_repeated_each_on_its_own() {
    let missing = Rule {
        events: BTreeSet::from([EventName::MissingVar]),
        ..hourly()
    };
    let (mut test, _) = world(missing);
    let text = "scans: {a: {on: {dispatch: {}}, steps: [{run: '${{ vars.A }} ${{ vars.B }}'}]}}";
    test.push("names", text);
    assert_eq!(sent(&mut test), [["opened", "opened"]]);
    minutes(&mut test, 1);
    let set = |name: &str| SetVar {
        project: project().unwrap(),
        name: name.to_owned(),
        value: "1".to_owned(),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    };
    test.run(set("A")).unwrap();
    assert_eq!(sent(&mut test), [["closed"]]);
    minutes(&mut test, 60);
    assert_eq!(sent(&mut test), [["opened"]]);
    test.run(set("B")).unwrap();
    minutes(&mut test, 1);
    assert_eq!(sent(&mut test), [["closed"]]);
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn a_repeat_that_is_due_when_the_condition_closes_begins_no_message_without_events() {
    let (mut test, manual) = world(Rule {
        group: Some("2h".to_owned()),
        ..hourly()
    });
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, 60);
    job(&mut test, &manual, true);
    assert!(sent(&mut test).is_empty());
    minutes(&mut test, 60);
    assert_eq!(sent(&mut test), [["closed"]]);
}

#[test]
fn the_end_of_a_condition_ends_the_repeats_of_every_rule() {
    let (mut test, manual) = world(hourly());
    let second = Rule {
        name: name("second"),
        after: 2,
        ..hourly()
    };
    set(&mut test, second);
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, 1);
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["again"]]);
    minutes(&mut test, 1);
    job(&mut test, &manual, true);
    assert_eq!(sent(&mut test), [["closed"]]);
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn a_repeat_that_is_being_sent_stays_whole_when_the_condition_closes() {
    let (mut test, manual) = world(hourly());
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, 60);
    let repeat = plan(&mut test).remove(0);
    let failed = retry(&test);
    end(&mut test, &repeat, failed);
    job(&mut test, &manual, true);
    minutes(&mut test, 1);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, 1);
    assert_eq!(sent(&mut test), [["closed"]]);
    assert_eq!(test.world.outbox().len(), 0);
}

#[test]
fn rules_of_the_project_and_of_the_instance_with_one_name_are_told_apart() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    let offered = SetChannel {
        offered: Offered::All,
        ..hook(None, "ops")
    };
    test.run(offered).unwrap();
    let of_instance = Rule {
        events: BTreeSet::from([EventName::Failing]),
        repeat: Some("1h".to_owned()),
        ..rule()
    };
    let of_project = Rule {
        events: BTreeSet::from([EventName::WorkflowRemoved]),
        ..rule()
    };
    let instance = SetRule {
        project: None,
        rule: of_instance.clone(),
    };
    test.run(instance).unwrap();
    set(&mut test, of_project.clone());
    let asked = |test: &TestWorld| {
        let outgoing = test.world.outbox().next().unwrap();
        let delivery = &outgoing.deliveries.as_ref().unwrap()[0];
        test.world.rule_of(outgoing.project, delivery).cloned()
    };
    job(&mut test, &manual, false);
    let begun = plan(&mut test);
    assert_eq!(asked(&test), Some(of_instance));
    end(&mut test, &begun[0], delivered());
    plan(&mut test);
    minutes(&mut test, 60);
    assert_eq!(sent(&mut test), [["opened"]], "it repeats as its rule says");

    let acknowledged = Acknowledge {
        condition: test.world.conditions().next().unwrap().id,
        note: None,
        actor: Actor::Daemon,
    };
    test.run(acknowledged).unwrap();
    minutes(&mut test, 61);
    sent(&mut test);
    let workflow = manual.workflow;
    test.run(Retire { workflow }).unwrap();
    plan(&mut test);
    assert_eq!(asked(&test), Some(of_project));
}
