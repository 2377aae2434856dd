//! Reports of a worker about its running job: steps and artifacts.

use chrono::TimeDelta;

use crate::decide::{Complete, Refusal, ReportSteps, StoreArtifact};
use crate::job::StepOutcome as Outcome;
use crate::job::StepStatus as Status;
use crate::limits::{CONTENT_DIGEST_BYTES, MESSAGE_CHARS, STEP_ERRORS_BYTES};
use crate::testing::{TestWorld, complete, step, succeeded};
use crate::{ArtifactId, Change, JobId, JobState, Step, TokenHash, World};

fn report(job: JobId, token: TokenHash, steps: Vec<Step>) -> ReportSteps {
    ReportSteps { job, token, steps }
}

fn artifact(job: JobId, token: TokenHash, name: &str, content: &str) -> StoreArtifact {
    StoreArtifact {
        job,
        token,
        name: name.to_owned(),
        size: content.len() as u64,
        sha256: crate::testing::sha256(content),
        content_digest: format!("sha256:{}", crate::testing::sha256(content)),
    }
}

fn steps_of(test: &TestWorld, job: JobId) -> Vec<Step> {
    let record = test.world.job(job).unwrap();
    record.state.run().unwrap().steps.clone()
}

#[test]
fn a_report_has_the_complete_state_and_a_repeat_changes_nothing() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let steps = vec![
        step(0, Status::Succeeded, Some(Outcome::Succeeded)),
        step(1, Status::Running, None),
    ];
    test.run(report(job, token, steps.clone())).unwrap();
    assert_eq!(steps_of(&test, job), steps);
    let (changes, ()) = test.changes(report(job, token, steps)).unwrap();
    assert!(changes.is_empty());
}

#[test]
fn an_overtaken_report_changes_nothing() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    test.run(report(job, token, succeeded(2))).unwrap();
    for late in [
        vec![],
        succeeded(1),
        vec![step(0, Status::Running, None)],
        vec![
            step(0, Status::Succeeded, Some(Outcome::Succeeded)),
            step(1, Status::Running, None),
        ],
    ] {
        test.run(report(job, token, late)).unwrap();
        assert_eq!(steps_of(&test, job), succeeded(2));
    }
}

#[test]
fn an_impossible_report_is_refused() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let stranger = TokenHash::of("stranger");
    let refusal = test.run(report(job, stranger, vec![]));
    assert_eq!(refusal, Err(Refusal::NotYourJob { job }));
    let skipping = vec![step(1, Status::Running, None)];
    for steps in [skipping, succeeded(3)] {
        let refusal = test.run(report(job, token, steps));
        assert!(matches!(refusal, Err(Refusal::BadReport { .. })));
    }
    test.run(complete(job, token)).unwrap();
    let refusal = test.run(report(job, token, succeeded(2)));
    assert_eq!(refusal, Err(Refusal::JobOver { job }));
}

#[test]
fn a_job_completes_while_its_revision_cannot_be_read() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    // The world after loading the records without the text of the revision.
    let mut world = World::default();
    let records = test.decided.iter();
    records
        .filter(|change| !matches!(change, Change::Revision(..)))
        .for_each(|change| world.apply(change));
    test.world = world;
    let nothing = Complete {
        steps: Vec::new(),
        ..complete(job, token)
    };
    let refusal = test.run(nothing);
    assert!(matches!(refusal, Err(Refusal::BadReport { .. })));
    let refusal = test.run(artifact(job, token, "../hosts", "zip"));
    assert!(matches!(refusal, Err(Refusal::UndeclaredArtifact { .. })));
    test.run(report(job, token, succeeded(1))).unwrap();
    let stored = test.run(artifact(job, token, "hosts", "zip")).unwrap();
    assert_eq!(stored.expires_at, None);
    let ended = test.run(complete(job, token)).unwrap();
    assert!(matches!(ended.state, JobState::Succeeded { .. }));
}

#[test]
fn error_texts_have_limits_for_each_text_and_in_total() {
    let scan = "scans: {probe: {on: {dispatch: {}}, steps: [";
    let text = format!("{scan}{}]}}}}", "{run: x},".repeat(100));
    let mut test = TestWorld::new();
    let workflow = test.push("wide", &text);
    let runner = test.runner("first", &[]);
    let job = test
        .dispatch(workflow, "probe", serde_json::json!({}))
        .unwrap();
    let token = test.claim(job, runner).unwrap();
    let failed = |index| Step {
        error: Some("ä".repeat(2 * MESSAGE_CHARS)),
        ..step(index, Status::Failed, Some(Outcome::Succeeded))
    };
    let steps = (0..100).map(failed).collect();
    test.run(report(job, token, steps)).unwrap();

    let steps = steps_of(&test, job);
    let error = |at: usize| steps[at].error.as_deref().unwrap();
    assert_eq!(error(0), "ä".repeat(MESSAGE_CHARS));
    assert_eq!(error(99), "");
    let bytes: usize = (0..100).map(|at| error(at).len()).sum();
    assert_eq!(bytes, STEP_ERRORS_BYTES);
}

#[test]
fn an_artifact_is_recorded_once() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let stored = test.run(artifact(job, token, "ports", "zip")).unwrap();
    assert_eq!(stored.id, ArtifactId::derive(job, "ports"));
    assert_eq!(stored.expires_at, Some(test.now + TimeDelta::days(2)));

    test.pass(TimeDelta::seconds(9));
    let (changes, repeat) = test.changes(artifact(job, token, "ports", "zip")).unwrap();
    assert!(changes.is_empty());
    assert_eq!(repeat, stored);

    let other = test.run(artifact(job, token, "ports", "other zip"));
    assert!(matches!(other, Err(Refusal::ArtifactMismatch { .. })));
    let unknown = test.run(artifact(job, token, "secrets", "zip"));
    assert!(matches!(unknown, Err(Refusal::UndeclaredArtifact { .. })));
    let stranger = test.run(artifact(job, TokenHash::of("stranger"), "hosts", "zip"));
    assert_eq!(stranger, Err(Refusal::NotYourJob { job }));
}

#[test]
fn an_invalid_content_digest_is_refused() {
    let mut test = TestWorld::new();
    let (job, token) = test.running();
    let long = "x".repeat(CONTENT_DIGEST_BYTES + 1);
    for bad in ["", "a b", "ä", "a\n", long.as_str()] {
        let command = StoreArtifact {
            content_digest: bad.to_owned(),
            ..artifact(job, token, "hosts", "zip")
        };
        let refusal = test.run(command);
        assert!(matches!(refusal, Err(Refusal::BadReport { .. })), "{bad:?}");
    }
}
