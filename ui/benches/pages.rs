//! Measures the rendering of a list of 200 jobs. The target is at most one millisecond.

#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use chrono::DateTime;
use ui::pages::{JobFilter, Jobs, jobs};
use ui::shell::{Counts, Theme, Viewer, Visit};
use uuid::Uuid;
use wire::{
    Job, JobReason, JobState, LogSummary, Page, RevisionRef, RunnerRef, Scope, Trigger, WorkflowRef,
};

const ROWS: u128 = 200;
const TURNS: u32 = 500;

fn main() {
    let visit = Visit {
        viewer: Some(Viewer {
            name: "ada".to_owned(),
            scopes: vec![Scope::Admin],
            roles: None,
        }),
        version: "0.1.0".to_owned(),
        theme: Theme::System,
        now: DateTime::UNIX_EPOCH,
        counts: Counts::default(),
        answers_form: false,
        form_key: Uuid::nil(),
    };
    let list = Page::all((0..ROWS).map(job).collect());
    let filter = JobFilter::default();
    let page = Jobs {
        filter: &filter,
        jobs: &list,
        is_later: false,
        refused: &ui::form::Refused::default(),
    };
    let start = Instant::now();
    let mut length = 0;
    for _ in 0..TURNS {
        length = black_box(jobs(&visit, black_box(&page)))
            .into_string()
            .len();
    }
    let each = start.elapsed() / TURNS;
    println!("{ROWS} jobs, {length} bytes: {each:?}");
}

fn job(number: u128) -> Job {
    Job {
        id: Uuid::from_u128(number),
        workflow: WorkflowRef {
            id: Uuid::nil(),
            source: "infra".to_owned(),
            name: "net/recon".to_owned(),
        },
        revision: RevisionRef {
            id: Uuid::nil(),
            number: 12,
            commit: "9f2c41d".to_owned(),
        },
        scan: "probe".to_owned(),
        state: JobState::Succeeded,
        trigger: Trigger::Expr,
        reason: JobReason {
            code: "steps_succeeded".to_owned(),
            message: "all steps succeeded".to_owned(),
            actor: "north-1".to_owned(),
        },
        waiting: None,
        inputs: BTreeMap::new(),
        created_at: DateTime::UNIX_EPOCH,
        dispatched_by: None,
        rerun_of: None,
        source: None,
        messages: Vec::new(),
        storing: None,
        retry_of: None,
        retried_by: None,
        attempt: None,
        attempts: None,
        not_before: None,
        causes: Vec::new(),
        hops: 0,
        callback: None,
        started_at: Some(DateTime::UNIX_EPOCH),
        finished_at: Some(DateTime::UNIX_EPOCH),
        runner: Some(RunnerRef {
            id: Uuid::nil(),
            name: "north-1".to_owned(),
        }),
        steps: Vec::new(),
        artifacts: Vec::new(),
        outputs: BTreeMap::new(),
        log: LogSummary::default(),
    }
}
