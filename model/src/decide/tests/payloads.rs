//! Payload groups: their variables, the versions of their payloads, their limits, and how they are removed.

use std::collections::BTreeSet;

use super::deliveries::{name, project};
use crate::decide::{
    ChangePayloadGroup, ClearPayloadGroup, CreatePayloadGroup, DeletePayload, DeletePayloadGroup,
    Precondition, Refusal, StorePayload,
};
use crate::limits::{
    PAYLOAD_BYTES, PAYLOAD_GROUPS, PAYLOAD_VARIABLES, PAYLOAD_VERSIONS, PAYLOADS, PAYLOADS_BYTES,
};
use crate::payload::{Payload, Variable};
use crate::testing::TestWorld;
use crate::{Actor, AuditKind, Change, PayloadGroupId, actions};

fn variable(name: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        placeholder: Variable::placeholder_of(name),
        default: None,
    }
}

fn create(text: &str) -> CreatePayloadGroup {
    CreatePayloadGroup {
        project: project().unwrap(),
        name: name(text),
        variables: vec![variable("TARGET")],
        serve: false,
        actor: Actor::Daemon,
    }
}

fn store(group: PayloadGroupId, name: &str, body: &str) -> StorePayload {
    StorePayload {
        group,
        name: name.parse().unwrap(),
        media_type: "text/plain".to_owned(),
        size: body.len() as u64,
        sha256: workflow::sha256(body.as_bytes()),
        expects: Precondition::Anything,
        actor: Actor::Daemon,
    }
}

fn payload(test: &TestWorld, group: PayloadGroupId, name: &str) -> Payload {
    let group = test.world.payload_group(group).unwrap();
    group.payloads[&name.parse().unwrap()].clone()
}

#[test]
fn versions_are_numbered_and_an_equal_body_is_no_version() {
    let mut test = TestWorld::new();
    let group = test.run(create("xss")).unwrap().id;
    let (first, is_new) = test.run(store(group, "a.svg", "one")).unwrap();
    assert!(is_new && first.edit.version == 1 && first.bytes == 3);
    let (same, is_new) = test.run(store(group, "a.svg", "one")).unwrap();
    assert!(!is_new && same == first);
    let (second, _) = test.run(store(group, "a.svg", "three")).unwrap();
    assert_eq!((second.edit.version, second.size, second.bytes), (2, 5, 8));
    assert!(second.has(1) && second.has(2) && !second.has(0) && !second.has(3));
    let typed = StorePayload {
        media_type: "image/svg+xml".to_owned(),
        ..store(group, "a.svg", "three")
    };
    assert_eq!(test.run(typed).unwrap().0.edit.version, 3);
    let expects = |expects| StorePayload {
        expects,
        ..store(group, "a.svg", "four")
    };
    for wrong in [
        Precondition::Absent,
        Precondition::OneOf(BTreeSet::from([2])),
    ] {
        let refused = test.run(expects(wrong));
        assert!(matches!(refused, Err(Refusal::PreconditionFailed { .. })));
    }
    let right = Precondition::OneOf(BTreeSet::from([3]));
    assert_eq!(test.run(expects(right)).unwrap().0.edit.version, 4);
}

#[test]
fn limits_say_which_one_is_reached() {
    let mut test = TestWorld::new();
    let group = test.run(create("g0")).unwrap().id;
    assert_eq!(
        test.run(create("g0")),
        Err(Refusal::PayloadGroupExists {
            name: "g0".to_owned()
        })
    );
    for at in 1..PAYLOAD_GROUPS {
        test.run(create(&format!("g{at}"))).unwrap();
    }
    let refused = |refused: Refusal| match refused {
        Refusal::PayloadLimit { what } => what,
        other => panic!("{other}"),
    };
    let what = refused(test.run(create("more")).unwrap_err());
    assert_eq!(what, "the project has 50 payload groups");
    let sized = |name: &str, size| StorePayload {
        size,
        sha256: format!("{name}{size}"),
        ..store(group, name, "")
    };
    let what = refused(test.run(sized("a", PAYLOAD_BYTES + 1)).unwrap_err());
    assert_eq!(what, "a payload has at most 10485760 bytes");
    for at in 0..PAYLOADS_BYTES / PAYLOAD_BYTES {
        test.run(sized(&format!("big{at}"), PAYLOAD_BYTES)).unwrap();
    }
    let rest = PAYLOADS_BYTES % PAYLOAD_BYTES;
    let what = refused(test.run(sized("a", rest + 1)).unwrap_err());
    assert!(
        what.starts_with("the payloads of the project have 1069547520 of"),
        "{what}"
    );
    for at in 0..PAYLOAD_VERSIONS {
        test.run(store(group, "often", &at.to_string())).unwrap();
    }
    let what = refused(test.run(store(group, "often", "more")).unwrap_err());
    assert_eq!(what, "the payload has 1000 versions");
    let known = test.world.payload_group(group).unwrap().payloads.len();
    for at in known..PAYLOADS {
        test.run(store(group, &format!("p{at}"), "x")).unwrap();
    }
    let what = refused(test.run(store(group, "more", "x")).unwrap_err());
    assert_eq!(what, "the group has 1000 payloads");
}

