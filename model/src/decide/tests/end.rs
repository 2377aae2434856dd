//! Ends other than a completion: by a person, a deadline, a loss, or a removal.

use serde_json::json;

use crate::decide::{Cancel, DropSource, EndJob, Loss, Refusal, Retire};
use crate::testing::{NIGHTLY, TestWorld, ended, key, source};
use crate::{Actor, JobId, Reason, TokenId, UserId};

const LOSSES: [Loss; 5] = [
    Loss::RunnerLost,
    Loss::Restored,
    Loss::TimedOut,
    Loss::SessionExpired,
    Loss::Retired,
];

/// The effect of a loss on a job: state and reason, `-` for no change, or `refused`.
fn outcome(test: &mut TestWorld, job: JobId, loss: Loss) -> String {
    match test.changes(EndJob::new(job, loss)) {
        Ok((changes, answer)) => match ended(&changes) {
            Some((state, reason)) => format!("{state}: {}", reason.code()),
            None => {
                assert_eq!(Some(&answer), test.world.job(job));
                "-".to_owned()
            }
        },
        Err(refusal) => {
            assert!(matches!(refusal, Refusal::IllegalTransition(_)));
            "refused".to_owned()
        }
    }
}

fn scheduled(test: &mut TestWorld) -> JobId {
    let workflow = test.push("nightly", NIGHTLY);
    test.dispatch(workflow, "probe", json!({})).unwrap()
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
        let mut test = TestWorld::new();
        let (job, _) = test.running();
        assert_eq!(outcome(&mut test, job, loss), expected, "{loss:?}");
    }
}

#[test]
fn a_waiting_job_cannot_be_lost_or_time_out() {
    for (loss, expected) in LOSSES
        .into_iter()
        .zip(["refused", "refused", "refused", "refused", "-"])
    {
        let mut test = TestWorld::new();
        let job = scheduled(&mut test);
        assert_eq!(outcome(&mut test, job, loss), expected, "{loss:?}");
        assert!(test.world.job(job).is_some());
    }
}

#[test]
fn retiring_ends_only_waiting_jobs_whose_scan_is_still_removed() {
    let mut test = TestWorld::new();
    let (running, _) = test.running();
    let waiting = scheduled(&mut test);
    let workflow = test.world.job(waiting).unwrap().workflow.id;

    test.run(Retire { workflow }).unwrap();
    assert_eq!(outcome(&mut test, running, Loss::Retired), "-");
    test.push("nightly", NIGHTLY);
    assert_eq!(outcome(&mut test, waiting, Loss::Retired), "-");
    test.run(Retire { workflow }).unwrap();
    assert_eq!(
        outcome(&mut test, waiting, Loss::Retired),
        "cancelled: retired"
    );
}

#[test]
fn a_job_of_a_dropped_source_ends_with_this_reason() {
    let mut test = TestWorld::new();
    let waiting = scheduled(&mut test);
    let workflow = test.world.job(waiting).unwrap().workflow.id;
    test.run(DropSource { name: source() }).unwrap();
    test.run(Retire { workflow }).unwrap();
    assert_eq!(
        outcome(&mut test, waiting, Loss::Retired),
        "cancelled: source_dropped"
    );
}

#[test]
fn a_person_cancels_only_waiting_and_running_jobs() {
    let mut test = TestWorld::new();
    let actor = Actor::Token {
        id: TokenId::from_uuid(uuid::Uuid::nil()),
        name: "ops".to_owned(),
        user: UserId::OWNER,
    };
    let waiting = scheduled(&mut test);
    let (running, _) = test.running();
    for job in [waiting, running] {
        let cancel = Cancel {
            job,
            actor: actor.clone(),
        };
        let ended = test.run(cancel.clone()).unwrap();
        let end = ended.state.end().unwrap();
        assert_eq!(
            (&end.reason, &end.actor),
            (&Reason::CancelledByUser, &actor)
        );
        assert_eq!(ended.state.run().is_some(), job == running);

        assert_eq!(test.run(cancel), Err(Refusal::JobOver { job }));
    }
    let workflow = key(test.push("nightly", NIGHTLY), "probe");
    assert_eq!(test.world.head(&workflow).unwrap().totals.cancelled, 2);
}
