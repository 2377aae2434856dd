//! Tokens of jobs: how long they are valid, what they may do, and the jobs that steps start.

use chrono::TimeDelta;
use serde_json::json;

use crate::blob::LinkUse;
use crate::decide::{Again, Cancel, CreateBlobLink, Dispatch, EndJob, Loss, NoteProgram, Refusal};
use crate::limits::{BLOB_LINK_LIFE, HOPS_BY_STEPS, UNFINISHED_JOBS_PER_SHARE, WORKER_LAST_WORDS};
use crate::limits::{CYCLE_PAUSE, WORKER_SESSION};
use crate::testing::{NIGHTLY, TestWorld, complete, complete_all, job_token, source};
use crate::{
    Actor, JOB_TOKEN, Job, JobId, Principal, ProjectId, Reason, Rights, RunnerId, Scope, Scopes,
    Share, TokenHash, WorkflowId,
};

/// A step of `a` may start `b`, whose success starts `c`, which is in no group.
const CHAIN: &str = "
scans:
  a: {on: {dispatch: {}}, steps: [{run: x}]}
  b: {on: {dispatch: {}}, steps: [{run: x}], permissions: [dispatch]}
  c: {on: {expr: scans.b.is_available()}, steps: [{run: x}], permissions: []}
";

fn project() -> ProjectId {
    ProjectId::of_source(&source())
}

/// A runner whose program has this capability, or none.
fn runner(test: &mut TestWorld, capability: Option<&str>) -> RunnerId {
    let runner = test.runner("first", &[]);
    let capabilities = capability.into_iter().map(str::to_owned).collect();
    let version = "1".to_owned();
    let note = NoteProgram {
        runner,
        version,
        capabilities,
    };
    test.run(note).unwrap();
    runner
}

fn with_tokens() -> (TestWorld, WorkflowId, RunnerId) {
    let mut test = TestWorld::new();
    test.cycle_pause = CYCLE_PAUSE;
    let workflow = test.push("chain", CHAIN);
    let runner = runner(&mut test, Some(JOB_TOKEN));
    (test, workflow, runner)
}

/// The rights that the token of a job gives now.
fn rights(test: &TestWorld, job: JobId) -> Option<Rights> {
    let principal = Principal::of_job(&test.world, job_token(job))?;
    assert_eq!(principal.job(), Some(job));
    assert_eq!(principal.share(), Share::Project(project()));
    assert_eq!(principal.actor(), Actor::Job { id: job });
    principal.rights(&test.world, test.world.time(test.steady()))
}

fn of_project(scopes: &[Scope]) -> Option<Rights> {
    let scopes = scopes.iter().copied().collect::<Scopes>();
    Some(Rights::of_project(scopes, project()))
}

/// A step of the job starts a scan.
fn start(
    test: &mut TestWorld,
    job: JobId,
    workflow: WorkflowId,
    scan: &str,
) -> Result<JobId, Refusal> {
    let actor = Actor::Job { id: job };
    let command = test.dispatch_of(workflow, scan, json!({}))?;
    test.run(Dispatch { actor, ..command })
}

fn job(test: &TestWorld, job: JobId) -> &Job {
    test.world.job(job).unwrap()
}

#[test]
fn the_token_of_a_job_has_its_permissions_in_its_project() {
    let (mut test, workflow, runner) = with_tokens();
    let default = [
        Scope::JobRead,
        Scope::BlobRead,
        Scope::BlobWrite,
        Scope::Dispatch,
        Scope::PayloadRead,
        Scope::CallbackOwn,
    ];
    let a = test.dispatch(workflow, "a", json!({})).unwrap();
    assert_eq!(rights(&test, a), None, "before the claim");
    test.claim(a, runner).unwrap();
    assert_eq!(rights(&test, a), of_project(&default));
    let b = test.dispatch(workflow, "b", json!({})).unwrap();
    let token = test.claim(b, runner).unwrap();
    assert_eq!(rights(&test, b), of_project(&[Scope::Dispatch]));
    // The permissions are frozen at the claim.
    test.push("chain", &CHAIN.replace("[dispatch]", "[job:read]"));
    assert_eq!(rights(&test, b), of_project(&[Scope::Dispatch]));
    test.run(complete_all(b, token)).unwrap();
    assert_eq!(rights(&test, b), None, "after the end");
    let c = test.world.jobs().last().unwrap().id;
    test.claim(c, runner).unwrap();
    assert_eq!(rights(&test, c), of_project(&[]), "an empty list");
}

