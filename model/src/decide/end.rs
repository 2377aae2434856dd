//! Ends a job other than by its completion.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::finish::{finish, read_at_end};
use super::retry::LargeInputs;
use super::{Command, Decision, Refusal, Urgency};
use crate::job::{End, Job, JobState};
use crate::life_cycle::JobEvent;
use crate::moment::Moment;
use crate::world::World;
use crate::{Actor, JobId, Reason, ScanKey};

/// Cancel a job for a person.
#[derive(Debug, Clone)]
pub struct Cancel {
    pub job: JobId,
    pub actor: Actor,
}

impl Command for Cancel {
    type Answer = Arc<Job>;
    const URGENCY: Urgency = Urgency::Finishing;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        read_at_end(world, self.job)
    }

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Arc<Job>>, Refusal> {
        let job = world
            .job(self.job)
            .ok_or(Refusal::JobOver { job: self.job })?;
        let end = End {
            at: moment.now,
            reason: Reason::CancelledByUser,
            actor: self.actor,
        };
        let event = JobEvent::Cancelled(end);
        let bytes = (moment.log_bytes)(job.id);
        let (job, changes) = finish(world, job, event, bytes, LargeInputs::NotCopied, moment)?;
        Ok(Decision {
            changes,
            answer: job,
        })
    }
}

/// Why the daemon ends a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its runner is silent or was removed.
    RunnerLost,
    /// It was running when the backup was taken.
    Restored,
    /// The scan's `timeout` passed, and the runner did not end the job.
    TimedOut,
    /// The worker session token expired.
    SessionExpired,
    /// The scan was suspended. This ends waiting jobs of its schedule or expression, and waiting retries.
    Suspended,
    /// The scan was removed from its source before the job began.
    Retired,
}

/// End a job that neither a person nor its worker ends.
#[derive(Debug, Clone)]
pub struct EndJob {
    pub job: JobId,
    pub loss: Loss,
    /// Whether large inputs were copied for the retry of a lost job.
    pub large_inputs: LargeInputs,
}

impl EndJob {
    pub const fn new(job: JobId, loss: Loss) -> Self {
        Self {
            job,
            loss,
            large_inputs: LargeInputs::NotCopied,
        }
    }
}

impl Command for EndJob {
    type Answer = Arc<Job>;
    const URGENCY: Urgency = Urgency::Finishing;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        read_at_end(world, self.job)
    }

    /// A removed or suspended scan ends only waiting jobs. If the scan is present or resumed again, no job ends.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Arc<Job>>, Refusal> {
        let job = world
            .job(self.job)
            .ok_or(Refusal::JobOver { job: self.job })?;
        let end = |reason| End {
            at: moment.now,
            reason,
            actor: Actor::Daemon,
        };
        let suspension = world
            .suspension(&job.scan_key())
            .filter(|_| job.ends_with_suspension());
        let event = match (self.loss, &job.state, suspension) {
            (Loss::RunnerLost, _, _) => JobEvent::Lost(end(Reason::RunnerLost)),
            (Loss::Restored, _, _) => JobEvent::Lost(end(Reason::Restored)),
            (Loss::TimedOut, _, _) => JobEvent::TimedOut(end(Reason::TimedOut)),
            (Loss::SessionExpired, _, _) => JobEvent::SessionExpired(end(Reason::SessionExpired)),
            (Loss::Retired, JobState::Scheduled, _) if world.is_orphan(job) => {
                let workflow = world.workflow_record(job.workflow.id);
                let retirement = workflow.and_then(|workflow| world.retirement(workflow));
                JobEvent::Cancelled(end(retirement.unwrap_or(Reason::Retired)))
            }
            (Loss::Suspended, JobState::Scheduled, Some(suspension)) => JobEvent::Cancelled(End {
                at: moment.now,
                reason: suspension.as_reason(),
                actor: suspension.by.clone(),
            }),
            (
                Loss::Retired | Loss::Suspended,
                JobState::Scheduled
                | JobState::Running { .. }
                | JobState::Succeeded { .. }
                | JobState::Failed { .. }
                | JobState::Cancelled { .. }
                | JobState::Skipped { .. },
                _,
            ) => return Ok(Decision::unchanged(job.clone())),
        };
        let bytes = (moment.log_bytes)(job.id);
        let (job, changes) = finish(world, job, event, bytes, self.large_inputs, moment)?;
        Ok(Decision {
            changes,
            answer: job,
        })
    }
}
