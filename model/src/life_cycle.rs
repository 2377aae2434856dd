//! The life of a job as one total function.
//!
//! `scheduled → running → succeeded | failed | cancelled`, `scheduled → skipped | cancelled`, and no edge back. An event
//! that is not legal in a state is refused and changes nothing.

use thiserror::Error;

use crate::job::{Artifact, End, JobState, LogCut, Run, Step, StepOutcome, StepStatus};

/// Something that happens to a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEvent {
    /// A runner claims it.
    Claimed(Box<Run>),
    /// Its expression is no longer true at the claim.
    NoLongerWanted(End),
    /// The worker reports the state of all steps.
    StepsReported(Vec<Step>),
    /// An artifact was stored.
    ArtifactStored(Artifact),
    /// Its log reached its limit.
    LogCut(LogCut),
    /// The worker is done.
    Completed {
        /// How it ended.
        end: End,
        /// What the steps come to.
        verdict: Verdict,
        /// The state of all steps.
        steps: Vec<Step>,
        /// Number of log records.
        log_records: u64,
    },
    /// The execution is gone with its runner.
    Lost(End),
    /// It runs longer than it may.
    OutOfTime(End),
    /// A person ends it, or it is not wanted any more.
    Cancelled(End),
}

/// What the steps of a completed job come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing failed the job.
    Succeeded,
    /// A step, an artifact or the environment failed it.
    Failed,
}

/// An event that is not legal in the job's state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a job that is {state} cannot be {event}")]
pub struct IllegalTransition {
    /// The state's name.
    pub state: &'static str,
    /// What was tried.
    pub event: &'static str,
}

impl JobEvent {
    /// What the event does to a job, as a participle for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claimed(_) => "claimed",
            Self::NoLongerWanted(_) => "skipped",
            Self::StepsReported(_) => "reported on",
            Self::ArtifactStored(_) => "given an artifact",
            Self::LogCut(_) => "told that its log is cut",
            Self::Completed { .. } => "completed",
            Self::Lost(_) => "lost",
            Self::OutOfTime(_) => "out of time",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

impl JobState {
    /// The state after `event`.
    pub fn on_event(self, event: JobEvent) -> Result<Self, IllegalTransition> {
        match (self, event) {
            (Self::Scheduled, JobEvent::Claimed(run)) => Ok(Self::Running { run }),
            (Self::Scheduled, JobEvent::NoLongerWanted(end)) => Ok(Self::Skipped { end }),
            (Self::Scheduled, JobEvent::Cancelled(end)) => Ok(Self::Cancelled { end, run: None }),
            (Self::Running { mut run }, JobEvent::StepsReported(steps)) => {
                run.steps = steps;
                Ok(Self::Running { run })
            }
            (Self::Running { mut run }, JobEvent::ArtifactStored(artifact)) => {
                run.artifacts.push(artifact);
                Ok(Self::Running { run })
            }
            (Self::Running { mut run }, JobEvent::LogCut(cut)) => {
                run.log_cut = Some(cut);
                Ok(Self::Running { run })
            }
            (
                Self::Running { mut run },
                JobEvent::Completed {
                    end,
                    verdict,
                    steps,
                    log_records,
                },
            ) => {
                run.steps = steps;
                run.log_records = log_records;
                let run = stopped(run, &end);
                Ok(match verdict {
                    Verdict::Succeeded => Self::Succeeded { end, run },
                    Verdict::Failed => Self::Failed { end, run },
                })
            }
            (Self::Running { run }, JobEvent::Lost(end)) => Ok(Self::Failed {
                run: stopped(run, &end),
                end,
            }),
            (Self::Running { run }, JobEvent::Cancelled(end) | JobEvent::OutOfTime(end)) => {
                Ok(Self::Cancelled {
                    run: Some(stopped(run, &end)),
                    end,
                })
            }
            (
                state @ Self::Scheduled,
                event @ (JobEvent::StepsReported(_)
                | JobEvent::ArtifactStored(_)
                | JobEvent::LogCut(_)
                | JobEvent::Completed { .. }
                | JobEvent::Lost(_)
                | JobEvent::OutOfTime(_)),
            )
            | (
                state @ Self::Running { .. },
                event @ (JobEvent::Claimed(_) | JobEvent::NoLongerWanted(_)),
            )
            | (
                state @ (Self::Succeeded { .. }
                | Self::Failed { .. }
                | Self::Cancelled { .. }
                | Self::Skipped { .. }),
                event,
            ) => Err(IllegalTransition {
                state: state.name(),
                event: event.name(),
            }),
        }
    }
}

/// The execution once its job has ended: nobody will report on a step that still runs, so it was stopped with the job.
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
