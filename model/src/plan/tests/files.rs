//! The commit from which jobs get their files, and when it is fixed.

use serde_json::json;

use super::*;
use crate::decide::{Again, Claim, ClaimOutcome, Dispatch, Evaluate, Fire, NoteProgram};
use crate::{Actor, JobId, JobSource, RunnerId, ScanKey, TokenHash, Trigger, WorkflowId, waiting};

const WITH_FILES: &str = "
scans:
  asked:
    on: {dispatch: {}}
    checkout: [scripts]
    steps: [{run: one}, {run: two}]
  timed:
    on: {cron: '*/10 * * * *', dispatch: {}}
    checkout: true
    steps: [{run: one}]
  without:
    on: {dispatch: {}}
    steps: [{run: one}]
";

fn workflow(name: &str) -> WorkflowId {
    WorkflowId::derive(&source(), name)
}

fn commit(test: &TestWorld, name: &str) -> String {
    let record = test.world.workflow_record(workflow(name)).unwrap();
    test.world.files_of(record).commit
}

fn fixed(test: &TestWorld, job: JobId) -> Option<Box<JobSource>> {
    test.world.job(job).unwrap().source.clone()
}

fn at(commit: &str) -> Option<Box<JobSource>> {
    Some(Box::new(JobSource {
        commit: commit.to_owned(),
        reference: "HEAD".to_owned(),
    }))
}

#[test]
fn a_workflow_uses_the_commit_of_the_tip_while_its_file_is_active() {
    let mut test = new_test();
    let valid = [("a.yaml", WITH_FILES), ("b.yaml", NIGHTLY)];
    apply(&mut test, desired("1", &valid));
    assert_eq!(commit(&test, "a"), "1");

    // A push that changes neither file writes no record of a workflow.
    let before = test.decided.len();
    apply(
        &mut test,
        desired("2", &[("a.yaml", "same"), ("b.yaml", "same")]),
    );
    let written = test.decided[before..].iter();
    assert!(
        !written
            .clone()
            .any(|change| matches!(change, crate::Change::Workflow(_)))
    );
    assert_eq!(
        (commit(&test, "a"), commit(&test, "b")),
        ("2".into(), "2".into())
    );

    // While its file is invalid, a workflow keeps its commit. The other workflow gets the new commit.
    for tip in ["3", "4"] {
        apply(
            &mut test,
            desired(tip, &[("a.yaml", "bad"), ("b.yaml", "same")]),
        );
        assert_eq!(
            (commit(&test, "a"), commit(&test, "b")),
            ("2".into(), tip.into())
        );
    }
    // The same text again, and later a new text.
    apply(
        &mut test,
        desired("5", &[("a.yaml", "same"), ("b.yaml", "bad")]),
    );
    assert_eq!(
        (commit(&test, "a"), commit(&test, "b")),
        ("5".into(), "4".into())
    );
    let other = format!("{NIGHTLY}# other\n");
    apply(
        &mut test,
        desired("6", &[("a.yaml", "same"), ("b.yaml", &other)]),
    );
    assert_eq!(
        (commit(&test, "a"), commit(&test, "b")),
        ("6".into(), "6".into())
    );

    // If the folder cannot be read, the workflow keeps its commit.
    for tip in ["7", "8"] {
        let missing = DesiredTip {
            folder: TipFolder::Unreadable("it is a link".to_owned()),
            ..desired(tip, &[])
        };
        apply(&mut test, missing);
        assert_eq!(commit(&test, "a"), "6");
    }
    apply(
        &mut test,
        desired("9", &[("a.yaml", "same"), ("b.yaml", "same")]),
    );
    assert_eq!(commit(&test, "a"), "9");
}

#[test]
fn activated_workflows_get_the_files_of_a_tip_before_it_is_recorded() {
    let mut test = new_test();
    apply(
        &mut test,
        desired("1", &[("a.yaml", WITH_FILES), ("b.yaml", NIGHTLY)]),
    );
    let changed = format!("{WITH_FILES}# changed\n");
    let tip = [("a.yaml", changed.as_str()), ("b.yaml", "bad")];
    let plan = planned(&test, desired("2", &tip));
    for activate in plan.activate {
        test.run(activate).unwrap();
    }
    for hold in plan.hold {
        test.run(hold).unwrap();
    }
    assert_eq!(
        (commit(&test, "a"), commit(&test, "b")),
        ("2".into(), "1".into())
    );

    // The rest of the tip was never stored, and another tip follows.
    apply(
        &mut test,
        desired("3", &[("a.yaml", "same"), ("b.yaml", "same")]),
    );
    assert_eq!(
        (commit(&test, "a"), commit(&test, "b")),
        ("3".into(), "3".into())
    );
}

#[test]
fn an_old_record_of_an_invalid_file_uses_the_commit_of_its_revision() {
    let mut test = new_test();
    apply(&mut test, desired("1", &[("a.yaml", WITH_FILES)]));
    apply(&mut test, desired("2", &[("a.yaml", "bad")]));
    let record = test.world.workflow_record(workflow("a")).unwrap();
    let old = WorkflowRecord {
        held: None,
        ..WorkflowRecord::clone(record)
    };
    assert_eq!(test.world.files_of(&old).commit, "1");
    let old = serde_json::to_value(&old).unwrap();
    assert!(old.get("held").is_none());
    serde_json::from_value::<WorkflowRecord>(old).unwrap();
}

