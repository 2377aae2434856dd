//! The retry of a failed or lost job. It is created in the commit that ends the job.

use chrono::TimeDelta;

use crate::job::{End, Inputs, Job, JobState, Run, Trigger};
use crate::limits::RUNNER_SILENCE;
use crate::moment::Moment;
use crate::retry::RetryOf;
use crate::world::World;
use crate::{Actor, JobId, Reason};

/// Whether inputs that are too large for the job's record were copied for the retry. Each job has its own file of large
/// inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargeInputs {
    Copied,
    NotCopied,
}

/// The job that retries `ended`, if a retry is due. It is part of the commit that ends the job, so it is created even
/// on a nearly full disk.
pub(super) fn retry(
    world: &World,
    ended: &Job,
    large_inputs: LargeInputs,
    moment: &mut Moment<'_>,
) -> Option<Job> {
    let end = ended.state.end().filter(|end| end.reason.is_retried())?;
    if is_out_of_time(ended, end, moment) {
        return None;
    }
    if world.is_orphan(ended) || world.suspension(&ended.scan_key()).is_some() {
        return None;
    }
    match (&ended.inputs, large_inputs) {
        (Inputs::Object { .. }, LargeInputs::NotCopied) => return None,
        (Inputs::Object { .. }, LargeInputs::Copied)
        | (Inputs::Inline(_) | Inputs::Defaults, _) => {}
    }
    let revision = world.revision(ended.revision.id)?;
    let scan = revision.definition.scan(ended.scan.as_str())?;
    let next = ended.next_attempt(scan)?;
    let pause = next.pause.max(least_pause(world, ended, end));
    let not_before = moment.steady.checked_add_signed(pause)?;
    Some(Job {
        id: JobId::next(world.latest_job(), moment.now, moment.entropy),
        project: ended.project,
        workflow: ended.workflow.clone(),
        revision: ended.revision.clone(),
        scan: ended.scan.clone(),
        trigger: ended.trigger,
        reason: Reason::Retry { of: ended.id },
        actor: Actor::Daemon,
        inputs: ended.inputs.clone(),
        created_at: end.at,
        rerun_of: None,
        source: match ended.trigger {
            Trigger::Dispatch => ended.source.clone(),
            // The retry gets the files of the commit that is chosen at its claim.
            Trigger::Cron | Trigger::Expr | Trigger::Callback => None,
        },
        retry_of: Some(RetryOf {
            job: ended.id,
            attempt: next.attempt,
            attempts: next.attempts,
        }),
        not_before: Some(not_before),
        retried_by: None,
        causes: ended.causes.clone(),
        hops: ended.hops,
        callback: ended.callback.clone(),
        state: JobState::Scheduled,
    })
}

/// The shortest pause before a retry, independent of its scan. A removed runner, or a runner that has not ended a
/// timed-out job, may still execute the job. It stops after a message from the daemon, or after a silence that is
/// slightly shorter than this pause.
fn least_pause(world: &World, ended: &Job, end: &End) -> TimeDelta {
    let run = ended.state.run();
    let is_removed = |run: &Run| world.runner(run.runner.id).is_none();
    match (&end.reason, &end.actor) {
        (Reason::RunnerLost, _) if run.is_some_and(is_removed) => RUNNER_SILENCE,
        (Reason::TimedOut, Actor::Daemon) => RUNNER_SILENCE,
        _ => TimeDelta::zero(),
    }
}

/// True if the worker session of the job has ended. The runner may notice it first and report a failure.
fn is_out_of_time(job: &Job, end: &End, moment: &Moment<'_>) -> bool {
    let has_ended = |run: &Run| run.expires_at <= moment.steady;
    end.reason != Reason::TimedOut && job.state.run().is_some_and(has_ended)
}
