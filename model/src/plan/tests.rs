//! Plans as data: the active workflows, the files of a tip, and the planned changes.

mod files;

use serde_json::json;
use workflow::Code;

use super::*;
use crate::decide::{ApproveRemoval, ConfigureSource, RecordTip};
use crate::testing::{NIGHTLY, TestWorld, definition, sha256, source};

/// A world whose source has the workflows at the top of its repository.
fn new_test() -> TestWorld {
    let mut test = TestWorld::new();
    configure(&mut test, "");
    test
}

fn configure(test: &mut TestWorld, folder: &str) {
    let source = ConfigureSource {
        name: source(),
        url: "/srv/recon.git".to_owned(),
        reference: None,
        folder: folder.to_owned(),
        interval_seconds: 60,
    };
    test.run(source).unwrap();
}

/// A file of a tip: path and content. `same` means an unchanged text, `bad` and `worse` an invalid text.
type File<'a> = (&'a str, &'a str);

fn desired(commit: &str, files: &[File<'_>]) -> DesiredTip {
    let content = |path: &str, text: &str| match text {
        "same" => DesiredContent::Unchanged,
        "bad" | "worse" => {
            let problem = Diagnostic::of_file(path, Code::Syntax, text.to_owned(), None);
            DesiredContent::Invalid {
                diagnostics: vec![problem; 2 * STALE_DIAGNOSTICS],
                excerpt: Some(LinesOfFile {
                    first: 1,
                    lines: vec![text.to_owned()],
                }),
            }
        }
        text => DesiredContent::Valid {
            text: Arc::from(text),
            sha256: sha256(text),
            definition: definition(text),
            warnings: Vec::new(),
        },
    };
    let file = |(path, text): &File<'_>| DesiredFile {
        file: (*path).to_owned(),
        name: path.split('.').next().unwrap_or(path).to_owned(),
        content: content(path, text),
    };
    DesiredTip {
        commit: commit.to_owned(),
        files: files.iter().map(file).collect(),
        folder: TipFolder::Read,
    }
}

fn planned(test: &TestWorld, tip: DesiredTip) -> TipPlan {
    let source = test.world.source(&source()).unwrap();
    plan(source, tip, &test.world, test.now)
}

/// Applies a plan as the reconciler does.
fn apply(test: &mut TestWorld, tip: DesiredTip) {
    let commit = tip.commit.clone();
    let file_count = tip.files.len() as u64;
    let plan = planned(test, tip);
    for hold in plan.hold {
        test.run(hold).unwrap();
    }
    for activate in plan.activate {
        test.run(activate).unwrap();
    }
    for retire in plan.retire {
        test.run(retire).unwrap();
    }
    let record = RecordTip {
        name: source(),
        commit,
        summary: String::new(),
        author: String::new(),
        history_rewritten: false,
        skipped: Vec::new(),
        more_skipped: false,
        files: plan.verdicts,
        stale_files: plan.stale,
        rules: None,
        warnings: Vec::new(),
        file_count,
        standing: plan.standing,
        default_reference: None,
    };
    test.run(record).unwrap();
}

/// Checks the plan for the tip `after` when the tip `before` is active.
fn check(before: &[File<'_>], after: &[File<'_>], verdicts: &[(&str, &str)], stale: &[&str]) {
    let mut test = new_test();
    apply(&mut test, desired("a", before));
    let plan = planned(&test, desired("b", after));
    let found: Vec<_> = plan
        .verdicts
        .iter()
        .map(|found| (found.file.clone(), json!(found.verdict)))
        .collect();
    let expected: Vec<_> = verdicts
        .iter()
        .map(|(file, verdict)| ((*file).to_owned(), json!(verdict)))
        .collect();
    assert_eq!(found, expected, "{before:?} {after:?}");
    let files: Vec<_> = plan.stale.iter().map(|stale| stale.file.as_str()).collect();
    assert_eq!(files, stale, "{before:?} {after:?}");
    let count = |verdict: &str| {
        verdicts
            .iter()
            .filter(|(_, found)| *found == verdict)
            .count()
    };
    assert_eq!(plan.activate.len(), count("activated"));
    assert_eq!(plan.retire.len(), count("retired"));
}

