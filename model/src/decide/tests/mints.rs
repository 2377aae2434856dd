//! Minted tags: which of them are answered, and how their records are removed.

use chrono::TimeDelta;

use super::callbacks::{create, token};
use crate::callback::CallbackId;
use crate::decide::{ClearCallback, DeleteCallback, MintTags, NewMint, Refusal, RemoveMints};
use crate::limits::{CALLBACK_MINTS, CALLBACK_MINTS_FOR_EVER, RENDERED_LINES};
use crate::testing::TestWorld;
use crate::{Actor, Change};

const DAY: TimeDelta = TimeDelta::days(1);

fn tags(server: CallbackId, life: Option<TimeDelta>) -> MintTags {
    MintTags {
        server,
        lines: 2,
        note: String::new(),
        life,
        job: None,
        group: None,
        actor: Actor::Daemon,
    }
}

fn answered(test: &TestWorld, server: CallbackId, mint: &NewMint) -> Option<(u32, u32)> {
    let mut servers = test.world.answered_callbacks();
    let (callback, _) = servers.find(|(it, _)| it.id == server)?;
    callback.minted_tag(mint.tag(1).unwrap())
}

fn records(test: &TestWorld) -> Vec<u32> {
    let mut numbers = Vec::new();
    for change in &test.decided {
        match change {
            Change::Minted(mint) => numbers.push(mint.number),
            Change::MintRemoved(_, number) => numbers.retain(|it| it != number),
            _ => {}
        }
    }
    numbers
}

#[test]
fn tags_are_answered_without_a_change_of_the_table_until_they_are_removed() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let first = test.run(tags(server, Some(DAY))).unwrap();
    let version = test.world.callbacks_version();
    let second = test.run(tags(server, Some(DAY))).unwrap();
    assert_eq!(test.world.callbacks_version(), version);
    assert_eq!(answered(&test, server, &first), Some((0, 1)));
    assert_eq!(answered(&test, server, &second), Some((1, 1)));
    let single = test.run(token(server, None)).unwrap().tag;
    let callback = test.world.callback(server).unwrap();
    assert_eq!(callback.minted_tag(single), None);

    let for_ever = test.run(tags(server, None)).unwrap();
    let remove = |first, until| RemoveMints {
        server,
        first,
        until,
    };
    for wrong in [remove(1, 2), remove(0, 4), remove(0, u32::MAX)] {
        assert!(test.changes(wrong).unwrap().0.is_empty());
    }
    test.run(remove(0, 1)).unwrap();
    assert_ne!(test.world.callbacks_version(), version);
    assert_eq!(answered(&test, server, &first), None);
    assert_eq!(answered(&test, server, &second), Some((1, 1)));
    test.run(remove(1, 3)).unwrap();
    assert_eq!(answered(&test, server, &second), None);
    assert_eq!(answered(&test, server, &for_ever), Some((2, 1)));
    assert_eq!(records(&test), [2]);

    test.run(tags(server, Some(DAY))).unwrap();
    test.run(DeleteCallback { server }).unwrap();
    while test.run(ClearCallback { server }).unwrap() {}
    assert_eq!(records(&test), [0; 0]);
    assert_eq!(test.world.deleted_callbacks().count(), 0);
}

#[test]
fn what_has_no_end_is_limited() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    for _ in 0..CALLBACK_MINTS_FOR_EVER {
        test.run(tags(server, None)).unwrap();
    }
    let refused = test.run(tags(server, None)).unwrap_err().to_string();
    assert!(refused.contains("never expire"), "{refused}");
    for lines in [0, RENDERED_LINES + 1] {
        let wrong = MintTags {
            lines,
            ..tags(server, Some(DAY))
        };
        let refused = test.run(wrong).unwrap_err().to_string();
        assert!(refused.starts_with("lines"), "{refused}");
    }
    let refused = test.run(tags(server, Some(-DAY))).unwrap_err().to_string();
    assert!(refused.starts_with("expires_in"), "{refused}");
    let mut full = test.world.callback(server).unwrap().as_ref().clone();
    full.minted.as_mut().unwrap().next = CALLBACK_MINTS;
    test.world.apply(&Change::Callback(full.into()));
    let refused = test.run(tags(server, Some(DAY))).unwrap_err();
    assert!(matches!(refused, Refusal::TooManyCallbackTokens { .. }));
}
