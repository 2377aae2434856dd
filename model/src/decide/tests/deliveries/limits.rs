//! Restarts, many channels, and a clock that is set back.

use super::*;

#[test]
fn a_message_is_not_named_like_one_of_an_earlier_process() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    let mut known = Vec::new();
    for succeeds in [false, true] {
        job(&mut test, &manual, succeeds);
        minutes(&mut test, 1);
        // No record says how far the order of decisions has come.
        test.order = crate::Order::START;
        for _ in 0..1_000 {
            test.order = test.order.next();
        }
        let begun = plan(&mut test).remove(0);
        known.push(begun.sending.as_ref().unwrap().message);
        end(&mut test, &begun, delivered());
        plan(&mut test);
    }
    assert_ne!(known[0], known[1]);
}

#[test]
fn more_messages_than_fit_into_a_commit_begin_and_are_repeated_after_a_crash() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    for number in 0..100 {
        test.run(hook(project(), &format!("c{number}"))).unwrap();
    }
    job(&mut test, &manual, false);
    let mut begun = plan(&mut test);
    while begun.len() < 100 {
        begun.extend(plan(&mut test));
    }
    let start = PlanDeliveries { at_start: true };
    while start.due(&test.world, test.now).is_some() {
        test.run(start.clone()).unwrap();
    }
    let mut again = Vec::new();
    while again.len() < 100 {
        again.extend(plan(&mut test));
    }
    let marked = |it: &Arc<Channel>| it.sending.as_ref().unwrap().is_repeated;
    assert!(again.iter().all(marked));
}

#[test]
fn a_clock_that_is_set_back_does_not_hold_a_channel() {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    let slack = SetChannel {
        target: Target::Slack,
        ..hook(project(), "ops")
    };
    test.run(slack).unwrap();
    job(&mut test, &manual, false);
    assert_eq!(sent(&mut test), [["opened"]]);
    minutes(&mut test, -600);
    job(&mut test, &manual, true);
    assert!(plan(&mut test).is_empty(), "it follows a message");
    minutes(&mut test, -600);
    assert_eq!(sent(&mut test), [["closed"]]);
}
