//! Minted tags: which of them are answered, and how their records are removed.

use chrono::TimeDelta;
use serde_json::json;

use super::callbacks::{create, token};
use crate::callback::CallbackId;
use crate::decide::{ClearCallback, DeleteCallback, MintTags, NewMint, Refusal, RemoveMints};
use crate::limits::{
    CALLBACK_MINTS, CALLBACK_MINTS_FOR_EVER, CALLBACK_TOKEN_LIFE, RENDERED_LINES, WORKER_SESSION,
};
use crate::testing::TestWorld;
use crate::{Actor, Change, NamedValues};

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

const PROBE: &str = "scans: {probe: {on: {dispatch: {}}, callback: shop, steps: [{run: x}]}}";

#[test]
fn a_claim_mints_a_name_and_a_repeat_gets_the_same() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let workflow = test.push("probe", PROBE);
    let runner = test.runner("first", &[]);
    let mut names = Vec::new();
    for _ in 0..2 {
        let job = test.dispatch(workflow, "probe", json!({})).unwrap();
        test.claim(job, runner).unwrap();
        let end = test.now + WORKER_SESSION + CALLBACK_TOKEN_LIFE;
        let callback =
            |test: &TestWorld| test.world.job(job).unwrap().state.run().unwrap().callback;
        let first = callback(&test).unwrap();
        let shop = test.world.callback(server).unwrap();
        assert_eq!(
            (first.server, first.since),
            (server, shop.interactions.next)
        );
        let (number, _) = shop.minted_tag(first.tag).unwrap();
        let minted = test.decided.iter().find_map(|change| match change {
            Change::Minted(mint) if mint.number == number => Some(mint.clone()),
            _ => None,
        });
        let minted = minted.unwrap();
        assert_eq!((minted.lines, minted.expires_at), (1, Some(end)));
        let by = minted.job.clone().unwrap();
        assert_eq!((by.id, by.scan.scan.as_str()), (job, "probe"));
        test.claim(job, runner).unwrap();
        assert_eq!(callback(&test), Some(first));
        assert_eq!(
            test.world
                .callback(server)
                .unwrap()
                .minted
                .as_ref()
                .unwrap()
                .next,
            number + 1
        );
        names.push(first.tag);
    }
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_job_whose_callback_server_does_not_exist_is_told_what_to_create() {
    let mut test = TestWorld::new();
    let workflow = test.push("probe", PROBE);
    let runner = test.runner("first", &[]);
    let job = test.dispatch(workflow, "probe", json!({})).unwrap();
    test.claim(job, runner).unwrap();
    test.run(create("shop")).unwrap();
    let job = test.world.job(job).unwrap();
    assert_eq!(job.state.run().unwrap().callback, None);
    let revision = test.world.revision(job.revision.id).unwrap();
    let scan = revision.definition.scan("probe").unwrap();
    let missing = NamedValues::of(&test.world, job, scan, None).missing;
    assert!(missing["callback"].contains("everscan callback create shop --project recon"));
}
