//! What a person sends again, and what waits.

use super::*;
use crate::decide::{FailedMessage, Refusal};
use crate::outbox::Wait;

fn again(failed: Option<FailedMessage>) -> SendAgain {
    SendAgain {
        project: project(),
        name: name("ops"),
        failed,
    }
}

fn waiting(test: &TestWorld) -> Option<(u64, i64, Wait)> {
    let waiting = test.world.waiting(&channel(test, "ops"), test.now)?;
    let until = waiting.until.unwrap_or(test.now) - test.now;
    Some((waiting.events, until.num_seconds(), waiting.why))
}

/// A world whose first message was refused, and that message.
fn failed() -> (TestWorld, ScanKey, ScanKey, FailedMessage) {
    let mut test = TestWorld::new();
    let workflow = test.push("w", MANUAL);
    let (manual, other) = (key(workflow, "manual"), key(workflow, "other"));
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, false);
    let begun = plan(&mut test).remove(0);
    let events = events(&test, &begun);
    let changes = end(&mut test, &begun, refused());
    let record = changes.iter().find_map(|it| match it {
        Change::Delivery(record) => Some(DeliveryRecord::clone(record)),
        _ => None,
    });
    let record = DeliveryRecord {
        event_count: 7,
        ..record.unwrap()
    };
    plan(&mut test);
    (test, manual, other, FailedMessage { record, events })
}

#[test]
fn a_failed_message_is_sent_again_once_alone_and_with_its_id() {
    let (mut test, _, other, failed) = failed();
    assert_eq!(waiting(&test), None);
    job(&mut test, &other, false);
    plan(&mut test);
    test.run(again(Some(failed.clone()))).unwrap();
    for problem in ["before it is begun", "while it is sent"] {
        let refused = test.run(again(Some(failed.clone()))).unwrap_err();
        assert!(
            refused.to_string().contains("on its way again"),
            "{problem}: {refused}"
        );
        plan(&mut test);
    }
    let begun = channel(&test, "ops");
    let sending = begun.sending.clone().unwrap();
    assert_eq!(sending.message, failed.record.message);
    assert_eq!((sending.attempt, sending.is_repeated), (2, true));
    assert_eq!(events(&test, &begun), failed.events);
    let left_out: Vec<u64> = test
        .world
        .due_for(begun.id, sending.at)
        .map(|it| it.left_out)
        .collect();
    assert_eq!(left_out, [6]);
    end(&mut test, &begun, delivered());
    test.run(PLAN).unwrap();
    // What came meanwhile is another message, which another retry must wait for.
    test.pass(TimeDelta::seconds(60));
    let next = plan(&mut test).remove(0);
    assert_ne!(
        next.sending.as_ref().unwrap().message,
        failed.record.message
    );
    assert_eq!(what(&events(&test, &next)), ["opened"]);
    let refused = test.run(again(Some(failed))).unwrap_err();
    assert!(refused.to_string().contains("another message"), "{refused}");
}

#[test]
fn what_waits_is_shown_and_sent_at_once() {
    let (mut test, manual, other, _) = failed();
    let nothing = test.run(again(None)).unwrap_err();
    assert!(
        nothing.to_string().contains("nothing that waits"),
        "{nothing}"
    );
    let stranger = SendAgain {
        name: name("nosuch"),
        ..again(None)
    };
    let stranger = test.run(stranger).unwrap_err();
    assert!(
        matches!(stranger, Refusal::NoSuchChannel { .. }),
        "{stranger}"
    );

    job(&mut test, &other, false);
    plan(&mut test);
    assert_eq!(waiting(&test), Some((1, 30, Wait::Group)));
    test.run(again(None)).unwrap();
    let begun = plan(&mut test).remove(0);
    assert_eq!(what(&events(&test, &begun)), ["opened"]);
    assert_eq!(waiting(&test), Some((1, 0, Wait::Sending)));
    assert!(test.run(again(None)).is_err(), "it is being sent");
    let result = retry(&test);
    end(&mut test, &begun, result);
    assert_eq!(waiting(&test), Some((1, 10, Wait::Retry)));
    assert_eq!(channel(&test, "ops").delivered, None, "nothing has arrived");
    test.run(again(None)).unwrap();
    let begun = plan(&mut test).remove(0);
    assert_eq!(begun.sending.as_ref().unwrap().attempt, 2);
    end(&mut test, &begun, delivered());
    test.run(PLAN).unwrap();
    assert_eq!(waiting(&test), None);
    assert_eq!(channel(&test, "ops").delivered, Some(test.now));
    // Its end is not held longer because the message was sent early.
    test.pass(TimeDelta::seconds(30));
    job(&mut test, &other, true);
    job(&mut test, &manual, true);
    assert_eq!(sent(&mut test), [["closed"]]);
}
