//! A worker completes its job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::{Outputs, check_outputs};

use super::finish::{finish, read_at_end};
use super::report::{check_steps, declared, running};
use super::retry::LargeInputs;
use super::{Command, Decision, Refusal, Urgency};
use crate::job::{End, Job, LeftOut, Step, StepOutcome};
use crate::life_cycle::{JobEvent, Verdict};
use crate::limits::{LEFT_OUT_CHARS, LEFT_OUT_FILES, MESSAGE_CHARS};
use crate::moment::Moment;
use crate::world::World;
use crate::{Actor, JobId, Reason, ScanKey, TokenHash};

/// Complete a job with the report of its worker.
#[derive(Debug, Clone)]
pub struct Complete {
    pub job: JobId,
    pub token: TokenHash,
    pub steps: Vec<Step>,
    /// The outputs of all steps.
    pub outputs: Outputs,
    /// Files missing from the stored artifacts, by artifact.
    pub left_out: BTreeMap<String, LeftOut>,
    /// Number of log records. All of them are stored.
    pub log_records: u64,
    /// Length of the log, in bytes.
    pub log_bytes: u64,
    pub failure: Option<Failure>,
    /// Whether large inputs were copied for the retry of a failed job.
    pub large_inputs: LargeInputs,
}

/// A failure outside the steps, with the worker's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An artifact's path, condition or upload failed.
    Artifact(String),
    /// An environment value of the scan could not be evaluated.
    Env(String),
    /// The files of the repository could not be put into the job's folder.
    Checkout(String),
    /// The runner could not prepare the job.
    Setup(String),
    /// The runner had to stop immediately.
    RunnerStopped(String),
    /// The scan's `timeout` passed.
    TimedOut,
}

impl Complete {
    /// True if the worker reports no failure.
    pub fn is_success(&self) -> bool {
        let has_failed = |step: &Step| step.outcome == Some(StepOutcome::Failed);
        self.failure.is_none() && !self.steps.iter().any(has_failed)
    }
}

impl Command for Complete {
    type Answer = Arc<Job>;
    const URGENCY: Urgency = Urgency::Finishing;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        read_at_end(world, self.job)
    }

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Arc<Job>>, Refusal> {
        let (job, run) = running(world, self.job, self.token)?;
        let steps = check_steps(world, job, self.steps)?;
        check_outputs(&self.outputs).map_err(|error| Refusal::BadReport {
            job: job.id,
            problem: error.to_string(),
        })?;
        // If the scan is unknown, the report must not pass as one for a scan without steps.
        let count = declared(world, job).map_or(steps.len().max(1), |scan| scan.steps.len());
        let is_late = run
            .deadline
            .is_some_and(|deadline| deadline <= moment.steady);
        let reason = outcome(job, &steps, count, self.failure, is_late)?;
        let verdict = if reason == Reason::StepsSucceeded {
            Verdict::Succeeded
        } else {
            Verdict::Failed
        };
        let actor = Actor::Runner {
            id: run.runner.id,
            name: run.runner.name.clone(),
        };
        let end = End {
            at: moment.now,
            reason,
            actor,
        };
        let event = JobEvent::Completed {
            end,
            verdict,
            steps,
            outputs: self.outputs,
            left_out: bounded(self.left_out),
            log_records: self.log_records,
        };
        let (job, changes) = finish(world, job, event, self.log_bytes, self.large_inputs, moment)?;
        Ok(Decision {
            changes,
            answer: job,
        })
    }
}

/// The outcome of the report. A failed step takes precedence over a failure outside the steps, but not over the
/// `timeout`, because steps that clean up after a timeout may fail. `is_late` is true if the `timeout` has passed.
fn outcome(
    job: &Job,
    steps: &[Step],
    declared: usize,
    failure: Option<Failure>,
    is_late: bool,
) -> Result<Reason, Refusal> {
    if failure == Some(Failure::TimedOut) {
        return Ok(Reason::TimedOut);
    }
    let failed = steps
        .iter()
        .find(|step| step.outcome == Some(StepOutcome::Failed));
    if let Some(step) = failed {
        return Ok(Reason::StepFailed {
            step: step.index,
            exit_code: step.exit_code,
        });
    }
    if let Some(failure) = failure {
        return Ok(match failure {
            Failure::Artifact(message) => Reason::ArtifactFailed {
                message: cut(message),
            },
            Failure::Env(message) => Reason::EnvFailed {
                message: cut(message),
            },
            Failure::Checkout(message) => Reason::CheckoutFailed {
                message: cut(message),
            },
            Failure::Setup(message) => Reason::SetupFailed {
                message: cut(message),
            },
            // Older runners report a timeout in this way.
            Failure::RunnerStopped(_) if is_late => Reason::TimedOut,
            Failure::RunnerStopped(message) => Reason::RunnerStopped {
                message: cut(message),
            },
            Failure::TimedOut => Reason::TimedOut,
        });
    }
    let done = |step: &Step| {
        matches!(
            step.outcome,
            Some(StepOutcome::Succeeded | StepOutcome::Skipped)
        )
    };
    if steps.len() == declared && steps.iter().all(done) {
        Ok(Reason::StepsSucceeded)
    } else {
        Err(Refusal::BadReport {
            job: job.id,
            problem: format!(
                "{} of {declared} steps have ended and nothing is reported as failed",
                steps.iter().filter(|step| done(step)).count()
            ),
        })
    }
}

fn cut(message: String) -> String {
    message.chars().take(MESSAGE_CHARS).collect()
}

/// Keeps the first files of all artifacts together, and counts the other files.
fn bounded(mut left_out: BTreeMap<String, LeftOut>) -> BTreeMap<String, LeftOut> {
    let mut room = LEFT_OUT_FILES;
    for LeftOut { files, more } in left_out.values_mut() {
        let kept = files.len().min(room);
        *more = more.saturating_add((files.len() - kept) as u64);
        files.truncate(kept);
        room -= kept;
        for text in files
            .iter_mut()
            .flat_map(|file| [&mut file.name, &mut file.reason])
        {
            *text = text.chars().take(LEFT_OUT_CHARS).collect();
        }
    }
    left_out
}