#[test]
fn each_file_is_planned_separately() {
    let activated = |file| (file, "activated");
    let invalid = |file| (file, "invalid");
    let retired = |file| (file, "retired");
    let changed = format!("{NIGHTLY}# changed\n");
    let changed = changed.as_str();

    check(&[], &[], &[], &[]);
    check(&[], &[("a.yaml", NIGHTLY)], &[activated("a.yaml")], &[]);
    check(&[("a.yaml", NIGHTLY)], &[("a.yaml", "same")], &[], &[]);
    check(
        &[("a.yaml", NIGHTLY)],
        &[("a.yaml", changed)],
        &[activated("a.yaml")],
        &[],
    );
    check(&[("a.yaml", NIGHTLY)], &[], &[retired("a.yaml")], &[]);
    check(
        &[("a.yaml", NIGHTLY)],
        &[("a.yaml", "bad")],
        &[invalid("a.yaml")],
        &["a.yaml"],
    );
    // An invalid file never affects a valid file.
    check(
        &[("a.yaml", NIGHTLY), ("b.yaml", NIGHTLY)],
        &[("a.yaml", "bad"), ("b.yaml", changed), ("c.yaml", "bad")],
        &[invalid("a.yaml"), activated("b.yaml"), invalid("c.yaml")],
        &["a.yaml", "c.yaml"],
    );
    // A new extension is not a removal, and two files with the same name retire nothing.
    check(
        &[("a.yaml", NIGHTLY)],
        &[("a.yml", changed)],
        &[activated("a.yml")],
        &[],
    );
    check(
        &[("a.yaml", NIGHTLY)],
        &[("a.yaml", "bad"), ("a.yml", "bad")],
        &[invalid("a.yaml"), invalid("a.yml")],
        &["a.yaml", "a.yml"],
    );
    // A file with the same problem as before is listed without a verdict; with another problem it gets a verdict.
    check(&[("a.yaml", "bad")], &[("a.yaml", "bad")], &[], &["a.yaml"]);
    check(
        &[("a.yaml", "bad")],
        &[("a.yaml", "worse")],
        &[invalid("a.yaml")],
        &["a.yaml"],
    );
    check(
        &[("a.yaml", "bad")],
        &[("a.yaml", NIGHTLY)],
        &[activated("a.yaml")],
        &[],
    );
    check(&[("a.yaml", "bad")], &[], &[], &[]);
}

#[test]
fn the_plan_is_empty_after_it_was_applied() {
    let mut test = new_test();
    apply(
        &mut test,
        desired("a", &[("gone.yaml", NIGHTLY), ("a.yaml", NIGHTLY)]),
    );
    let tip = [("a.yaml", "bad"), ("b.yaml", NIGHTLY)];
    apply(&mut test, desired("b", &tip));
    let again = planned(
        &test,
        desired("b", &[("a.yaml", "bad"), ("b.yaml", "same")]),
    );
    assert!(again.activate.is_empty() && again.retire.is_empty() && again.verdicts.is_empty());
    assert_eq!(
        again.stale,
        test.world.source(&source()).unwrap().stale_files
    );
}

#[test]
fn a_stale_file_keeps_the_time_since_it_is_invalid() {
    let mut test = new_test();
    let began = test.now;
    apply(&mut test, desired("a", &[("a.yaml", "bad")]));
    test.pass(chrono::TimeDelta::hours(1));
    apply(
        &mut test,
        desired("b", &[("a.yaml", "worse"), ("b.yaml", "bad")]),
    );
    let stale = &test.world.source(&source()).unwrap().stale_files;
    let since: Vec<_> = stale.iter().map(|stale| stale.since).collect();
    assert_eq!(since, [began, test.now]);
    assert_eq!(stale[0].diagnostics.len(), STALE_DIAGNOSTICS);
    assert_eq!(stale[0].excerpt.as_ref().unwrap().lines, ["worse"]);
}

#[test]
fn an_unreadable_folder_retires_nothing_and_keeps_stale_files() {
    let mut test = new_test();
    apply(
        &mut test,
        desired("a", &[("a.yaml", NIGHTLY), ("b.yaml", "bad")]),
    );
    let link = DesiredTip {
        folder: TipFolder::Unreadable("it is a link".to_owned()),
        ..desired("b", &[])
    };
    apply(&mut test, link);
    let source = test.world.source(&source()).unwrap();
    assert_eq!(source.stale_files.len(), 1);
    assert_eq!(active(&test), ["a"]);
}