#[test]
fn a_runner_that_cannot_give_tokens_gets_none() {
    let mut test = TestWorld::new();
    runner(&mut test, None);
    let (id, token) = test.running();
    assert_eq!(job(&test, id).state.run().unwrap().job_token, None);
    assert_eq!(rights(&test, id), None);
    test.run(complete(id, token)).unwrap();
}

#[test]
fn the_token_of_a_job_is_valid_as_long_as_the_token_of_its_worker() {
    let mut test = TestWorld::new();
    runner(&mut test, Some(JOB_TOKEN));
    let second = TimeDelta::seconds(1);
    let cancel = |job| Cancel {
        job,
        actor: Actor::Daemon,
    };

    let (late, _) = test.running();
    test.pass(WORKER_SESSION - second);
    assert!(rights(&test, late).is_some());
    test.pass(second);
    assert_eq!(rights(&test, late), None, "the session has expired");

    // After a cancel, steps may clean up.
    let (cancelled, _) = test.running();
    test.run(cancel(cancelled)).unwrap();
    test.pass(WORKER_LAST_WORDS - second);
    assert!(rights(&test, cancelled).is_some());
    test.pass(second);
    assert_eq!(rights(&test, cancelled), None);

    // But not longer than without the cancel.
    let (old, _) = test.running();
    test.pass(WORKER_SESSION - second);
    test.run(cancel(old)).unwrap();
    assert!(rights(&test, old).is_some());
    test.pass(second);
    assert_eq!(rights(&test, old), None);

    // A clock that is set does not change the two minutes.
    let (lost, _) = test.running();
    test.jump(TimeDelta::hours(3));
    test.run(EndJob::new(lost, Loss::RunnerLost)).unwrap();
    test.pass(WORKER_LAST_WORDS - second);
    assert!(rights(&test, lost).is_some());
    test.pass(second);
    assert_eq!(rights(&test, lost), None);

    let unknown = TokenHash::of("another");
    assert_eq!(Principal::of_job(&test.world, unknown), None);
}

#[test]
fn jobs_that_steps_start_are_counted_across_scans_and_wait_from_the_tenth_on() {
    let (mut test, workflow, runner) = with_tokens();
    let mut last = test.dispatch(workflow, "a", json!({})).unwrap();
    let mut paused = Vec::new();
    while job(&test, last).hops.count < HOPS_BY_STEPS + 4 {
        if let Some(at) = job(&test, last).not_before {
            paused.push((job(&test, last).hops.count, at - test.now));
            test.now = at;
        }
        // `a` starts `b`; the success of `b` starts `c`; `c` starts `a`.
        let token = test.claim(last, runner).unwrap();
        let next = match job(&test, last).scan.as_str() {
            "b" => None,
            "c" => Some(start(&mut test, last, workflow, "a").unwrap()),
            _ => Some(start(&mut test, last, workflow, "b").unwrap()),
        };
        test.run(complete_all(last, token)).unwrap();
        last = next.unwrap_or_else(|| test.world.jobs().last().unwrap().id);
    }
    // The jobs of the expression do not wait.
    assert_eq!(
        paused,
        [(10, CYCLE_PAUSE), (12, CYCLE_PAUSE), (13, CYCLE_PAUSE)]
    );
    let why = job(&test, last).waits_for_its_time(test.now);
    assert_eq!(why, None, "a job of the expression: {:?}", job(&test, last));

    // A person begins a new chain.
    let fresh = test.dispatch(workflow, "a", json!({})).unwrap();
    assert_eq!(job(&test, fresh).hops.count, 0);
}

