//! Starts a job for a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use workflow::{InputValue, ScanName};

use super::once::{remember, repeated};
use super::{Command, Decision, Refusal, Urgency, readable_workflow};
use crate::callback::CallbackCause;
use crate::change::Change;
use crate::idempotency::{IdempotencyKey, Made};
use crate::job::{Inputs, Job, JobSource, JobState, Trigger};
use crate::limits::{
    SCHEDULED_JOBS_PER_SCAN, UNFINISHED_JOBS, UNFINISHED_JOBS_PER_PROJECT,
    UNFINISHED_JOBS_PER_SHARE,
};
use crate::moment::Moment;
use crate::principal::Share;
use crate::revision::{ActiveWorkflow, Revision, RevisionRef};
use crate::world::World;
use crate::{Actor, Hops, JobId, Reason, RevisionId, ScanKey, Timestamp, WorkflowId};

/// Start a job of a scan, with inputs that were checked against `revision`.
#[derive(Debug, Clone)]
pub struct Dispatch {
    pub workflow: WorkflowId,
    pub scan: ScanName,
    /// The revision that the inputs were checked against.
    pub revision: RevisionId,
    /// The inputs, with defaults.
    pub inputs: Inputs,
    pub actor: Actor,
    /// Identifies a repeat of this request.
    pub idempotency: Option<IdempotencyKey>,
    /// Set for a rerun.
    pub again: Option<Again>,
}

#[derive(Debug, Clone)]
pub struct Again {
    pub job: JobId,
    /// The revision of that job, to run it again; none for the active revision.
    pub revision: Option<Arc<Revision>>,
    /// The commit whose files that job got, to use it again; none for the newest commit.
    pub source: Option<Box<JobSource>>,
    /// The interactions that started that job.
    pub callback: Option<Box<CallbackCause>>,
}

#[derive(Debug, Clone)]
pub struct Checked {
    pub scan: ScanName,
    /// The revision that the inputs were checked against.
    pub revision: RevisionId,
    /// The inputs, with defaults.
    pub inputs: BTreeMap<String, InputValue>,
}

/// Checks the inputs of a dispatch against the active revision, before large inputs are stored.
pub fn check_dispatch(
    world: &World,
    workflow: WorkflowId,
    scan: &str,
    given: &BTreeMap<String, Value>,
) -> Result<Checked, Refusal> {
    let workflow = active(world, workflow)?;
    let Some(declared) = workflow.revision.definition.scan(scan) else {
        return Err(no_such_scan(&workflow, scan));
    };
    may_start(world, &workflow, &declared.name)?;
    let inputs = declared
        .accept_inputs(given)
        .map_err(|errors| Refusal::InvalidInputs {
            scan: scan.to_owned(),
            errors,
        })?;
    Ok(Checked {
        scan: declared.name.clone(),
        revision: workflow.record.revision.id,
        inputs,
    })
}

/// Checks that a job can be run again, before its inputs and its revision are read. `last` is the last job of its chain
/// of retries, or the job itself.
pub fn check_rerun(world: &World, job: &Job, last: &Job) -> Result<(), Refusal> {
    if !last.state.is_terminal() {
        return Err(if last.id == job.id {
            Refusal::RerunNotOver {
                job: job.id,
                state: last.state.name(),
            }
        } else {
            Refusal::RetryNotOver {
                job: job.id,
                retry: last.id,
            }
        });
    }
    let workflow = active(world, job.workflow.id)?;
    still_has(world, &workflow, &job.scan)?;
    may_start(world, &workflow, &job.scan)
}

/// Refuses a job of a suspended scan.
fn may_start(world: &World, workflow: &ActiveWorkflow, scan: &ScanName) -> Result<(), Refusal> {
    let key = ScanKey::new(workflow.record.id, scan);
    match world.suspension(&key) {
        None => Ok(()),
        Some(suspension) => Err(Refusal::Suspended {
            workflow: workflow.record.name.clone(),
            scan: scan.to_string(),
            part: suspension.part(),
            why: Box::new(suspension.as_reason()),
        }),
    }
}

fn still_has(world: &World, workflow: &ActiveWorkflow, scan: &ScanName) -> Result<(), Refusal> {
    if workflow.scan(scan).is_some() {
        return Ok(());
    }
    let heir = world.heir(&ScanKey::new(workflow.record.id, scan));
    Err(Refusal::ScanRetired {
        workflow: workflow.record.name.clone(),
        scan: scan.to_string(),
        renamed_to: heir.map(|heir| heir.scan.to_string()),
    })
}

fn active(world: &World, id: WorkflowId) -> Result<ActiveWorkflow, Refusal> {
    let retired = world
        .workflow_record(id)
        .and_then(|record| Some((record, world.retirement(record)?)));
    let Some((record, reason)) = retired else {
        return readable_workflow(world, id);
    };
    let workflow = record.name.clone();
    Err(match reason {
        Reason::SourceDropped => Refusal::SourceDropped {
            workflow,
            source_name: record.source.to_string(),
        },
        _ => Refusal::Retired { workflow },
    })
}

pub(super) fn no_such_scan(workflow: &ActiveWorkflow, scan: &str) -> Refusal {
    Refusal::NoSuchScan {
        workflow: workflow.record.name.clone(),
        scan: scan.chars().take(80).collect(),
        known: workflow
            .revision
            .definition
            .scans()
            .map(|scan| scan.name.to_string())
            .collect(),
    }
}

