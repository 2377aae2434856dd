//! Completion: the outcome of a worker's report.

use std::collections::BTreeMap;

use crate::decide::{Cancel, Complete, Failure, Refusal, StoreArtifact};
use crate::job::StepOutcome as Outcome;
use crate::job::StepStatus as Status;
use crate::limits::{LEFT_OUT_CHARS, LEFT_OUT_FILES, MESSAGE_CHARS};
use crate::testing::{TestWorld, complete, ended, key, step, succeeded};
use crate::{
    Actor, Change, EndState, HistoryLine, LeftOut, LeftOutFile, StateKind, Step, TokenHash,
};

/// Completes a running job of two steps. Returns the state and the reason's code, or `refused`.
fn outcome(steps: Vec<Step>, failure: Option<Failure>) -> String {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let command = Complete {
        steps,
        failure,
        ..complete(job, token)
    };
    match test.changes(command) {
        Ok((changes, answer)) => {
            let (state, reason) = ended(&changes).unwrap();
            assert_eq!(answer.state.name(), state);
            format!("{state}: {}", reason.code())
        }
        Err(refusal) => {
            assert!(matches!(refusal, Refusal::BadReport { .. }), "{refusal:?}");
            "refused".to_owned()
        }
    }
}

#[test]
fn the_steps_and_the_failure_decide_the_outcome() {
    let good = |index| step(index, Status::Succeeded, Some(Outcome::Succeeded));
    let allowed = |index| step(index, Status::Failed, Some(Outcome::Succeeded));
    let bad = |index| step(index, Status::Failed, Some(Outcome::Failed));
    let skipped = |index| step(index, Status::Skipped, Some(Outcome::Skipped));
    let stopped = |index| step(index, Status::Cancelled, Some(Outcome::Cancelled));
    let running = |index| step(index, Status::Running, None);
    let words = || "words".to_owned();

    let table: Vec<(Vec<Step>, Option<Failure>, &str)> = vec![
        (vec![good(0), good(1)], None, "succeeded: steps_succeeded"),
        (
            vec![allowed(0), skipped(1)],
            None,
            "succeeded: steps_succeeded",
        ),
        (vec![bad(0), good(1)], None, "failed: step_failed"),
        (vec![bad(0)], None, "failed: step_failed"),
        (
            vec![good(0), bad(1)],
            Some(Failure::Artifact(words())),
            "failed: step_failed",
        ),
        (
            vec![good(0), good(1)],
            Some(Failure::Artifact(words())),
            "failed: artifact_failed",
        ),
        (vec![], Some(Failure::Env(words())), "failed: env_failed"),
        (
            vec![],
            Some(Failure::Setup(words())),
            "failed: setup_failed",
        ),
        (
            vec![stopped(0)],
            Some(Failure::RunnerStopped(words())),
            "failed: runner_stopped",
        ),
        (
            vec![stopped(0), bad(1)],
            Some(Failure::TimedOut),
            "failed: timed_out",
        ),
        (vec![good(0)], Some(Failure::TimedOut), "failed: timed_out"),
        (vec![], None, "refused"),
        (vec![good(0)], None, "refused"),
        (vec![good(0), running(1)], None, "refused"),
        (vec![good(0), stopped(1)], None, "refused"),
        (vec![good(1), good(0)], None, "refused"),
        (vec![good(0), good(0)], None, "refused"),
        (vec![good(0), good(1), good(2)], None, "refused"),
    ];
    for (steps, failure, expected) in table {
        let case = format!("{steps:?} {failure:?}");
        assert_eq!(outcome(steps, failure), expected, "{case}");
    }
}

#[test]
fn an_end_changes_the_head_and_adds_a_history_line() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let workflow = test.world.job(job).unwrap().workflow.id;
    let (changes, _) = test.changes(complete(job, token)).unwrap();
    let [
        Change::Job(record),
        Change::History(entry),
        Change::Head(head),
    ] = changes.as_slice()
    else {
        panic!("{changes:?}");
    };
    let line: HistoryLine = serde_json::from_str(&entry.text).unwrap();
    assert_eq!(Some(line), HistoryLine::of(record));
    assert_eq!((entry.page, entry.at), (0, 0));
    assert_eq!(head.history.bytes, entry.text.len() as u64);
    assert_eq!(head.totals.succeeded, 1);
    assert_eq!(head.successes[0].order, test.order);
    assert_eq!(test.world.head(&key(workflow, "probe")), Some(head));
    assert!(test.world.job(job).is_none());
    assert_eq!(test.world.jobs().count(), 0);
}

