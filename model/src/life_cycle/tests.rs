//! The complete table of states and events, and the effect of an event on a run.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::json;

use super::*;
use crate::testing::{step, succeeded};
use crate::{Actor, Order, Reason, RunnerRef, Timestamp, TokenHash};

fn now() -> Timestamp {
    Timestamp::from_timestamp_millis(1_790_000_000_000).unwrap()
}

fn end() -> End {
    End {
        at: now(),
        reason: Reason::CancelledByUser,
        actor: Actor::Daemon,
    }
}

fn run() -> Box<Run> {
    let context = json!({"project": "", "workflow": "", "revision": "", "ok": true});
    Box::new(Run {
        runner: RunnerRef {
            id: "0198c5f2-7c1e-4000-8000-000000000000".parse().unwrap(),
            name: "first".to_owned(),
        },
        job_token: None,
        callback: None,
        token: TokenHash::of("t"),
        started_at: now() - TimeDelta::minutes(1),
        claimed: Order::START,
        expires_at: now() + TimeDelta::hours(4),
        deadline: None,
        context: serde_json::from_value(context).unwrap(),
        secrets: BTreeMap::new(),
        steps: vec![
            step(0, StepStatus::Succeeded, Some(StepOutcome::Succeeded)),
            step(1, StepStatus::Running, None),
        ],
        artifacts: Vec::new(),
        outputs: BTreeMap::new(),
        log_records: 0,
        log_bytes: 0,
        log_limit: None,
        log_cut: None,
    })
}

fn artifact() -> Artifact {
    Artifact {
        id: "0198c5f2-7c1e-5000-8000-000000000000".parse().unwrap(),
        name: "hosts".to_owned(),
        size: 1,
        sha256: "00".to_owned(),
        content_digest: "sha256:00".to_owned(),
        created_at: now(),
        expires_at: None,
        removed: None,
        left_out: None,
    }
}

fn completed(verdict: Verdict) -> JobEvent {
    JobEvent::Completed {
        end: end(),
        verdict,
        steps: succeeded(2),
        outputs: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
        left_out: BTreeMap::new(),
        log_records: 7,
    }
}

fn states() -> [JobState; 7] {
    [
        JobState::Scheduled,
        JobState::Running { run: run() },
        JobState::Succeeded {
            end: end(),
            run: run(),
        },
        JobState::Failed {
            end: end(),
            run: run(),
        },
        JobState::Cancelled {
            end: end(),
            run: None,
        },
        JobState::Cancelled {
            end: end(),
            run: Some(run()),
        },
        JobState::Skipped { end: end() },
    ]
}

fn events() -> [JobEvent; 10] {
    [
        JobEvent::Claimed(run()),
        JobEvent::NoLongerWanted(end()),
        JobEvent::StepsReported(succeeded(1)),
        JobEvent::ArtifactStored(artifact()),
        completed(Verdict::Succeeded),
        completed(Verdict::Failed),
        JobEvent::Lost(end()),
        JobEvent::TimedOut(end()),
        JobEvent::SessionExpired(end()),
        JobEvent::Cancelled(end()),
    ]
}

#[test]
fn each_event_has_its_effect_in_each_state() {
    // One row per state, one column per event; `-` means refused.
    const SCHEDULED: [&str; 10] = [
        "running",
        "skipped",
        "-",
        "-",
        "-",
        "-",
        "-",
        "-",
        "-",
        "cancelled",
    ];
    const RUNNING: [&str; 10] = [
        "-",
        "-",
        "running",
        "running",
        "succeeded",
        "failed",
        "failed",
        "failed",
        "cancelled",
        "cancelled",
    ];
    const OVER: [&str; 10] = ["-"; 10];

    let rows = [SCHEDULED, RUNNING, OVER, OVER, OVER, OVER, OVER];
    for (state, row) in states().into_iter().zip(rows) {
        for (event, expected) in events().into_iter().zip(row) {
            let (from, tried) = (state.name(), event.name());
            let after = state.clone().on_event(event);
            let after = after.map_or("-", |after| after.name());
            assert_eq!(after, expected, "{from}, {tried}");
        }
    }
}

#[test]
fn a_state_is_terminal_exactly_when_it_has_an_end() {
    let over: Vec<bool> = states().iter().map(JobState::is_terminal).collect();
    assert_eq!(over, [false, false, true, true, true, true, true]);
    for state in states() {
        assert_eq!(state.is_terminal(), state.end().is_some());
        let json = serde_json::to_value(&state).unwrap();
        assert_eq!(json["name"], state.name());
        assert_eq!(serde_json::from_value::<JobState>(json).unwrap(), state);
    }
}

#[test]
fn a_running_step_is_stopped_with_its_job() {
    for event in [
        JobEvent::Lost(end()),
        JobEvent::TimedOut(end()),
        JobEvent::SessionExpired(end()),
        JobEvent::Cancelled(end()),
    ] {
        let state = JobState::Running { run: run() }.on_event(event).unwrap();
        let steps = &state.run().unwrap().steps;
        assert_eq!(steps[0].status, StepStatus::Succeeded);
        assert_eq!(steps[1].status, StepStatus::Cancelled);
        assert_eq!(steps[1].outcome, Some(StepOutcome::Cancelled));
        assert_eq!(steps[1].finished_at, Some(now()));
    }
}

#[test]
fn completion_stores_the_report() {
    let state = JobState::Running { run: run() }
        .on_event(completed(Verdict::Succeeded))
        .unwrap();
    let run = state.run().unwrap();
    assert_eq!((run.log_records, &run.steps), (7, &succeeded(2)));
}
