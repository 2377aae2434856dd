//! What becomes of messages of a channel that is deleted.

use super::*;
use crate::decide::DeleteChannel;
use crate::outbox::Suppressed;

/// Deletes the channel `ops` and plans. Returns the lines of the delivery log.
fn delete(test: &mut TestWorld) -> Vec<Arc<DeliveryRecord>> {
    let delete = DeleteChannel {
        project: project(),
        name: name("ops"),
        expects: Precondition::Anything,
    };
    let lines = lines(test.changes(delete).unwrap().0);
    plan(test);
    assert_eq!(test.world.outbox().len(), 0);
    lines
}

fn lines(changes: Vec<Change>) -> Vec<Arc<DeliveryRecord>> {
    let lines = changes.into_iter().filter_map(|change| match change {
        Change::Delivery(line) => Some(line),
        _ => None,
    });
    lines.collect()
}

/// A world whose channel sends the message about a failure.
fn sending() -> (TestWorld, ScanKey, Arc<Channel>) {
    let mut test = TestWorld::new();
    let manual = key(test.push("w", MANUAL), "manual");
    test.run(hook(project(), "ops")).unwrap();
    job(&mut test, &manual, false);
    let begun = plan(&mut test).remove(0);
    (test, manual, begun)
}

#[test]
fn what_waits_for_a_deleted_channel_is_suppressed() {
    let (mut test, manual, begun) = sending();
    job(&mut test, &manual, true);
    plan(&mut test);
    let line = delete(&mut test).remove(0);
    let reason = Suppressed::ChannelDeleted;
    assert_eq!(line.result, SendResult::Suppressed { reason });
    assert_eq!(line.message, begun.sending.as_ref().unwrap().message);
    assert_eq!((line.event_count, line.events.len()), (2, 2));
    assert_eq!((line.jobs.len(), &line.channel_name), (1, &name("ops")));
    // The attempt that was under way is recorded, and not repeated.
    let retry = retry(&test);
    assert!(end(&mut test, &begun, retry).is_empty());
    let arrived = lines(end(&mut test, &begun, delivered()));
    assert_eq!(arrived[0].result, delivered());
}

#[test]
fn a_message_that_is_over_is_not_suppressed_with_its_channel() {
    let (mut test, manual, begun) = sending();
    end(&mut test, &begun, delivered());
    assert!(delete(&mut test).is_empty());

    let (mut test, manual_too, begun) = sending();
    assert_eq!(manual, manual_too);
    end(&mut test, &begun, delivered());
    job(&mut test, &manual, true);
    plan(&mut test);
    let lines = delete(&mut test);
    assert_eq!((lines.len(), lines[0].event_count), (1, 1));
}
