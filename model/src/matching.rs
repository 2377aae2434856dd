use std::collections::HashMap;

use crate::{Abilities, JobId, Timestamp, WorkflowId, World};

/// When each workflow was last served. Workflows take turns, so that a busy workflow cannot block a quiet workflow.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    served: HashMap<WorkflowId, u64>,
    count: u64,
}

impl Turns {
    /// Records that a job of `workflow` was offered.
    pub fn serve(&mut self, workflow: WorkflowId) {
        self.count += 1;
        self.served.insert(workflow, self.count);
    }

    /// Removes workflows without waiting jobs. A workflow without an entry is served first.
    pub fn keep_waiting(&mut self, world: &World) {
        let waiting = world.waiting_workflows();
        if self.served.len() > waiting.len() * 2 + 16 {
            let waiting: Vec<WorkflowId> = waiting.collect();
            self.served
                .retain(|workflow, _| waiting.binary_search(workflow).is_ok());
        }
    }
}

/// The next job for a runner with these abilities. Workflows take turns, and the oldest job of a workflow comes first
/// (design section 4). Jobs that are due after `time` (the world's time) are left out. `taken` is true for jobs that
/// are already offered.
pub fn next_job(
    world: &World,
    abilities: &Abilities,
    turns: &Turns,
    time: Timestamp,
    taken: impl Fn(JobId) -> bool,
) -> Option<(WorkflowId, JobId)> {
    let oldest = world.offerable(abilities).filter_map(|(workflow, jobs)| {
        let job = jobs.iter().copied().find(|id| !taken(*id))?;
        Some((workflow, job))
    });
    let delayed = world.due_delayed(abilities, time);
    oldest
        .chain(delayed.filter(|(_, id)| !taken(*id)))
        .map(|(workflow, job)| {
            let served = turns.served.get(&workflow).copied().unwrap_or(0);
            (served, workflow, job)
        })
        .min_by_key(|(served, _, job)| (*served, *job))
        .map(|(_, workflow, job)| (workflow, job))
}

#[cfg(test)]
mod tests;
