//! Rules of notifications: those of the API, and those of the file of a repository.

use workflow::limits::{RULES, RULES_BYTES};
use workflow::notify::{NotifyName, Rule};

use super::deliveries::hook;
use super::sources::tip;
use crate::channel::Offered;
use crate::condition::Problem;
use crate::decide::{
    ConfigureSource, DeleteChannel, DeleteRule, Precondition, RecordTip, Refusal, SetChannel,
    SetRule,
};
use crate::plan::{HeldRemoval, Standing};
use crate::testing::{TestWorld, source};
use crate::{Change, ProjectId};

fn rule(name: &str, channel: &str) -> Rule {
    Rule {
        name: NotifyName::new(name).unwrap(),
        ..Rule::of(NotifyName::new(channel).unwrap())
    }
}

fn project() -> Option<ProjectId> {
    Some(ProjectId::of_source(&source()))
}

fn set(rule: Rule) -> SetRule {
    SetRule {
        project: project(),
        rule,
    }
}

fn delete(name: &str) -> DeleteRule {
    DeleteRule {
        project: project(),
        name: NotifyName::new(name).unwrap(),
    }
}

/// The rules in force, as `NAME to CHANNEL`.
fn rules(test: &TestWorld, project: Option<ProjectId>) -> Vec<String> {
    let rules = test.world.rules_of(project);
    rules
        .map(|rule| format!("{} to {}", rule.name, rule.channel))
        .collect()
}

#[test]
fn a_rule_is_set_replaced_and_deleted() {
    let mut test = TestWorld::new();
    test.run(set(rule("a", "ops"))).unwrap();
    test.run(set(rule("b", "ops"))).unwrap();
    test.run(set(rule("a", "team"))).unwrap();
    assert_eq!(rules(&test, project()), ["a to team", "b to ops"]);
    let (changes, ()) = test.changes(set(rule("a", "team"))).unwrap();
    assert!(changes.is_empty());
    test.run(delete("a")).unwrap();
    assert_eq!(rules(&test, project()), ["b to ops"]);
    let gone = test.run(delete("a"));
    assert!(
        matches!(
            gone,
            Err(Refusal::NoSuchRule {
                is_in_file: false,
                ..
            })
        ),
        "{gone:?}"
    );
}

#[test]
fn the_instance_has_rules_of_its_own() {
    let mut test = TestWorld::new();
    let of_instance = SetRule {
        project: None,
        rule: rule("a", "ops"),
    };
    test.run(of_instance).unwrap();
    assert_eq!(rules(&test, None), ["a to ops"]);
    assert_eq!(rules(&test, project()), [""; 0]);
    let unknown = SetRule {
        project: Some(ProjectId::of_source(&"other".parse().unwrap())),
        rule: rule("a", "ops"),
    };
    assert!(matches!(
        test.run(unknown),
        Err(Refusal::NoSuchProject { .. })
    ));
}

