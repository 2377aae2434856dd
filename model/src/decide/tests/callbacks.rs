//! Callback servers: who has them, what they record, and how they are removed.

use std::sync::Arc;

use chrono::TimeDelta;

use super::deliveries::{name, project};
use crate::callback::{
    Callback, CallbackId, CallbackRule, CallbackRules, CallbackTag, Heard, IndexedPage,
    Interaction, InteractionChange, NewInteraction, Planted, Request, RuleAnswer,
};
use crate::condition::Problem;
use crate::decide::{
    ClearCallback, CreateCallback, CreateCallbackToken, DeleteCallback, EndCallbackToken,
    ExpireCallbackTokens, IndexInteractions, PageLines, RecordInteractions, Refusal,
    RemoveInteractions, SetCallbackRules,
};
use crate::limits::{CALLBACKS, INTERACTION_PAGE, INTERACTIONS};
use crate::moment::SeededEntropy;
use crate::testing::TestWorld;
use crate::{Actor, Change};

pub(super) fn create(text: &str) -> CreateCallback {
    CreateCallback {
        project: project().unwrap(),
        name: name(text),
        keep_days: Some(30),
        actor: Actor::Daemon,
    }
}

pub(super) fn token(server: CallbackId, life: Option<TimeDelta>) -> CreateCallbackToken {
    CreateCallbackToken {
        server,
        note: "login form of shop.example".to_owned(),
        life,
        actor: Actor::Daemon,
    }
}

fn hit(test: &TestWorld) -> NewInteraction {
    NewInteraction {
        heard: Heard {
            at: test.now,
            peer: "203.0.113.9:5353".parse().unwrap(),
            tag: None,
            request: Request::Dns {
                transport: "udp".to_owned(),
                name: "A.example".to_owned(),
                qtype: "A".to_owned(),
                client_subnet: None,
            },
            answer: "NOERROR".to_owned(),
            rule: None,
        },
        planted: Planted::default(),
        left_out: 0,
        repeats: 0,
        raw: vec![0; 40],
    }
}

fn record(test: &mut TestWorld, server: CallbackId, hits: usize) -> Vec<PageLines> {
    let new = Arc::new(vec![hit(test); hits]);
    let left_out = 0;
    test.run(RecordInteractions {
        server,
        new,
        left_out,
        unknown_tags: 0,
    })
    .unwrap()
}

fn indexed(test: &TestWorld, page: u64, count: u64) -> IndexedPage {
    IndexedPage {
        page,
        until: test.now,
        count,
        bytes: 10,
        tags: [String::new()].into(),
    }
}

fn callback(test: &TestWorld, server: CallbackId) -> Arc<Callback> {
    test.world.callback(server).unwrap().clone()
}

#[test]
fn a_project_has_a_limited_number_of_servers_with_different_names() {
    let mut test = TestWorld::new();
    for number in 0..CALLBACKS {
        test.run(create(&format!("server-{number}"))).unwrap();
    }
    let again = test.run(create("server-1")).unwrap_err();
    assert!(matches!(again, Refusal::CallbackExists { .. }), "{again}");
    let more = test.run(create("more")).unwrap_err();
    assert!(matches!(more, Refusal::TooManyCallbacks { .. }), "{more}");
    let first = test
        .world
        .callback_of(project().unwrap(), &name("server-1"));
    let server = first.unwrap().id;
    test.run(DeleteCallback { server }).unwrap();
    test.run(create("server-1")).unwrap();
    let refused = CreateCallback {
        keep_days: Some(0),
        ..create("days")
    };
    let refused = test.run(refused).unwrap_err();
    assert!(refused.to_string().starts_with("keep_days"), "{refused}");
}

