//! Reruns of finished jobs: inputs, revision, and refusals.

use std::sync::Arc;

use serde_json::json;

use crate::decide::{Again, Cancel, Dispatch, Refusal, Retire, check_rerun};
use crate::testing::{NIGHTLY, TestWorld, complete};
use crate::{Actor, Change, Job, JobId, JobState, Reason, Revision, Trigger};

/// A finished job of the scan `probe`, and its revision.
fn over(test: &mut TestWorld) -> (Arc<Job>, Arc<Revision>) {
    let (id, token) = test.running();
    let running = test.world.job(id).unwrap();
    let revision = test.world.revision(running.revision.id).unwrap().clone();
    let job = test.run(complete(id, token)).unwrap();
    (job, revision)
}

/// The command that runs a job again with its own revision.
fn again(job: &Job, revision: &Arc<Revision>) -> Dispatch {
    Dispatch {
        workflow: job.workflow.id,
        scan: job.scan.clone(),
        revision: revision.record.reference.id,
        inputs: job.inputs.clone(),
        actor: Actor::Daemon,
        idempotency: None,
        again: Some(Again {
            callback: None,
            job: job.id,
            revision: Some(revision.clone()),
            source: None,
        }),
    }
}

#[test]
fn a_job_runs_again_with_its_inputs_and_its_revision() {
    let mut test = TestWorld::new();
    let (first, revision) = over(&mut test);
    test.push("nightly", &format!("{NIGHTLY}# changed\n"));
    let old = revision.record.reference.id;
    assert!(
        test.world.revision(old).is_none(),
        "the old revision is still in the world"
    );

    let id = test.run(again(&first, &revision)).unwrap();
    let job = test.world.job(id).unwrap().clone();
    assert_eq!(job.rerun_of, Some(first.id));
    assert_eq!(job.reason, Reason::Rerun { of: first.id });
    assert_eq!(job.trigger, Trigger::Dispatch);
    assert_eq!(
        (&job.inputs, &job.revision),
        (&first.inputs, &first.revision)
    );
    let runner = test.world.runners().next().unwrap().id;
    let token = test.claim(id, runner).unwrap();
    let claimed = test.world.job(id).unwrap();
    assert_eq!(claimed.revision, first.revision);
    assert!(test.world.revision(old).is_some());
    test.run(complete(id, token)).unwrap();
    assert!(test.world.revision(old).is_none());
}

#[test]
fn a_rerun_can_use_the_active_revision() {
    let mut test = TestWorld::new();
    let (first, _) = over(&mut test);
    test.push("nightly", &format!("{NIGHTLY}# changed\n"));
    let command = |test: &TestWorld| Dispatch {
        again: Some(Again {
            callback: None,
            job: first.id,
            revision: None,
            source: None,
        }),
        ..test
            .dispatch_of(first.workflow.id, "probe", json!({}))
            .unwrap()
    };
    let late = command(&test);
    let id = test.run(command(&test)).unwrap();
    let job = test.world.job(id).unwrap();
    assert_eq!((job.revision.number, job.rerun_of), (2, Some(first.id)));
    test.push("nightly", &format!("{NIGHTLY}# changed again\n"));
    assert!(matches!(
        test.run(late),
        Err(Refusal::RevisionChanged { .. })
    ));
}

#[test]
fn an_unfinished_or_removed_job_cannot_be_run_again() {
    let mut test = TestWorld::new();
    let (id, token) = test.running();
    let running = test.world.job(id).unwrap().clone();
    let refused = check_rerun(&test.world, &running, &running).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("job {id} is running; only finished jobs can be run again")
    );
    let ended = test.run(complete(id, token)).unwrap();
    assert_eq!(check_rerun(&test.world, &running, &ended), Ok(()));
    let revision = test.world.revision(running.revision.id).unwrap().clone();
    let command = again(&running, &revision);

    let without = "scans: {strict: {on: {dispatch: {}}, steps: [{run: one}]}}";
    let workflow = test.push("nightly", without);
    let refused = check_rerun(&test.world, &running, &ended).unwrap_err();
    assert!(matches!(refused, Refusal::ScanRetired { .. }), "{refused}");
    assert_eq!(test.run(command.clone()), Err(refused));

    test.push("nightly", NIGHTLY);
    test.run(Retire { workflow }).unwrap();
    let refused = check_rerun(&test.world, &running, &ended).unwrap_err();
    assert!(matches!(refused, Refusal::Retired { .. }), "{refused}");
    assert_eq!(test.run(command), Err(refused));
}

#[test]
fn a_cancelled_job_that_never_ran_can_be_run_again() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let id = test.dispatch(workflow, "probe", json!({})).unwrap();
    let job = test.world.job(id).unwrap().clone();
    let revision = test.world.revision(job.revision.id).unwrap().clone();
    let actor = Actor::Daemon;
    test.run(Cancel { job: id, actor }).unwrap();
    let (changes, next) = test.changes(again(&job, &revision)).unwrap();
    assert!(next > JobId::FIRST.max(id));
    assert!(
        matches!(changes.as_slice(), [Change::Job(job)] if job.state == JobState::Scheduled),
        "the revision is known: {changes:?}"
    );
}