fn active(test: &TestWorld) -> Vec<String> {
    let source = source();
    let records = test.world.workflow_records(&source);
    let active = records.filter(|record| is_active(record));
    let mut names: Vec<String> = active.map(|record| record.name.clone()).collect();
    names.sort();
    names
}

fn without_folder(commit: &str) -> DesiredTip {
    DesiredTip {
        folder: TipFolder::Missing,
        ..desired(commit, &[])
    }
}

#[test]
fn a_tip_without_the_folder_has_no_workflows() {
    let mut test = new_test();
    apply(
        &mut test,
        desired("1", &[("a.yaml", NIGHTLY), ("b.yaml", "bad")]),
    );
    apply(&mut test, without_folder("2"));
    assert_eq!(active(&test), [""; 0]);
    assert_eq!(test.world.source(&source()).unwrap().stale_files, []);
}

#[test]
fn a_tip_that_retires_all_workflows_needs_an_approval() {
    let two = [("a.yaml", NIGHTLY), ("b.yaml", NIGHTLY)];
    let commit_of = |test: &TestWorld, name: &str| {
        let record = test
            .world
            .workflow_record(WorkflowId::derive(&source(), name));
        test.world.files_of(record.unwrap()).commit
    };
    for gone in [without_folder("2"), desired("2", &[("c.yaml", NIGHTLY)])] {
        let mut test = new_test();
        apply(&mut test, desired("1", &two));
        apply(&mut test, gone.clone());
        assert_eq!(active(&test), ["a", "b"], "{gone:?}");
        assert_eq!(
            commit_of(&test, "a"),
            "1",
            "jobs get the files of the active revision"
        );
        // The same tip is held again when it is read again, and a revert ends the hold.
        assert!(planned(&test, gone.clone()).activate.is_empty());
        let same = [("a.yaml", "same"), ("b.yaml", "same")];
        apply(&mut test, desired("3", &same));
        assert_eq!(commit_of(&test, "a"), "3");

        apply(
            &mut test,
            DesiredTip {
                commit: "4".to_owned(),
                ..gone.clone()
            },
        );
        let approve = ApproveRemoval {
            name: source(),
            commit: "4".to_owned(),
        };
        test.run(approve).unwrap();
        // An approval is only valid for its commit.
        assert!(planned(&test, gone.clone()).retire.is_empty());
        let plan = planned(
            &test,
            DesiredTip {
                commit: "4".to_owned(),
                ..gone.clone()
            },
        );
        assert_eq!(
            (plan.activate.len(), plan.retire.len()),
            (gone.files.len(), 2)
        );
        for activate in plan.activate {
            test.run(activate).unwrap();
            assert_eq!(commit_of(&test, "c"), "4", "before the tip is recorded");
        }
    }
    // All workflows except one can be removed without an approval.
    let mut test = new_test();
    apply(&mut test, desired("1", &two));
    apply(&mut test, desired("2", &[("a.yaml", "bad")]));
    assert_eq!(active(&test), ["a"]);
    apply(&mut test, desired("3", &[]));
    assert_eq!(active(&test), [""; 0]);
}

#[test]
fn retiring_workflows_by_another_folder_needs_an_approval() {
    let mut test = new_test();
    let two = [("a.yaml", NIGHTLY), ("b.yaml", NIGHTLY)];
    apply(&mut test, desired("1", &two));
    let moved = |names: &[&str]| {
        let mut tip = desired("1", &[]);
        for name in names {
            let path = format!("flows/{name}.yaml");
            let mut one = desired("1", &[(&path, NIGHTLY)]).files.remove(0);
            one.name = (*name).to_owned();
            tip.files.push(one);
        }
        tip
    };
    configure(&mut test, "flows");
    apply(&mut test, moved(&["a", "c"]));
    assert_eq!(active(&test), ["a", "b"]);
    let message = test.world.source(&source()).unwrap().conditions[2]
        .reason
        .to_string();
    assert!(
        message.starts_with("1 workflow is not in the new path `flows` and would retire (b);"),
        "{message}"
    );
    // If no workflow would be retired, another folder needs no approval.
    apply(&mut test, moved(&["a", "b"]));
    assert_eq!(active(&test), ["a", "b"]);
    apply(&mut test, moved(&["a"]));
    assert_eq!(active(&test), ["a"]);
}
