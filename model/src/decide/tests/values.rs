//! Vars and secrets: their limits, their versions, and the values that a claim freezes.

use serde_json::json;

use crate::decide::{
    Complete, DeleteSecret, DeleteVar, Precondition, Refusal, Reseal, SetSecret, SetVar,
};
use crate::limits::{PROJECT_VALUES, SECRETS_BYTES, VALUE_BYTES, VARS_BYTES};
use crate::moment::SeededEntropy;
use crate::testing::{TestWorld, complete, source, succeeded};
use crate::{
    Actor, Change, Job, JobState, KeyState, NamedValues, ProjectId, SealingKey, SealingKeys,
    SecretValue,
};

const NAMES_VALUES: &str = "
scans:
  use:
    on: {dispatch: {}}
    env: {URL: '${{ vars.URL }}', KEY: '${{ secrets.KEY }}'}
    steps:
      - {run: one, if: 'has(vars.GONE) || secrets.LOST == \"\"'}
";

fn project() -> ProjectId {
    ProjectId::of_source(&source())
}

fn key() -> SealingKey {
    SealingKey::random(&mut SeededEntropy::new(9))
}

fn set_var(name: &str, value: &str) -> SetVar {
    SetVar {
        project: project(),
        name: name.to_owned(),
        value: value.to_owned(),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    }
}

fn set_secret(name: &str, value: &str) -> SetSecret {
    SetSecret {
        project: project(),
        name: name.to_owned(),
        value: SecretValue::new(value.to_owned()),
        key: key(),
        actor: Actor::Daemon,
        expects: Precondition::Anything,
    }
}

fn delete_var(name: &str) -> DeleteVar {
    DeleteVar {
        project: project(),
        name: name.to_owned(),
        expects: Precondition::Anything,
    }
}

fn delete_secret(name: &str) -> DeleteSecret {
    DeleteSecret {
        project: project(),
        name: name.to_owned(),
        expects: Precondition::Anything,
    }
}

/// The field of the refusal.
fn field<A>(answer: Result<A, Refusal>) -> &'static str {
    match answer {
        Err(Refusal::InvalidField { field, .. }) => field,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the value was accepted"),
    }
}

#[test]
fn a_var_is_set_kept_and_deleted_and_versions_are_never_reused() {
    let mut test = TestWorld::new();
    let first = test.run(set_var("URL", "a")).unwrap();
    assert_eq!((first.value.as_str(), first.edit.version), ("a", 1));
    assert_eq!((first.edit.at, &first.edit.by), (test.now, &Actor::Daemon));

    let (changes, same) = test.changes(set_var("URL", "a")).unwrap();
    assert!(changes.is_empty(), "setting the same value changes nothing");
    assert_eq!(same, first);
    assert_eq!(test.run(set_var("URL", "b")).unwrap().edit.version, 2);

    test.run(delete_var("URL")).unwrap();
    assert_eq!(
        test.run(delete_var("URL")),
        Err(Refusal::NoSuchVar {
            project: "recon".to_owned(),
            name: "URL".to_owned()
        })
    );
    assert_eq!(test.run(set_var("URL", "a")).unwrap().edit.version, 3);
}

#[test]
fn a_secret_is_sealed_for_its_version_and_opens_only_with_its_key() {
    let mut test = TestWorld::new();
    test.run(set_secret("KEY", "hunter2")).unwrap();
    let again = test.run(set_secret("KEY", "hunter2")).unwrap();
    assert_eq!(again.edit.version, 2, "every setting is a new version");
    let record = test.world.secrets(project()).unwrap();
    assert_eq!(
        record.open("KEY", &key().into()).unwrap().unwrap().reveal(),
        "hunter2"
    );
    let other = SealingKey::random(&mut SeededEntropy::new(10));
    assert!(record.open("KEY", &other.into()).unwrap().is_err());
    assert!(
        !serde_json::to_string(&**record)
            .unwrap()
            .contains("hunter2")
    );

    test.run(delete_secret("KEY")).unwrap();
    assert_eq!(
        test.run(delete_secret("KEY")),
        Err(Refusal::NoSuchSecret {
            project: "recon".to_owned(),
            name: "KEY".to_owned()
        })
    );
    assert_eq!(
        test.run(set_secret("KEY", "hunter2")).unwrap().edit.version,
        3
    );
}

