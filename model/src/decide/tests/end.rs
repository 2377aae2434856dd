//! Ends that are no completion: by a person, a deadline, a loss, a removal.

use serde_json::json;

use crate::decide::{Cancel, DropSource, EndJob, Loss, Refusal, Retire};
use crate::testing::{House, NIGHTLY, ended, key, source};
use crate::{Actor, JobId, Reason, TokenId};

const LOSSES: [Loss; 5] = [
    Loss::RunnerLost,
    Loss::Restored,
    Loss::TimedOut,
    Loss::SessionExpired,
    Loss::Retired,
];

/// What a loss makes of a job: state and reason, `-` for nothing, or `refused`.
fn outcome(house: &mut House, job: JobId, loss: Loss) -> String {
    match house.changes(EndJob::new(job, loss)) {
        Ok((changes, answer)) => match ended(&changes) {
            Some((state, reason)) => format!("{state}: {}", reason.code()),
            None => {
                assert_eq!(Some(&answer), house.world.job(job));
                "-".to_owned()
            }
        },
        Err(refusal) => {
            assert!(matches!(refusal, Refusal::IllegalTransition(_)));
            "refused".to_owned()
        }
    }
}

fn scheduled(house: &mut House) -> JobId {
    let workflow = house.push("nightly", NIGHTLY);
    house.dispatch(workflow, "probe", json!({})).unwrap()
}

#[test]
fn a_loss_ends_a_running_job() {
    let expected = [
        "failed: runner_lost",
        "failed: restored",
        "failed: timed_out",
        "cancelled: session_expired",
        "-",
    ];
    for (loss, expected) in LOSSES.into_iter().zip(expected) {
        let mut house = House::new();
        let (job, _) = house.running();
        assert_eq!(outcome(&mut house, job, loss), expected, "{loss:?}");
    }
}

#[test]
fn a_waiting_job_cannot_be_lost_or_time_out() {
    for (loss, expected) in LOSSES
        .into_iter()
        .zip(["refused", "refused", "refused", "refused", "-"])
    {
        let mut house = House::new();
        let job = scheduled(&mut house);
        assert_eq!(outcome(&mut house, job, loss), expected, "{loss:?}");
        assert!(house.world.job(job).is_some());
    }
}

#[test]
fn retiring_ends_only_waiting_jobs_that_are_still_unwanted() {
    let mut house = House::new();
    let (running, _) = house.running();
    let waiting = scheduled(&mut house);
    let workflow = house.world.job(waiting).unwrap().workflow.id;

    house.run(Retire { workflow }).unwrap();
    assert_eq!(outcome(&mut house, running, Loss::Retired), "-");
    house.push("nightly", NIGHTLY);
    assert_eq!(outcome(&mut house, waiting, Loss::Retired), "-");
    house.run(Retire { workflow }).unwrap();
    assert_eq!(
        outcome(&mut house, waiting, Loss::Retired),
        "cancelled: retired"
    );
}

#[test]
fn a_job_of_a_dropped_source_ends_with_that_reason() {
    let mut house = House::new();
    let waiting = scheduled(&mut house);
    let workflow = house.world.job(waiting).unwrap().workflow.id;
    house.run(DropSource { name: source() }).unwrap();
    house.run(Retire { workflow }).unwrap();
    assert_eq!(
        outcome(&mut house, waiting, Loss::Retired),
        "cancelled: source_dropped"
    );
}

#[test]
fn a_person_cancels_only_waiting_and_running_jobs() {
    let mut house = House::new();
    let actor = Actor::Token {
        id: TokenId::from_uuid(uuid::Uuid::nil()),
        name: "ops".to_owned(),
    };
    let waiting = scheduled(&mut house);
    let (running, _) = house.running();
    for job in [waiting, running] {
        let cancel = Cancel {
            job,
            actor: actor.clone(),
        };
        let ended = house.run(cancel.clone()).unwrap();
        let end = ended.state.end().unwrap();
        assert_eq!(
            (&end.reason, &end.actor),
            (&Reason::CancelledByUser, &actor)
        );
        assert_eq!(ended.state.run().is_some(), job == running);

        assert_eq!(house.run(cancel), Err(Refusal::JobOver { job }));
    }
    let workflow = key(house.push("nightly", NIGHTLY), "probe");
    assert_eq!(house.world.head(&workflow).unwrap().totals.cancelled, 2);
}