#[test]
fn a_group_is_private_until_it_is_served_and_the_audit_log_says_so() {
    let mut test = TestWorld::new();
    let group = test.run(create("xss")).unwrap();
    assert!(!group.serve);
    let change = |variables, serve| ChangePayloadGroup {
        group: group.id,
        variables,
        serve,
    };
    let before = test.world.clone();
    let (changes, served) = test.changes(change(None, Some(true))).unwrap();
    assert!(served.serve && served.variables == group.variables);
    let actions = actions(&before, test.now, &changes).into_iter();
    let kinds: Vec<_> = actions.map(|action| action.kind).collect();
    assert_eq!(kinds, [AuditKind::PayloadGroupChanged]);
    test.run(change(None, Some(true))).unwrap();
    let cleared = test.run(change(Some(Vec::new()), None)).unwrap();
    assert!(cleared.serve && cleared.variables.is_empty());
}

#[test]
fn variables_are_checked() {
    let mut test = TestWorld::new();
    let group = test.run(create("xss")).unwrap().id;
    let mut change = |variables: Vec<Variable>| {
        let command = ChangePayloadGroup {
            group,
            variables: Some(variables),
            serve: None,
        };
        test.run(command).map(|group| group.variables.len())
    };
    assert_eq!(change(vec![variable("A"), variable("B")]), Ok(2));
    let with = |placeholder: &str| Variable {
        placeholder: placeholder.to_owned(),
        ..variable("A")
    };
    for bad in [
        vec![variable("A"), variable("A")],
        vec![variable("B"), with("%%B%%")],
        vec![variable("")],
        vec![variable("a b")],
        vec![with("%")],
        vec![with("a|b")],
        vec![with("a\nb")],
        vec![with(&"x".repeat(65))],
        (0..=PAYLOAD_VARIABLES)
            .map(|at| variable(&format!("V{at}")))
            .collect(),
    ] {
        let refused = change(bad);
        assert!(matches!(
            refused,
            Err(Refusal::InvalidField {
                field: "variables",
                ..
            })
        ));
    }
}

#[test]
fn a_payload_and_a_group_are_removed_in_steps_with_all_their_versions() {
    let mut test = TestWorld::new();
    let group = test.run(create("xss")).unwrap().id;
    for version in 0..200 {
        test.run(store(group, "a", &version.to_string())).unwrap();
    }
    test.run(store(group, "b", "x")).unwrap();
    let delete = |name: &str| DeletePayload {
        group,
        name: name.parse().unwrap(),
        expects: Precondition::Anything,
    };
    assert!(test.run(delete("a")).unwrap());
    let left = payload(&test, group, "a");
    assert_eq!((left.oldest, left.edit.version), (91, 200));
    test.run(DeletePayloadGroup { group }).unwrap();
    assert_eq!(test.world.payload_group(group), None);
    assert_eq!(test.run(delete("a")), Err(Refusal::NoSuchPayloadGroup));
    // The name is free at once.
    test.run(create("xss")).unwrap();
    while test.run(ClearPayloadGroup { group }).unwrap() {}
    assert_eq!(test.world.deleted_payload_groups().count(), 0);
    let removed = test.decided.iter().filter_map(|change| match change {
        Change::PayloadVersionRemoved(of, name, version) if *of == group => {
            Some(format!("{name}@{version}"))
        }
        _ => None,
    });
    let removed: BTreeSet<String> = removed.collect();
    assert_eq!(removed.len(), 201);
    assert!(removed.contains("a@1") && removed.contains("a@200") && removed.contains("b@1"));
}