#[test]
fn an_edit_for_another_version_is_refused() {
    let refused = |what, present| {
        Err(Refusal::PreconditionFailed {
            what,
            name: "URL".to_owned(),
            present,
            must_be_new: false,
        })
    };
    let version = |number| Precondition::OneOf([number].into());
    let mut test = TestWorld::new();
    let set = |value: &str, expects| SetVar {
        expects,
        ..set_var("URL", value)
    };
    for expects in [Precondition::Present, version(1)] {
        let refusal = test.run(set("a", expects)).map(drop);
        assert_eq!(refusal, refused("var", None));
    }
    test.run(set("a", Precondition::Absent)).unwrap();
    let again = test.run(set("a", Precondition::Absent)).map(drop);
    let text = again.unwrap_err().to_string();
    assert_eq!(text, "var `URL` exists already", "even with the same value");
    test.run(set("b", version(1))).unwrap();
    let late = test.run(set("c", version(1))).map(drop);
    assert_eq!(late, refused("var", Some(2)));
    let delete = |expects| DeleteVar {
        expects,
        ..delete_var("URL")
    };
    assert_eq!(test.run(delete(version(1))), refused("var", Some(2)));
    test.run(delete(version(2))).unwrap();
    let gone = test.run(delete(version(2)));
    assert!(matches!(gone, Err(Refusal::NoSuchVar { .. })), "{gone:?}");

    let set = |expects| SetSecret {
        expects,
        ..set_secret("URL", "hunter2")
    };
    let delete = |expects| DeleteSecret {
        expects,
        ..delete_secret("URL")
    };
    test.run(set(Precondition::Absent)).unwrap();
    test.run(set(version(1))).unwrap();
    let late = test.run(set(version(1))).map(drop);
    assert_eq!(late, refused("secret", Some(2)));
    assert_eq!(test.run(delete(version(1))), refused("secret", Some(2)));
    test.run(delete(Precondition::Present)).unwrap();
}

#[test]
fn names_and_values_have_limits() {
    let mut test = TestWorld::new();
    for name in ["", "1a", "a-b", "in", &"a".repeat(65)] {
        assert_eq!(field(test.run(set_var(name, "x"))), "name", "{name}");
        assert_eq!(
            field(test.run(set_secret(name, "long enough"))),
            "name",
            "{name}"
        );
    }
    let long = "x".repeat(VALUE_BYTES + 1);
    assert_eq!(field(test.run(set_var("A", &long))), "value");
    assert_eq!(field(test.run(set_secret("A", &long))), "value");
    for short in ["", "ab", " a \n", "\n\n\n"] {
        assert_eq!(
            field(test.run(set_secret("A", short))),
            "value",
            "{short:?}"
        );
    }
    test.run(set_secret("A", "äöü")).unwrap();
    let elsewhere = SetVar {
        project: ProjectId::of_source(&"other".parse().unwrap()),
        ..set_var("A", "x")
    };
    assert!(matches!(
        test.run(elsewhere),
        Err(Refusal::NoSuchProject { .. })
    ));
}

#[test]
fn the_values_of_a_project_are_bounded() {
    let mut test = TestWorld::new();
    // A control character takes six bytes of JSON.
    test.run(set_var("A", &"\u{1}".repeat(VARS_BYTES / 6 - 10)))
        .unwrap();
    assert_eq!(field(test.run(set_var("B", &"x".repeat(100)))), "value");
    test.run(set_var("A", "x")).unwrap();
    for number in 1..PROJECT_VALUES {
        test.run(set_var(&format!("V{number}"), "x")).unwrap();
    }
    assert_eq!(field(test.run(set_var("ONE_MORE", "x"))), "name");

    let part = "x".repeat(VALUE_BYTES);
    let parts = SECRETS_BYTES / VALUE_BYTES as u64;
    for number in 0..parts {
        test.run(set_secret(&format!("S{number}"), &part)).unwrap();
    }
    assert_eq!(field(test.run(set_secret("ONE_MORE", "xyz"))), "value");
}

fn claimed(test: &mut TestWorld) -> Job {
    let workflow = test.push("use", NAMES_VALUES);
    let runner = test.runner("first", &[]);
    let job = test.dispatch(workflow, "use", json!({})).unwrap();
    test.claim(job, runner).unwrap();
    Job::clone(test.world.job(job).unwrap())
}

fn named(test: &TestWorld, job: &Job, key: Option<&SealingKey>) -> NamedValues {
    let keys = key.map(|key| SealingKeys::from(key.clone()));
    let revision = test.world.revision(job.revision.id).unwrap();
    let scan = revision.definition.scan("use").unwrap();
    NamedValues::of(&test.world, job, scan, keys.as_ref())
}

#[test]
fn a_claim_freezes_the_named_vars_but_no_secret_values() {
    let mut test = TestWorld::new();
    test.run(set_var("URL", "https://localhost")).unwrap();
    test.run(set_var("OTHER", "x")).unwrap();
    test.run(set_secret("OTHER", "unnamed")).unwrap();
    test.run(set_secret("KEY", "hunter2")).unwrap();
    let job = claimed(&mut test);
    let JobState::Running { run } = &job.state else {
        panic!("{:?}", job.state);
    };
    assert_eq!(json!(run.context.vars), json!({"URL": "https://localhost"}));
    assert_eq!(json!(run.secrets), json!({"KEY": 2}));
    assert!(!format!("{} {job:?}", json!(job)).contains("hunter2"));

    test.run(set_var("URL", "changed")).unwrap();
    test.run(set_secret("KEY", "changed")).unwrap();
    let found = named(&test, &job, Some(&key()));
    assert_eq!(found.secrets.keys().collect::<Vec<_>>(), ["KEY"]);
    assert_eq!(
        found.secrets["KEY"].reveal(),
        "changed",
        "the earlier value is not kept"
    );
    assert_eq!(
        json!(found.missing),
        json!({
            "vars.GONE": "is not set in project recon (everscan var set GONE VALUE)",
            "secrets.LOST": "is not set in project recon (everscan secret set LOST)",
        })
    );
}

