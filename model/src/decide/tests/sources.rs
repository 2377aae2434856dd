//! Sources: configuration, polls, tips and their conditions.

use chrono::TimeDelta;
use workflow::{Code, Diagnostic, LinesOfFile};

use crate::decide::{ApproveRemoval, ConfigureSource, DropSource, RecordPoll, RecordTip, Refusal};
use crate::limits::{DECISION_CHANGES, STALE_FILES_BYTES, TIP_VERDICTS_BYTES};
use crate::plan::{HeldRemoval, Standing};
use crate::testing::{NIGHTLY, TestWorld, source};
use crate::{
    Change, FileOutcome, FileVerdict, Reason, Removal, Source, SourceConditionKind, StaleFile,
    Status, WorkflowId,
};

pub(super) fn tip(commit: &str) -> RecordTip {
    RecordTip {
        name: source(),
        commit: commit.to_owned(),
        summary: "add nightly".to_owned(),
        author: "Ada".to_owned(),
        history_rewritten: false,
        skipped: Vec::new(),
        more_skipped: false,
        files: Vec::new(),
        stale_files: Vec::new(),
        rules: None,
        warnings: Vec::new(),
        file_count: 2,
        standing: Standing::Applied,
        default_reference: None,
    }
}

fn poll(status: Status, reason: Reason) -> RecordPoll {
    RecordPoll {
        name: source(),
        status,
        reason,
    }
}

fn stale(test: &TestWorld, file: &str, messages: usize) -> StaleFile {
    let diagnostic = Diagnostic::of_file(file, Code::Syntax, "no YAML".repeat(20), None);
    StaleFile {
        file: file.to_owned(),
        workflow: WorkflowId::derive(&source(), file),
        commit: "c0ffee".to_owned(),
        since: test.now,
        diagnostics: vec![diagnostic; messages],
        excerpt: Some(LinesOfFile {
            first: 1,
            lines: vec!["a line of it".repeat(10); 5],
        }),
    }
}

fn record(test: &TestWorld) -> &Source {
    test.world.source(&source()).unwrap()
}

fn conditions(test: &TestWorld) -> Vec<(&'static str, &'static str, &'static str)> {
    let conditions = record(test).conditions.iter();
    conditions
        .map(|it| (it.kind.name(), it.status.name(), it.reason.code()))
        .collect()
}

/// The codes of the open conditions. Nothing is listed twice.
fn open(test: &TestWorld) -> Vec<&'static str> {
    let open = test.world.conditions();
    open.map(|open| open.problem.code()).collect()
}

#[test]
fn a_source_follows_the_configuration() {
    let mut test = TestWorld::new();
    assert_eq!(conditions(&test), [("Fetched", "unknown", "never_fetched")]);
    let configure = ConfigureSource {
        name: source(),
        url: "/srv/elsewhere.git".to_owned(),
        reference: Some("main".to_owned()),
        folder: "flows".to_owned(),
        interval_seconds: 5,
    };
    test.run(tip("a")).unwrap();
    test.run(configure.clone()).unwrap();
    assert_eq!(record(&test).url, "/srv/elsewhere.git");
    assert!(record(&test).tip.is_some());
    let (changes, ()) = test.changes(configure).unwrap();
    assert!(changes.is_empty());

    test.run(DropSource { name: source() }).unwrap();
    assert!(!record(&test).configured);
    let name = "other".parse().unwrap();
    let refusal = test.run(DropSource { name });
    assert!(matches!(refusal, Err(Refusal::NoSuchSource { .. })));
}

