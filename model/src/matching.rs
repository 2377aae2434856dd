//! Which job a runner gets next.

use std::collections::HashMap;

use workflow::Scan;

use crate::job::Job;
use crate::{JobId, WorkflowId, World};

/// Who was served when, so that workflows take turns. A busy workflow cannot starve a quiet one.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    served: HashMap<WorkflowId, u64>,
    count: u64,
}

impl Turns {
    /// Notes that a job of `workflow` was offered.
    pub fn serve(&mut self, workflow: WorkflowId) {
        self.count += 1;
        self.served.insert(workflow, self.count);
    }

    /// Forgets workflows that have nothing waiting: who comes new goes first.
    pub fn keep_waiting(&mut self, world: &World) {
        if self.served.len() > world.scheduled().count() * 2 + 16 {
            let waiting: Vec<WorkflowId> =
                world.scheduled().map(|(workflow, _)| workflow).collect();
            self.served
                .retain(|workflow, _| waiting.binary_search(workflow).is_ok());
        }
    }
}

/// The job for a runner with these labels: workflows take turns, oldest first within one (design section 4).
/// `taken` says which scheduled jobs are offered to somebody already.
pub fn next_job(
    world: &World,
    labels: &[String],
    turns: &Turns,
    taken: impl Fn(JobId) -> bool,
) -> Option<(WorkflowId, JobId)> {
    world
        .scheduled()
        .filter_map(|(workflow, jobs)| {
            let job = jobs.iter().copied().find(|id| {
                !taken(*id) && world.job(*id).is_some_and(|job| fits(world, job, labels))
            })?;
            Some((
                turns.served.get(&workflow).copied().unwrap_or(0),
                workflow,
                job,
            ))
        })
        .min_by_key(|(served, _, job)| (*served, *job))
        .map(|(_, workflow, job)| (workflow, job))
}

/// Whether a runner with these labels may execute the job: it has every label the scan asks for, and the scan is not
/// gone meanwhile.
fn fits(world: &World, job: &Job, labels: &[String]) -> bool {
    !world.is_orphan(job)
        && scan_of(world, job)
            .is_some_and(|scan| scan.runs_on.iter().all(|wanted| labels.contains(wanted)))
}

/// The declaration a job executes.
fn scan_of<'a>(world: &'a World, job: &Job) -> Option<&'a Scan> {
    world
        .revision(job.revision.id)?
        .definition
        .scan(job.scan.as_str())
}

#[cfg(test)]
mod tests;