#[test]
fn a_secret_that_cannot_be_opened_is_missing_with_the_reason() {
    let mut test = TestWorld::new();
    test.run(set_secret("KEY", "hunter2")).unwrap();
    let job = claimed(&mut test);
    let other = SealingKey::random(&mut SeededEntropy::new(10));
    for (key, wanted) in [
        (None, "--secret-key-file"),
        (Some(&other), "sealed with the key"),
    ] {
        let found = named(&test, &job, key);
        assert!(found.secrets.is_empty());
        assert!(
            found.missing["secrets.KEY"].contains(wanted),
            "{:?}",
            found.missing
        );
    }
    test.run(delete_secret("KEY")).unwrap();
    let found = named(&test, &job, Some(&key()));
    assert!(
        found.missing["secrets.KEY"].contains("was deleted"),
        "{:?}",
        found.missing
    );
}

#[test]
fn changes_carry_the_complete_record() {
    let mut test = TestWorld::new();
    test.run(set_var("A", "x")).unwrap();
    let (changes, _) = test.changes(set_var("B", "y")).unwrap();
    let [Change::Vars(record)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(record.vars.len(), 2);
}

#[test]
fn an_expression_that_starts_jobs_reads_vars() {
    const FOLLOW: &str = "
scans:
  first:
    on: {dispatch: {}}
    steps: [{run: one}]
  then:
    on: {expr: 'scans.first.is_available() && vars.MODE == \"on\"'}
    steps: [{run: one}]
";
    let mut test = TestWorld::new();
    let workflow = test.push("follow", FOLLOW);
    let runner = test.runner("first", &[]);
    for (mode, follows) in [("off", false), ("on", true)] {
        test.run(set_var("MODE", mode)).unwrap();
        let job = test.dispatch(workflow, "first", json!({})).unwrap();
        let token = test.claim(job, runner).unwrap();
        let end = Complete {
            steps: succeeded(1),
            ..complete(job, token)
        };
        test.run(end).unwrap();
        let waits = test.world.jobs().any(|job| job.scan.as_str() == "then");
        assert_eq!(waits, follows, "{mode}");
    }
}

#[test]
fn secrets_of_an_old_key_are_sealed_with_the_current_key() {
    let mut test = TestWorld::new();
    test.run(set_secret("A", "hunter2")).unwrap();
    test.run(set_secret("B", "hunter3")).unwrap();
    let lost = SealingKey::random(&mut SeededEntropy::new(11));
    let elsewhere = SetSecret {
        key: lost.clone(),
        ..set_secret("LOST", "hunter4")
    };
    test.run(elsewhere).unwrap();
    let before = test.world.secrets(project()).unwrap().clone();
    let present = SealingKey::random(&mut SeededEntropy::new(10));
    let keys = SealingKeys::new(present.clone(), vec![key()]);
    assert_eq!(keys.state_of(&key().id()), KeyState::Old);
    assert_eq!(
        before.open("A", &keys).unwrap().unwrap().reveal(),
        "hunter2"
    );

    let seal = Reseal {
        project: project(),
        keys,
    };
    let answer = test.run(seal.clone()).unwrap();
    assert_eq!((answer.secrets, answer.damaged.as_slice()), (2, &[][..]));
    let after = test.world.secrets(project()).unwrap().clone();
    assert_eq!(after.latest_version, before.latest_version);
    let only_current = SealingKeys::from(present.clone());
    for (name, value) in [("A", "hunter2"), ("B", "hunter3")] {
        assert_eq!(
            after.open(name, &only_current).unwrap().unwrap().reveal(),
            value
        );
        assert_eq!(after.secrets[name].edit, before.secrets[name].edit);
    }
    assert_eq!(after.secrets["LOST"], before.secrets["LOST"]);
    assert_eq!(after.sealed_with(&present.id()), 2);
    assert_eq!(only_current.state_of(&lost.id()), KeyState::Missing);

    let (changes, again) = test.changes(seal).unwrap();
    assert!(
        changes.is_empty() && again.secrets == 0,
        "a repeat changes nothing"
    );
}

#[test]
fn a_damaged_secret_is_named_and_stays_unchanged() {
    let mut test = TestWorld::new();
    test.run(set_secret("A", "hunter2")).unwrap();
    // A sealed value that was copied to another name cannot be opened.
    let mut record = crate::ProjectSecrets::clone(test.world.secrets(project()).unwrap());
    let copied = record.secrets["A"].clone();
    record.secrets.insert("COPY".to_owned(), copied.clone());
    test.world.apply(&Change::Secrets(record.into()));
    let present = SealingKey::random(&mut SeededEntropy::new(10));
    let seal = Reseal {
        project: project(),
        keys: SealingKeys::new(present, vec![key()]),
    };
    let answer = test.run(seal).unwrap();
    assert_eq!(
        (answer.secrets, answer.damaged),
        (1, vec!["COPY".to_owned()])
    );
    let after = test.world.secrets(project()).unwrap();
    assert_eq!(after.secrets["COPY"], copied);
}
