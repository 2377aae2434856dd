use std::collections::HashMap;
use std::hash::Hash;

use crate::{JobId, ProjectId, Reach, Timestamp, WorkflowId, World};

/// Those who take turns with a waiting job: its project with other projects, then its workflow with others of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    pub project: ProjectId,
    pub workflow: WorkflowId,
}

/// When each project and workflow was last served. They take turns, so that a busy one cannot block a quiet one.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    projects: HashMap<ProjectId, u64>,
    workflows: HashMap<WorkflowId, u64>,
    count: u64,
}

impl Turns {
    /// Records that a job was offered.
    pub fn serve(&mut self, turn: Turn) {
        self.count += 1;
        self.projects.insert(turn.project, self.count);
        self.workflows.insert(turn.workflow, self.count);
    }

    /// Removes projects and workflows without waiting jobs. One without an entry is served first.
    pub fn keep_waiting(&mut self, world: &World) {
        keep(&mut self.projects, world.waiting_projects());
        keep(&mut self.workflows, world.waiting_workflows());
    }

    fn last(&self, turn: Turn) -> (u64, u64) {
        let project = self.projects.get(&turn.project);
        let workflow = self.workflows.get(&turn.workflow);
        (
            project.copied().unwrap_or(0),
            workflow.copied().unwrap_or(0),
        )
    }
}

fn keep<K: Eq + Hash + Ord>(
    served: &mut HashMap<K, u64>,
    waiting: impl ExactSizeIterator<Item = K>,
) {
    if served.len() > waiting.len() * 2 + 16 {
        let waiting: Vec<K> = waiting.collect();
        served.retain(|key, _| waiting.binary_search(key).is_ok());
    }
}

/// The next job for a runner with this reach. Projects take turns, then the workflows of a project, and the oldest job of a
/// workflow comes first (design section 4). Jobs that are due after `time` (the world's time) are left out. `taken` is true
/// for jobs that are already offered.
pub fn next_job(
    world: &World,
    reach: &Reach,
    turns: &Turns,
    time: Timestamp,
    taken: impl Fn(JobId) -> bool,
) -> Option<(Turn, JobId)> {
    let oldest = world.offerable(reach).filter_map(|(turn, jobs)| {
        let job = jobs.iter().copied().find(|id| !taken(*id))?;
        Some((turn, job))
    });
    let delayed = world.due_delayed(reach, time);
    oldest
        .chain(delayed.filter(|(_, id)| !taken(*id)))
        .min_by_key(|(turn, job)| (turns.last(*turn), *job))
}

#[cfg(test)]
mod tests;