#[test]
fn the_conditions_follow_the_tip() {
    let mut test = TestWorld::new();
    test.run(tip("a")).unwrap();
    assert_eq!(
        conditions(&test),
        [
            ("Fetched", "true", "fetched"),
            ("Valid", "true", "files_valid"),
            ("Active", "true", "tip_active"),
        ]
    );
    let invalid = RecordTip {
        stale_files: vec![stale(&test, "x.yaml", 1)],
        ..tip("b")
    };
    test.run(invalid).unwrap();
    assert_eq!(
        conditions(&test),
        [
            ("Fetched", "true", "fetched"),
            ("Valid", "false", "files_invalid"),
            ("Active", "false", "tip_partly_active"),
        ]
    );
    assert_eq!(open(&test), ["invalid_file"]);
    let missing = RecordTip {
        standing: Standing::NoFolder,
        file_count: 0,
        ..tip("c")
    };
    let without_files = RecordTip {
        file_count: 0,
        ..tip("d")
    };
    let link = RecordTip {
        standing: Standing::Unreadable("it is a link".to_owned()),
        file_count: 0,
        ..tip("e")
    };
    for (tip, valid, active, reason, problem) in [
        (missing, "true", "true", "folder_missing", None),
        (without_files, "true", "true", "no_workflows", None),
        (
            link,
            "unknown",
            "false",
            "folder_unreadable",
            Some("source_failing"),
        ),
        (
            held("f"),
            "unknown",
            "false",
            "removal_held",
            Some("removal_held"),
        ),
    ] {
        test.run(tip).unwrap();
        assert_eq!(
            conditions(&test),
            [
                ("Fetched", "true", "fetched"),
                ("Valid", valid, reason),
                ("Active", active, reason),
            ]
        );
        assert_eq!(open(&test), Vec::from_iter(problem));
    }
    assert_eq!(record(&test).applied_commit.as_deref(), Some("d"));
}

fn held(commit: &str) -> RecordTip {
    let removal = HeldRemoval {
        workflows: 12,
        names: vec!["a".to_owned(), "b".to_owned()],
        folder_changed: false,
    };
    RecordTip {
        standing: Standing::Held(removal),
        file_count: 0,
        ..tip(commit)
    }
}

#[test]
fn an_approval_is_valid_for_one_commit_and_one_configuration() {
    let mut test = TestWorld::new();
    let approve = |commit: &str| ApproveRemoval {
        name: source(),
        commit: commit.to_owned(),
    };
    let refused = |test: &mut TestWorld, commit: &str| {
        let refusal = test.run(approve(commit));
        assert!(matches!(refusal, Err(Refusal::NotTheTip { .. })));
    };
    refused(&mut test, "a");
    test.run(tip("a")).unwrap();
    let (changes, ()) = test.changes(approve("a")).unwrap();
    assert!(changes.is_empty(), "the tip is not held");
    test.run(held("b")).unwrap();
    let message = record(&test).conditions[2].reason.to_string();
    assert_eq!(
        message,
        "all 12 workflows would retire (a, b and 10 more); the tip is held and what was active stays active, until \
         `everscan source approve recon`"
    );
    refused(&mut test, "a");
    test.run(approve("b")).unwrap();
    assert_eq!(record(&test).removal, Some(Removal::Approved));
    let (changes, ()) = test.changes(approve("b")).unwrap();
    assert!(changes.is_empty());

    // This tip was planned before the approval and is recorded after it.
    test.run(held("b")).unwrap();
    assert_eq!(record(&test).removal, Some(Removal::Approved));
    // A later commit or a changed configuration needs a new approval.
    test.run(held("c")).unwrap();
    assert_eq!(record(&test).removal, Some(Removal::Held));
    test.run(approve("c")).unwrap();
    let configure = ConfigureSource {
        name: source(),
        url: "/srv/recon.git".to_owned(),
        reference: None,
        folder: "flows".to_owned(),
        interval_seconds: 60,
    };
    test.run(configure).unwrap();
    assert_eq!(record(&test).removal, Some(Removal::Held));
    test.run(tip("d")).unwrap();
    assert_eq!(record(&test).removal, None);
    assert_eq!(record(&test).applied_commit, None);
}

#[test]
fn a_poll_with_the_same_outcome_changes_nothing() {
    let mut test = TestWorld::new();
    test.run(poll(Status::True, Reason::Fetched)).unwrap();
    let since = test.now;
    test.pass(TimeDelta::minutes(1));
    let (changes, ()) = test.changes(poll(Status::True, Reason::Fetched)).unwrap();
    assert!(changes.is_empty());

    let failed = |message: &str| Reason::FetchFailed {
        message: message.to_owned(),
    };
    test.run(poll(Status::False, failed("one"))).unwrap();
    let broke = test.now;
    test.pass(TimeDelta::minutes(1));
    test.run(poll(Status::False, failed("two"))).unwrap();
    let fetched = record(&test).conditions[0].clone();
    assert_eq!(fetched.kind, SourceConditionKind::Fetched);
    assert_eq!(fetched.reason, failed("two"));
    assert!(since < broke && fetched.changed_at == broke);
}

