//! The life cycle of a job as one total function.
//!
//! `scheduled → running → succeeded | failed | cancelled`, `scheduled → skipped | cancelled`, and no transition back.
//! An event that is not legal in a state is refused and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;
use workflow::Outputs;

use crate::JobId;
use crate::job::{
    Artifact, End, Job, JobState, LeftOut, LogCut, Run, Step, StepOutcome, StepStatus,
};

/// An event in the life of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    Claimed(Box<Run>),
    /// The expression is no longer true at the claim.
    NoLongerWanted(End),
    /// The worker reports the state of all steps.
    StepsReported(Vec<Step>),
    ArtifactStored(Artifact),
    /// The log has reached its limit.
    LogCut(LogCut),
    /// The worker has finished.
    Completed {
        end: End,
        verdict: Verdict,
        steps: Vec<Step>,
        outputs: Outputs,
        /// By the names of the artifacts.
        left_out: BTreeMap<String, LeftOut>,
        log_records: u64,
    },
    Lost(End),
    /// The `timeout` has passed, and the runner did not end the job.
    TimedOut(End),
    /// The worker session has expired.
    SessionExpired(End),
    /// A person cancels it, or it is no longer wanted.
    Cancelled(End),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The job has no failure.
    Succeeded,
    /// A step, an artifact, the environment or the `timeout` failed the job.
    Failed,
}

/// The event is not legal in the job's state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("job {job}: a job that is {state} cannot be {event}")]
pub struct IllegalTransition {
    pub job: JobId,
    pub state: &'static str,
    pub event: &'static str,
}

impl JobEvent {
    /// A participle for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claimed(_) => "claimed",
            Self::NoLongerWanted(_) => "skipped",
            Self::StepsReported(_) => "reported on",
            Self::ArtifactStored(_) => "given an artifact",
            Self::LogCut(_) => "given a cut log",
            Self::Completed { .. } => "completed",
            Self::Lost(_) => "lost",
            Self::TimedOut(_) => "timed out",
            Self::SessionExpired(_) => "out of time",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

impl Job {
    pub fn after(&self, event: JobEvent) -> Result<Arc<Self>, IllegalTransition> {
        let refused = IllegalTransition {
            job: self.id,
            state: self.state.name(),
            event: event.name(),
        };
        let state = self.state.clone().on_event(event).ok_or(refused)?;
        Ok(Arc::new(Self {
            state,
            ..self.clone()
        }))
    }
}

impl JobState {
    /// The state after `event`. None if the event is not legal in this state.
    fn on_event(self, event: JobEvent) -> Option<Self> {
        match (self, event) {
            (Self::Scheduled, JobEvent::Claimed(run)) => Some(Self::Running { run }),
            (Self::Scheduled, JobEvent::NoLongerWanted(end)) => Some(Self::Skipped { end }),
            (Self::Scheduled, JobEvent::Cancelled(end)) => Some(Self::Cancelled { end, run: None }),
            (Self::Running { mut run }, JobEvent::StepsReported(steps)) => {
                run.steps = steps;
                Some(Self::Running { run })
            }
            (Self::Running { mut run }, JobEvent::ArtifactStored(artifact)) => {
                run.artifacts.push(artifact);
                Some(Self::Running { run })
            }
            (Self::Running { mut run }, JobEvent::LogCut(cut)) => {
                run.log_cut = Some(cut);
                Some(Self::Running { run })
            }
            (
                Self::Running { mut run },
                JobEvent::Completed {
                    end,
                    verdict,
                    steps,
                    outputs,
                    mut left_out,
                    log_records,
                },
            ) => {
                run.steps = steps;
                run.outputs = outputs;
                for artifact in &mut run.artifacts {
                    artifact.left_out = left_out.remove(&artifact.name);
                }
                run.log_records = log_records;
                let run = stopped(run, &end);
                Some(match verdict {
                    Verdict::Succeeded => Self::Succeeded { end, run },
                    Verdict::Failed => Self::Failed { end, run },
                })
            }
            (Self::Running { run }, JobEvent::Lost(end) | JobEvent::TimedOut(end)) => {
                Some(Self::Failed {
                    run: stopped(run, &end),
                    end,
                })
            }
            (Self::Running { run }, JobEvent::Cancelled(end) | JobEvent::SessionExpired(end)) => {
                Some(Self::Cancelled {
                    run: Some(stopped(run, &end)),
                    end,
                })
            }
            (
                Self::Scheduled,
                JobEvent::StepsReported(_)
                | JobEvent::ArtifactStored(_)
                | JobEvent::LogCut(_)
                | JobEvent::Completed { .. }
                | JobEvent::Lost(_)
                | JobEvent::TimedOut(_)
                | JobEvent::SessionExpired(_),
            )
            | (Self::Running { .. }, JobEvent::Claimed(_) | JobEvent::NoLongerWanted(_))
            | (
                Self::Succeeded { .. }
                | Self::Failed { .. }
                | Self::Cancelled { .. }
                | Self::Skipped { .. },
                _,
            ) => None,
        }
    }
}

/// Stops the steps that are running when the job ends, because no report will follow.
fn stopped(mut run: Box<Run>, end: &End) -> Box<Run> {
    let running = |step: &&mut Step| step.status == StepStatus::Running;
    for step in run.steps.iter_mut().filter(running) {
        step.status = StepStatus::Cancelled;
        step.outcome = Some(StepOutcome::Cancelled);
        step.finished_at = Some(end.at);
    }
    run
}

#[cfg(test)]
mod tests;