#[test]
fn a_name_is_answered_until_it_ends_or_expires() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let tags = |test: &TestWorld| {
        let mut answered = test.world.answered_callbacks();
        answered.find(|(it, _)| it.id == server).unwrap().1.len()
    };
    let version = test.world.callbacks_version();
    let first = test.run(token(server, None)).unwrap();
    let day = Some(TimeDelta::days(1));
    let second = test.run(token(server, day)).unwrap();
    assert_ne!(test.world.callbacks_version(), version);
    assert_eq!(tags(&test), 2);
    test.pass(TimeDelta::days(1));
    assert!(test.run(ExpireCallbackTokens { now: test.now }).unwrap());
    assert!(!test.run(ExpireCallbackTokens { now: test.now }).unwrap());
    assert_eq!(tags(&test), 1);
    let end = |tag| EndCallbackToken { server, tag };
    test.run(end(first.tag)).unwrap();
    assert_eq!(tags(&test), 0);
    let again = test.run(end(second.tag)).unwrap_err();
    assert_eq!(again, Refusal::NoSuchCallbackToken);
    let refused = CreateCallbackToken {
        note: "two\nlines".to_owned(),
        ..token(server, None)
    };
    assert!(test.run(refused).is_err());
}

#[test]
fn rules_are_replaced_as_a_whole_and_count_as_a_change_of_answers() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let version = test.world.callbacks_version();
    let rule = |status| CallbackRule {
        name: name("redirect"),
        label: None,
        answer: RuleAnswer::Http {
            method: None,
            path: None,
            status,
            headers: [("Location".to_owned(), "http://127.0.0.1/".to_owned())].into(),
            body: String::new(),
            delay_ms: 0,
        },
    };
    let set = |status| SetCallbackRules {
        server,
        rules: CallbackRules {
            rules: vec![rule(status)],
            ..CallbackRules::default()
        },
    };
    test.run(set(302)).unwrap();
    assert!(test.world.callbacks_version() > version);
    assert!(test.changes(set(302)).unwrap().0.is_empty());
    let refused = test.run(set(42)).unwrap_err().to_string();
    assert!(refused.contains("rule `redirect`: status"), "{refused}");
    let version = test.world.callbacks_version();
    record(&mut test, server, 3);
    assert_eq!(callback(&test, server).rules.rules, [rule(302)]);
    assert_eq!(test.world.callbacks_version(), version);
}

#[test]
fn an_interaction_keeps_what_is_known_of_its_name() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let named = test.run(token(server, None)).unwrap();
    let planted = |test: &mut TestWorld, tag, planted: Planted| {
        let mut hit = hit(test);
        (hit.heard.tag, hit.planted) = (tag, planted);
        let record = RecordInteractions {
            server,
            new: Arc::new(vec![hit]),
            left_out: 0,
            unknown_tags: 0,
        };
        let page = &test.run(record).unwrap()[0];
        serde_json::from_str::<Interaction>(&page.text)
            .unwrap()
            .planted
    };
    let found = planted(&mut test, Some(named.tag), Planted::default());
    assert_eq!(found.note.as_deref(), Some("login form of shop.example"));
    let minted = Planted {
        target: Some("https://shop.example".to_owned()),
        ..Planted::default()
    };
    let tag = Some(CallbackTag::random(&mut SeededEntropy::new(1)));
    assert_eq!(planted(&mut test, tag, minted.clone()), minted);
    assert_eq!(
        planted(&mut test, None, Planted::default()),
        Planted::default()
    );
}

#[test]
fn interactions_are_numbered_and_their_number_leads_to_their_page() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let first = record(&mut test, server, 3);
    let [page] = &first[..] else {
        panic!("{first:?}")
    };
    assert_eq!((page.page, page.at, page.raw_at), (0, 0, 0));
    assert!(page.text.starts_with("{\"number\":1,"), "{}", page.text);
    assert_eq!(page.text.lines().count(), 3);
    let more = record(&mut test, server, 1_500);
    let places: Vec<_> = more.iter().map(|it| (it.page, it.new.clone())).collect();
    let rest = INTERACTION_PAGE as usize - 4;
    assert_eq!(places, [(0, 0..rest), (1, rest..1_500)]);
    assert_eq!(more[0].at, page.text.len() as u64);
    assert_eq!((more[0].raw_at, more[1].at, more[1].raw_at), (120, 0, 0));
    assert!(more[1].text.starts_with("{\"number\":1000,"));
    let end = callback(&test, server).interactions;
    assert_eq!((end.count, end.next), (1_503, 1_504));
    test.pass(TimeDelta::days(1));
    let tomorrow = record(&mut test, server, 1);
    assert!(tomorrow[0].text.starts_with("{\"number\":2000,"));
    let change = test.decided.iter().rev().find_map(|change| match change {
        Change::Interactions(_, change) => Some(change.clone()),
        _ => None,
    });
    let InteractionChange::Recorded(summary) = &*change.unwrap() else {
        panic!("nothing was recorded")
    };
    assert_eq!(
        (summary.first, summary.last, summary.count),
        (2_000, 2_000, 1)
    );
}