#[test]
fn every_new_tip_gets_a_numbered_record() {
    let mut test = TestWorld::new();
    for (number, commit) in [(1, "a"), (2, "b"), (3, "a")] {
        let (changes, ()) = test.changes(tip(commit)).unwrap();
        let [Change::Source(source), Change::Tip(record)] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!(
            (record.tip.number, record.tip.commit.as_str()),
            (number, commit)
        );
        assert_eq!(source.tip.as_ref(), Some(&record.tip));
        let (changes, ()) = test.changes(tip(commit)).unwrap();
        assert!(changes.is_empty());
    }
}

#[test]
fn the_size_of_records_is_bounded() {
    let mut test = TestWorld::new();
    let name = |number: usize| format!("workflows/{number}/{}.yaml", "x".repeat(150));
    let stale_files = (0..4_000).map(|at| stale(&test, &name(at), 100)).collect();
    let verdict = |at| FileVerdict {
        file: name(at),
        verdict: FileOutcome::Invalid,
    };
    let command = RecordTip {
        stale_files,
        files: (0..4_000).map(verdict).collect(),
        warnings: Vec::new(),
        file_count: 4_000,
        ..tip("a")
    };
    let (changes, ()) = test.changes(command).unwrap();
    // As many conditions as fit are opened at once, the others later.
    let [Change::Source(source), Change::Tip(tip), opened @ ..] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert!(changes.len() <= DECISION_CHANGES);
    let is_of_a_condition = |it: &Change| {
        matches!(
            it,
            Change::Condition(_) | Change::Event(_) | Change::Outgoing(_)
        )
    };
    assert!(opened.iter().all(is_of_a_condition));
    let bytes = |value: serde_json::Value| value.to_string().len();
    assert!(bytes(serde_json::json!(**source)) < STALE_FILES_BYTES + 4_096);
    assert!(bytes(serde_json::json!(**tip)) < TIP_VERDICTS_BYTES + 4_096);
    assert!(source.stale_files.len() > 500 && tip.files.len() > 500);
    let invalid = Reason::FilesInvalid {
        invalid: 4_000,
        files: 4_000,
        without_good: 4_000,
    };
    assert!(source.conditions.iter().any(|it| it.reason == invalid));
}

#[test]
fn invalid_files_with_and_without_a_valid_version_are_counted() {
    let mut test = TestWorld::new();
    for (number, good) in [(2, None), (1, Some("a.yaml")), (0, Some("b.yaml"))] {
        if let Some(name) = good {
            test.push(name, NIGHTLY);
        }
        let command = RecordTip {
            stale_files: vec![stale(&test, "a.yaml", 1), stale(&test, "b.yaml", 1)],
            ..tip("a")
        };
        test.run(command).unwrap();
        let reason = Reason::FilesInvalid {
            invalid: 2,
            files: 2,
            without_good: number,
        };
        let conditions = &record(&test).conditions;
        assert!(
            conditions.iter().any(|it| it.reason == reason),
            "{conditions:?}"
        );
    }
}

#[test]
fn a_few_stale_files_keep_all_their_diagnostics() {
    let mut test = TestWorld::new();
    let command = RecordTip {
        stale_files: vec![stale(&test, "a.yaml", 100), stale(&test, "b.yaml", 3)],
        ..tip("a")
    };
    test.run(command).unwrap();
    let kept = record(&test).stale_files.iter();
    let counts: Vec<usize> = kept.map(|stale| stale.diagnostics.len()).collect();
    assert_eq!(counts, [100, 3]);
    let mut kept = record(&test).stale_files.iter();
    assert!(kept.all(|stale| stale.excerpt.is_some()));
}