#[test]
fn a_rerun_by_a_step_continues_the_chain() {
    let (mut test, workflow, runner) = with_tokens();
    let mut last = test.dispatch(workflow, "a", json!({})).unwrap();
    for hops in 1..=HOPS_BY_STEPS {
        test.claim(last, runner).unwrap();
        let again = Again {
            callback: None,
            job: last,
            revision: None,
            source: None,
        };
        let command = test.dispatch_of(workflow, "a", json!({})).unwrap();
        let actor = Actor::Job { id: last };
        let rerun = Dispatch {
            actor,
            again: Some(again),
            ..command
        };
        last = test.run(rerun).unwrap();
        assert_eq!(job(&test, last).hops.count, hops);
        assert_eq!(job(&test, last).not_before.is_some(), hops == HOPS_BY_STEPS);
    }
    let reason = job(&test, last).waits_for_its_time(test.now);
    assert!(matches!(reason, Some(Reason::CyclePause { .. })));
}

#[test]
fn a_job_that_is_over_starts_no_job() {
    let (mut test, workflow, runner) = with_tokens();
    let over = test.dispatch(workflow, "a", json!({})).unwrap();
    let token = test.claim(over, runner).unwrap();
    test.run(complete_all(over, token)).unwrap();
    let refused = start(&mut test, over, workflow, "b");
    assert_eq!(refused, Err(Refusal::JobOver { job: over }));

    let cancelled = test.dispatch(workflow, "a", json!({})).unwrap();
    test.claim(cancelled, runner).unwrap();
    let actor = Actor::Daemon;
    let job = cancelled;
    test.run(Cancel { job, actor }).unwrap();
    start(&mut test, cancelled, workflow, "b").unwrap();
}

#[test]
fn the_jobs_that_steps_of_a_project_start_are_bounded_together() {
    let (mut test, workflow, runner) = with_tokens();
    let first = test.dispatch(workflow, "a", json!({})).unwrap();
    test.claim(first, runner).unwrap();
    let made = start(&mut test, first, workflow, "b").unwrap();
    let share = Share::Project(project());
    assert_eq!(test.world.unfinished_of_share(share), 1);
    let record = job(&test, made).clone();
    for number in 1..UNFINISHED_JOBS_PER_SHARE {
        let id = JobId::from_uuid(uuid::Uuid::from_u128(number as u128));
        let mut job = Job {
            id,
            ..record.clone()
        };
        job.workflow.id = WorkflowId::from_uuid(uuid::Uuid::nil());
        test.world.apply(&crate::Change::Job(job.into()));
    }
    let Err(Refusal::TooManyJobs { state, .. }) = start(&mut test, first, workflow, "b") else {
        panic!("one job too many");
    };
    assert_eq!(state, "started by steps of this project and unfinished");
    test.dispatch(workflow, "b", json!({})).unwrap();
}

#[test]
fn a_job_makes_links_for_reading_only_which_belong_to_its_project() {
    let mut test = TestWorld::new();
    runner(&mut test, Some(JOB_TOKEN));
    let (id, token) = test.running();
    let create = |use_for| CreateBlobLink {
        project: project(),
        path: "a".parse().unwrap(),
        use_for,
        life: BLOB_LINK_LIFE,
        token: None,
        user: None,
    };
    let refused = test.run(create(LinkUse::Put)).map(drop);
    assert!(matches!(refused, Err(Refusal::InvalidField { .. })));
    let link = test.run(create(LinkUse::Get)).unwrap().link;
    test.run(complete(id, token)).unwrap();
    let rights = |test: &TestWorld| {
        let principal = Principal::of_link(&test.world, &link).unwrap();
        principal.rights(&test.world, test.now)
    };
    assert_eq!(rights(&test), of_project(&[Scope::BlobRead]));
    test.pass(BLOB_LINK_LIFE);
    assert_eq!(rights(&test), None);
}

#[test]
fn the_index_of_tokens_holds_running_jobs_only() {
    let mut test = TestWorld::new();
    test.push("nightly", NIGHTLY);
    runner(&mut test, Some(JOB_TOKEN));
    let (first, token) = test.running();
    let (second, other) = test.running();
    assert!(test.world.job_with_token(&job_token(first)).is_some());
    test.run(complete(first, token)).unwrap();
    assert_eq!(test.world.job_with_token(&job_token(first)), None);
    test.run(complete(second, other)).unwrap();
    assert_eq!(test.world.job_with_token(&job_token(second)), None);
}