impl Command for Dispatch {
    /// The new job. A repeated request gets the job of the first request.
    type Answer = JobId;
    const URGENCY: Urgency = Urgency::Beginning;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<JobId>, Refusal> {
        if let Some(first) = repeated_dispatch(world, self.idempotency.as_ref(), moment.steady)? {
            return Ok(Decision::unchanged(first));
        }
        let workflow = active(world, self.workflow)?;
        let (revision, read) = self.revision_to_run(world, &workflow)?;
        may_start(world, &workflow, &self.scan)?;
        check_room(world, &workflow, &self.scan, &self.actor)?;
        let hops = hops(world, &self.actor)?;
        let pause = hops.pause_after_step(moment.cycle_pause);
        let id = JobId::next(world.latest_job(), moment.now, moment.entropy);
        let source = self.source(world, &workflow, &revision);
        let mut changes = remember(world, self.idempotency, Made::Job(id), moment);
        changes.extend(read);
        let callback = self.again.as_ref().and_then(|again| again.callback.clone());
        let rerun_of = self.again.map(|again| again.job);
        changes.push(Change::Job(Arc::new(Job {
            id,
            project: workflow.record.project,
            workflow: workflow.record.reference(),
            revision,
            scan: self.scan,
            trigger: Trigger::Dispatch,
            reason: rerun_of.map_or(Reason::Dispatched, |of| Reason::Rerun { of }),
            actor: self.actor,
            inputs: self.inputs,
            created_at: moment.now,
            rerun_of,
            source,
            retry_of: None,
            retried_by: None,
            not_before: pause.and_then(|pause| moment.steady.checked_add_signed(pause)),
            causes: Vec::new(),
            hops,
            callback,
            state: JobState::Scheduled,
        })));
        Ok(Decision {
            changes,
            answer: id,
        })
    }
}

impl Dispatch {
    /// The commit whose files the new job gets, if its scan has a `checkout`.
    fn source(
        &self,
        world: &World,
        workflow: &ActiveWorkflow,
        revision: &RevisionRef,
    ) -> Option<Box<JobSource>> {
        let again = self.again.as_ref();
        let earlier = again.and_then(|again| again.revision.as_ref());
        let definition = &earlier.unwrap_or(&workflow.revision).definition;
        definition.scan(self.scan.as_str())?.checkout.as_ref()?;
        if let Some(source) = again.and_then(|again| again.source.clone()) {
            return Some(source);
        }
        let newest = world.files_of(&workflow.record);
        Some(Box::new(if *revision == workflow.record.revision {
            newest
        } else {
            // At the newest commit, the workflow has another text.
            JobSource {
                commit: revision.commit.clone(),
                ..newest
            }
        }))
    }

    /// The revision that the new job runs, and the change that adds it to the world if it is missing there.
    fn revision_to_run(
        &self,
        world: &World,
        workflow: &ActiveWorkflow,
    ) -> Result<(RevisionRef, Option<Change>), Refusal> {
        let again = self.again.as_ref();
        if again.is_some() {
            still_has(world, workflow, &self.scan)?;
        }
        if let Some(earlier) = again.and_then(|again| again.revision.as_ref()) {
            let reference = earlier.record.reference.clone();
            let is_known = world.revision(reference.id).is_some();
            let read = (!is_known).then(|| Change::RevisionRead(earlier.clone()));
            return Ok((reference, read));
        }
        if workflow.record.revision.id != self.revision {
            return Err(Refusal::RevisionChanged {
                workflow: workflow.record.name.clone(),
            });
        }
        if workflow.scan(&self.scan).is_none() {
            return Err(no_such_scan(workflow, self.scan.as_str()));
        }
        Ok((workflow.record.revision.clone(), None))
    }
}

/// The position of the new job in its chain: after the job whose step starts it. The steps of a job that is over start none.
fn hops(world: &World, actor: &Actor) -> Result<Hops, Refusal> {
    match actor {
        Actor::Job { id } => match world.job_with_steps(*id) {
            Some(job) => Ok(job.hops.started_by_step()),
            None => Err(Refusal::JobOver { job: *id }),
        },
        Actor::Daemon | Actor::Token { .. } | Actor::User { .. } | Actor::Runner { .. } => {
            Ok(Hops::default())
        }
    }
}

fn check_room(
    world: &World,
    workflow: &ActiveWorkflow,
    scan: &ScanName,
    actor: &Actor,
) -> Result<(), Refusal> {
    let waiting = world.scheduled_of(&ScanKey::new(workflow.record.id, scan));
    let of_project = world.unfinished_of_project(workflow.record.project);
    let share = actor.share(workflow.record.project);
    let of_share = share.map_or(0, |share| world.unfinished_of_share(share));
    let of_whom = match share {
        Some(Share::Project(_)) => "started by steps of this project and unfinished",
        Some(Share::User(_)) | None => "dispatched by this user and unfinished",
    };
    let bounds = [
        (waiting, SCHEDULED_JOBS_PER_SCAN, "waiting for a runner"),
        (of_share, UNFINISHED_JOBS_PER_SHARE, of_whom),
        (
            of_project,
            UNFINISHED_JOBS_PER_PROJECT,
            "unfinished in this project",
        ),
        (
            world.unfinished_jobs(),
            UNFINISHED_JOBS,
            "unfinished in all scans together",
        ),
    ];
    for (jobs, bound, state) in bounds {
        if jobs >= bound {
            return Err(Refusal::TooManyJobs {
                scan: scan.to_string(),
                jobs,
                state,
            });
        }
    }
    Ok(())
}

/// The job of an earlier request with the same key, if this is a repeat. The answer is the same even if the scan has
/// changed since then.
pub fn repeated_dispatch(
    world: &World,
    key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<Option<JobId>, Refusal> {
    match repeated(world, key, now)? {
        None => Ok(None),
        Some(Made::Job(job)) => Ok(Some(job)),
        Some(Made::Token(_) | Made::Registration(_) | Made::BlobLink(_)) => {
            Err(Refusal::IdempotencyMismatch)
        }
    }
}