#[test]
fn only_the_worker_completes_and_only_once() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let stranger = complete(job, TokenHash::of("stranger"));
    assert_eq!(
        test.run(stranger).map(drop),
        Err(Refusal::NotYourJob { job })
    );
    test.run(complete(job, token)).unwrap();
    let over = Err(Refusal::JobOver { job });
    assert_eq!(test.run(complete(job, token)).map(drop), over);

    let (job, token) = test.running();
    let actor = Actor::Daemon;
    test.run(Cancel { job, actor }).unwrap();
    let over = Err(Refusal::JobOver { job });
    assert_eq!(test.run(complete(job, token)).map(drop), over);
}

#[test]
fn messages_of_a_worker_are_cut() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let command = Complete {
        steps: succeeded(2),
        failure: Some(Failure::Artifact("ä".repeat(MESSAGE_CHARS + 1))),
        ..complete(job, token)
    };
    let (changes, _) = test.changes(command).unwrap();
    let (_, reason) = ended(&changes).unwrap();
    let message = serde_json::to_value(reason).unwrap()["message"].clone();
    assert_eq!(message.as_str().unwrap(), "ä".repeat(MESSAGE_CHARS));
}

#[test]
fn the_list_of_left_out_files_is_stored_with_its_artifact_and_bounded() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    for name in ["hosts", "ports"] {
        test.run(StoreArtifact {
            job,
            token,
            name: name.to_owned(),
            size: 1,
            sha256: "ab".to_owned(),
            content_digest: "cd".to_owned(),
        })
        .unwrap();
    }
    let files = |count: usize| LeftOut {
        files: vec![
            LeftOutFile {
                name: "ä".repeat(LEFT_OUT_CHARS + 1),
                reason: "is a link to nothing".to_owned(),
            };
            count
        ],
        more: 3,
    };
    let command = Complete {
        left_out: BTreeMap::from([
            ("hosts".to_owned(), files(LEFT_OUT_FILES - 1)),
            ("ports".to_owned(), files(2)),
            ("unknown".to_owned(), files(1)),
        ]),
        ..complete(job, token)
    };
    let answer = test.run(command).unwrap();
    assert_eq!(answer.state.kind(), StateKind::Ended(EndState::Succeeded));
    let artifacts = &answer.state.run().unwrap().artifacts;
    let kept = artifacts.iter().map(|artifact| {
        let left_out = artifact.left_out.as_ref().unwrap();
        (left_out.files.len(), left_out.more)
    });
    assert_eq!(
        kept.collect::<Vec<_>>(),
        [(LEFT_OUT_FILES - 1, 3), (1, 3 + 1)]
    );
    let first = &artifacts[0].left_out.as_ref().unwrap().files[0];
    assert_eq!(first.name, "ä".repeat(LEFT_OUT_CHARS));
}

#[test]
fn outputs_are_stored_in_the_record_and_the_history_line() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let outputs = workflow::read_outputs("hosts=3\nnote=").unwrap();
    let command = Complete {
        outputs: outputs.clone(),
        ..complete(job, token)
    };
    let (changes, answer) = test.changes(command).unwrap();
    assert_eq!(answer.state.run().unwrap().outputs, outputs);
    let line = changes.iter().find_map(|change| match change {
        Change::History(entry) => Some(&entry.line),
        _ => None,
    });
    assert_eq!(line.unwrap().outputs, outputs);
    assert_eq!(line.unwrap().summary().outputs, outputs);
}

#[test]
fn outputs_above_their_limits_are_refused() {
    let large = (0..33).map(|number| (format!("k{number}"), String::new()));
    let long = [("a".to_owned(), "x".repeat(9_000))];
    let lines = [("a".to_owned(), "x\ny".to_owned())];
    for outputs in [
        large.collect::<workflow::Outputs>(),
        long.into_iter().collect(),
        lines.into_iter().collect(),
    ] {
        let mut test = TestWorld::new();
        let (job, token) = test.running();
        let command = Complete {
            outputs,
            ..complete(job, token)
        };
        let refused = test.run(command);
        assert!(matches!(refused, Err(Refusal::BadReport { .. })));
    }
}