#[test]
fn the_number_and_the_bytes_of_rules_are_limited() {
    let mut test = TestWorld::new();
    for at in 0..RULES {
        test.run(set(rule(&format!("r{at}"), "ops"))).unwrap();
    }
    let refused = test.run(set(rule("more", "ops")));
    assert!(
        matches!(refused, Err(Refusal::InvalidField { field: "name", .. })),
        "{refused:?}"
    );
    let large = Rule {
        template: Some("x".repeat(RULES_BYTES)),
        ..rule("r0", "ops")
    };
    let refused = test.run(set(large));
    assert!(
        matches!(
            refused,
            Err(Refusal::InvalidField {
                field: "template",
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn the_rules_of_a_file_change_with_the_tip_and_an_invalid_file_keeps_them() {
    let mut test = TestWorld::new();
    let tip = |commit, rules| RecordTip {
        rules,
        ..tip(commit)
    };
    let (changes, ()) = test
        .changes(tip("one", Some(vec![rule("a", "ops")])))
        .unwrap();
    let kinds = |change: &Change| {
        matches!(
            change,
            Change::Rules(_) | Change::Source(_) | Change::Tip(_)
        )
    };
    assert_eq!(
        changes.iter().filter(|change| kinds(change)).count(),
        3,
        "{changes:?}"
    );
    test.run(tip("one", Some(vec![rule("a", "ops")]))).unwrap();
    test.run(tip("two", None)).unwrap();
    assert_eq!(rules(&test, project()), ["a to ops"]);
    let held = HeldRemoval {
        workflows: 2,
        names: Vec::new(),
        folder_changed: false,
    };
    let held = RecordTip {
        standing: Standing::Held(held),
        ..tip("three", Some(Vec::new()))
    };
    test.run(held).unwrap();
    assert_eq!(rules(&test, project()), ["a to ops"]);
    test.run(tip("four", Some(vec![rule("b", "ops")]))).unwrap();
    assert_eq!(rules(&test, project()), ["b to ops"]);
    test.run(tip("five", Some(Vec::new()))).unwrap();
    assert_eq!(rules(&test, project()), [""; 0]);
}

#[test]
fn a_rule_of_the_api_hides_the_rule_of_the_file_with_its_name() {
    let mut test = TestWorld::new();
    let file = Some(vec![rule("a", "ops"), rule("b", "ops")]);
    test.run(RecordTip {
        rules: file,
        ..tip("one")
    })
    .unwrap();
    test.run(set(rule("a", "team"))).unwrap();
    assert_eq!(rules(&test, project()), ["a to team", "b to ops"]);
    test.run(delete("a")).unwrap();
    assert_eq!(rules(&test, project()), ["a to ops", "b to ops"]);
    let in_file = test.run(delete("a"));
    assert!(
        matches!(
            in_file,
            Err(Refusal::NoSuchRule {
                is_in_file: true,
                ..
            })
        ),
        "{in_file:?}"
    );
}

/// The channels that conditions of the project call missing.
fn missing(test: &TestWorld) -> Vec<String> {
    let open = test
        .world
        .conditions()
        .filter_map(|open| match &open.problem {
            Problem::MissingChannel { name } => Some(name.clone()),
            _ => None,
        });
    open.collect()
}

#[test]
fn a_channel_that_only_rules_know_is_missing_until_it_is_there_or_the_rule_is_gone() {
    let mut test = TestWorld::new();
    test.run(set(rule("a", "ops"))).unwrap();
    assert_eq!(missing(&test), ["ops"]);
    test.run(hook(project(), "ops")).unwrap();
    assert_eq!(missing(&test), [""; 0]);
    let delete_channel = |project| DeleteChannel {
        project,
        name: NotifyName::new("ops").unwrap(),
        expects: Precondition::Anything,
    };
    test.run(delete_channel(project())).unwrap();
    assert_eq!(missing(&test), ["ops"]);
    test.run(delete("a")).unwrap();
    assert_eq!(missing(&test), [""; 0]);
    let file = Some(vec![rule("b", "team"), rule("c", "team")]);
    test.run(RecordTip {
        rules: file,
        ..tip("one")
    })
    .unwrap();
    assert_eq!(missing(&test), ["team"]);
}

#[test]
fn a_channel_of_the_instance_serves_only_projects_that_it_is_offered_to() {
    let mut test = TestWorld::new();
    test.run(hook(None, "ops")).unwrap();
    test.run(set(rule("a", "ops"))).unwrap();
    assert_eq!(missing(&test), ["ops"]);
    let offered = Offered::To(project().into_iter().collect());
    test.run(SetChannel {
        offered,
        ..hook(None, "ops")
    })
    .unwrap();
    assert_eq!(missing(&test), [""; 0]);
    test.run(hook(None, "ops")).unwrap();
    assert_eq!(missing(&test), ["ops"]);
}

#[test]
fn a_project_does_not_reach_the_channel_of_another_project() {
    let mut test = TestWorld::new();
    let other = ConfigureSource {
        name: "other".parse().unwrap(),
        url: "/other".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    };
    test.run(other).unwrap();
    let other = ProjectId::of_source(&"other".parse().unwrap());
    test.run(hook(Some(other), "ops")).unwrap();
    test.run(set(rule("a", "ops"))).unwrap();
    assert_eq!(missing(&test), ["ops"]);
}
