//! Running a finished job again: its inputs and revision, and when it is refused.

use std::sync::Arc;

use serde_json::json;

use crate::decide::{Again, Cancel, Dispatch, Refusal, Retire, check_rerun};
use crate::testing::{House, NIGHTLY, complete};
use crate::{Actor, Change, Job, JobId, JobState, Reason, Revision, Trigger};

/// A job of the scan `probe` that is over, and its revision.
fn over(house: &mut House) -> (Arc<Job>, Arc<Revision>) {
    let (id, token) = house.running();
    let running = house.world.job(id).unwrap();
    let revision = house.world.revision(running.revision.id).unwrap().clone();
    let job = house.run(complete(id, token)).unwrap();
    (job, revision)
}

/// The command that runs a job again, of its own revision.
fn again(job: &Job, revision: &Arc<Revision>) -> Dispatch {
    Dispatch {
        workflow: job.workflow.id,
        scan: job.scan.clone(),
        revision: revision.record.reference.id,
        inputs: job.inputs.clone(),
        actor: Actor::Daemon,
        idempotency: None,
        again: Some(Again {
            job: job.id,
            revision: Some(revision.clone()),
            source: None,
        }),
    }
}

#[test]
fn a_job_runs_again_with_its_inputs_and_its_revision_which_stays_as_long_as_it_is_needed() {
    let mut house = House::new();
    let (first, revision) = over(&mut house);
    house.push("nightly", &format!("{NIGHTLY}# changed\n"));
    let old = revision.record.reference.id;
    assert!(house.world.revision(old).is_none(), "nothing needs it");

    let id = house.run(again(&first, &revision)).unwrap();
    let job = house.world.job(id).unwrap().clone();
    assert_eq!(job.rerun_of, Some(first.id));
    assert_eq!(job.reason, Reason::Rerun { of: first.id });
    assert_eq!(job.trigger, Trigger::Dispatch);
    assert_eq!(
        (&job.inputs, &job.revision),
        (&first.inputs, &first.revision)
    );
    let runner = house.world.runners().next().unwrap().id;
    let token = house.claim(id, runner).unwrap();
    let claimed = house.world.job(id).unwrap();
    assert_eq!(claimed.revision, first.revision);
    assert!(house.world.revision(old).is_some());
    house.run(complete(id, token)).unwrap();
    assert!(house.world.revision(old).is_none());
}

#[test]
fn a_rerun_of_the_active_revision_is_a_dispatch_of_it() {
    let mut house = House::new();
    let (first, _) = over(&mut house);
    house.push("nightly", &format!("{NIGHTLY}# changed\n"));
    let command = |house: &House| Dispatch {
        again: Some(Again {
            job: first.id,
            revision: None,
            source: None,
        }),
        ..house
            .dispatch_of(first.workflow.id, "probe", json!({}))
            .unwrap()
    };
    let late = command(&house);
    let id = house.run(command(&house)).unwrap();
    let job = house.world.job(id).unwrap();
    assert_eq!((job.revision.number, job.rerun_of), (2, Some(first.id)));
    house.push("nightly", &format!("{NIGHTLY}# changed again\n"));
    assert!(matches!(
        house.run(late),
        Err(Refusal::RevisionChanged { .. })
    ));
}

#[test]
fn an_unfinished_or_removed_job_cannot_be_run_again() {
    let mut house = House::new();
    let (id, token) = house.running();
    let running = house.world.job(id).unwrap().clone();
    let refused = check_rerun(&house.world, &running, &running).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("job {id} is running; only finished jobs can be run again")
    );
    let ended = house.run(complete(id, token)).unwrap();
    assert_eq!(check_rerun(&house.world, &running, &ended), Ok(()));
    let revision = house.world.revision(running.revision.id).unwrap().clone();
    let command = again(&running, &revision);

    let without = "scans: {strict: {on: {dispatch: {}}, steps: [{run: one}]}}";
    let workflow = house.push("nightly", without);
    let refused = check_rerun(&house.world, &running, &ended).unwrap_err();
    assert!(matches!(refused, Refusal::ScanRetired { .. }), "{refused}");
    assert_eq!(house.run(command.clone()), Err(refused));

    house.push("nightly", NIGHTLY);
    house.run(Retire { workflow }).unwrap();
    let refused = check_rerun(&house.world, &running, &ended).unwrap_err();
    assert!(matches!(refused, Refusal::Retired { .. }), "{refused}");
    assert_eq!(house.run(command), Err(refused));
}

#[test]
fn a_cancelled_job_that_never_ran_can_be_run_again() {
    let mut house = House::new();
    let workflow = house.push("nightly", NIGHTLY);
    let id = house.dispatch(workflow, "probe", json!({})).unwrap();
    let job = house.world.job(id).unwrap().clone();
    let revision = house.world.revision(job.revision.id).unwrap().clone();
    let actor = Actor::Daemon;
    house.run(Cancel { job: id, actor }).unwrap();
    let (changes, next) = house.changes(again(&job, &revision)).unwrap();
    assert!(next > JobId::FIRST.max(id));
    assert!(
        matches!(changes.as_slice(), [Change::Job(job)] if job.state == JobState::Scheduled),
        "the revision is known: {changes:?}"
    );
}