#[test]
fn a_dispatched_job_and_its_rerun_have_the_commit_of_the_dispatch() {
    let mut test = new_test();
    let runner = test.runner("first", &[]);
    apply(&mut test, desired("1", &[("a.yaml", WITH_FILES)]));
    let without = test.dispatch(workflow("a"), "without", json!({})).unwrap();
    assert_eq!(fixed(&test, without), None);
    let job = test.dispatch(workflow("a"), "asked", json!({})).unwrap();
    assert_eq!(fixed(&test, job), at("1"));
    apply(&mut test, desired("2", &[("a.yaml", "same")]));
    assert_eq!(
        test.world.commits_in_use(&source()),
        ["1", "2"].map(str::to_owned).into()
    );
    let token = test.claim(job, runner).unwrap();
    assert_eq!(fixed(&test, job), at("1"));
    let over = test.world.job(job).unwrap().clone();
    let revision = test.world.revision(over.revision.id).unwrap().clone();
    test.run(crate::testing::complete(job, token)).unwrap();
    assert_eq!(
        test.world.commits_in_use(&source()),
        ["2".to_owned()].into()
    );

    let again = |revision, source| Dispatch {
        workflow: workflow("a"),
        scan: over.scan.clone(),
        revision: over.revision.id,
        inputs: over.inputs.clone(),
        actor: Actor::Daemon,
        idempotency: None,
        again: Some(Again {
            callback: None,
            job: over.id,
            revision,
            source,
        }),
    };
    let same = test
        .run(again(Some(revision), over.source.clone()))
        .unwrap();
    assert_eq!(fixed(&test, same), at("1"));
    let current = test.run(again(None, None)).unwrap();
    assert_eq!(fixed(&test, current), at("2"));
}

#[test]
fn a_scheduled_job_gets_the_commit_at_its_claim() {
    let mut test = new_test();
    let runner = test.runner("first", &[]);
    apply(&mut test, desired("1", &[("a.yaml", WITH_FILES)]));
    test.pass(chrono::TimeDelta::minutes(11));
    let scan = ScanKey {
        workflow: workflow("a"),
        scan: "timed".parse().unwrap(),
    };
    test.run(Fire { scan }).unwrap();
    let job = test.world.jobs().next().unwrap().clone();
    assert_eq!((job.trigger, &job.source), (Trigger::Cron, &None));
    apply(&mut test, desired("2", &[("a.yaml", "same")]));
    let claim = Claim {
        job: job.id,
        runner,
        token: TokenHash::of("x"),
        job_token: None,
        evaluate: Evaluate::CHEAP,
    };
    let ClaimOutcome::Claimed(claimed) = test.run(claim).unwrap() else {
        panic!("the job was not claimed")
    };
    assert_eq!(claimed.job.source, at("2"));
}

#[test]
fn jobs_with_checkout_are_only_offered_to_runners_that_support_it() {
    let mut test = new_test();
    let runner = test.runner("first", &[]);
    apply(&mut test, desired("1", &[("a.yaml", WITH_FILES)]));
    let job = test.dispatch(workflow("a"), "asked", json!({})).unwrap();
    let offered = |test: &TestWorld| {
        let runner = test.world.runner(runner).unwrap();
        let (reach, turns) = (crate::Reach::of(runner), crate::Turns::default());
        let next = crate::next_job(&test.world, &reach, &turns, test.now, |_| false);
        next.map(|(turn, job)| (turn.workflow, job))
    };
    let why = |test: &TestWorld| {
        let job = test.world.job(job).unwrap();
        waiting(&test.world, job, test.now, |_| true, |_: RunnerId| None)
            .unwrap()
            .to_string()
    };
    assert_eq!(offered(&test), None);
    let outdated = "no connected runner with its labels knows `checkout`; update the runner";
    assert_eq!(why(&test), outdated);
    // An exclusive runner that supports `checkout` cannot take the job, because the scan requires no label.
    let exclusive = test.exclusive_runner("second", &["gpu"]);
    test.run(NoteProgram {
        runner: exclusive,
        version: "9.9".to_owned(),
        capabilities: vec!["checkout".to_owned()],
    })
    .unwrap();
    assert_eq!(why(&test), outdated);
    let program = NoteProgram {
        runner,
        version: "9.9".to_owned(),
        capabilities: ["later", "checkout", "checkout", ""]
            .map(str::to_owned)
            .into(),
    };
    test.run(program.clone()).unwrap();
    let known = test.world.runner(runner).unwrap();
    assert_eq!(known.capabilities, ["checkout", "later"]);
    assert_eq!(known.version, "9.9");
    assert_eq!(offered(&test), Some((workflow("a"), job)));
    assert_eq!(
        why(&test),
        "no runner with room for it has asked for work yet"
    );
    let (changes, ()) = test.changes(program).unwrap();
    assert!(changes.is_empty());
}