#[test]
fn a_full_server_records_nothing_more_and_loses_nothing_older() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    let mut full = Callback::clone(&callback(&test, server));
    full.interactions.count = INTERACTIONS - 1;
    test.world.apply(&Change::Callback(Arc::new(full)));
    let pages = record(&mut test, server, 3);
    assert_eq!(pages[0].text.lines().count(), 1);
    let end = callback(&test, server).interactions;
    assert_eq!((end.count, end.left_out), (INTERACTIONS, 2));
    let is_full = |test: &TestWorld| {
        let mut open = test.world.conditions();
        open.any(|it| matches!(it.problem, Problem::CallbackFull { .. }))
    };
    assert!(is_full(&test));
    assert!(record(&mut test, server, 1).is_empty());
    test.run(DeleteCallback { server }).unwrap();
    assert!(!is_full(&test));
}

#[test]
fn pages_are_indexed_and_removed_in_their_order() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    record(&mut test, server, 2_500);
    let index = |test: &mut TestWorld, page, count| {
        let index = IndexInteractions {
            server,
            line: indexed(test, page, count),
            next: page * INTERACTION_PAGE + count,
        };
        !test.changes(index).unwrap().0.is_empty()
    };
    assert!(!index(&mut test, 1, 1_000), "page 0 comes first");
    assert!(index(&mut test, 0, 999));
    assert!(!index(&mut test, 0, 999), "a page is indexed once");
    assert!(index(&mut test, 1, 1_000));
    assert!(!index(&mut test, 2, 500), "the page has grown");
    assert!(index(&mut test, 2, 501), "the page is closed");
    assert!(!index(&mut test, 3, 0), "the page is empty");
    let lines = test.decided.iter().filter_map(|change| match change {
        Change::Interactions(_, change) => match &**change {
            InteractionChange::Indexed { file, at, text } => Some((*file, *at, text.len() as u64)),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0].1 + lines[0].2, lines[1].1);
    let remove = |test: &TestWorld, pages: &[(u64, u64)]| RemoveInteractions {
        server,
        pages: pages
            .iter()
            .map(|(page, count)| indexed(test, *page, *count))
            .collect(),
    };
    let wrong = remove(&test, &[(1, 1_000)]);
    assert!(test.changes(wrong).unwrap().0.is_empty());
    let oldest = remove(&test, &[(0, 999), (1, 1_000)]);
    test.run(oldest).unwrap();
    let end = callback(&test, server).interactions;
    assert_eq!((end.oldest, end.count), (2, 501));
}

#[test]
fn a_deleted_server_is_gone_at_once_and_its_files_follow() {
    let mut test = TestWorld::new();
    let server = test.run(create("shop")).unwrap().id;
    for _ in 0..100 {
        test.run(token(server, None)).unwrap();
    }
    record(&mut test, server, 90_000);
    assert!(!test.run(ClearCallback { server }).unwrap(), "it is in use");
    test.run(DeleteCallback { server }).unwrap();
    assert_eq!(test.world.callback(server), None);
    assert_eq!(test.world.answered_callbacks().count(), 0);
    let hit = hit(&test);
    let late = RecordInteractions {
        server,
        new: Arc::new(vec![hit]),
        left_out: 0,
        unknown_tags: 0,
    };
    assert_eq!(test.run(late).unwrap_err(), Refusal::NoSuchCallback);
    let begun = test.decided.len();
    while test.run(ClearCallback { server }).unwrap() {}
    let pages = test.decided[begun..].iter().filter(|change| match change {
        Change::Interactions(_, change) => matches!(**change, InteractionChange::PageRemoved(_)),
        _ => false,
    });
    assert_eq!(pages.count(), 91);
    assert_eq!(test.world.deleted_callbacks().count(), 0);
    assert_eq!(test.world.callback_tokens(server).count(), 0);
}
