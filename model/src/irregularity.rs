//! What no life of a job can lead to, for those who read a record that somebody may have changed.

use std::collections::BTreeSet;

use crate::ArtifactId;
use crate::job::{Job, JobState, Run, StepOutcome, StepStatus};

impl Job {
    /// Everything about the job that its life does not allow; empty for every job the daemon wrote.
    pub fn irregularities(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(run) = self.state.run() {
            self.check_run(run, &mut found);
        }
        match &self.state {
            JobState::Scheduled | JobState::Cancelled { .. } | JobState::Skipped { .. } => {}
            JobState::Running { run } => {
                if run.log_records != 0 {
                    found.push("it is running, and the end of its log is known".to_owned());
                }
            }
            JobState::Succeeded { run, .. } => {
                let failed = |outcome| outcome == Some(StepOutcome::Failed);
                if let Some(step) = run.steps.iter().find(|step| failed(step.outcome)) {
                    found.push(format!("it succeeded, and step {} failed it", step.index));
                }
            }
            JobState::Failed { .. } => {}
        }
        found
    }

    fn check_run(&self, run: &Run, found: &mut Vec<String>) {
        if run.expires_at < run.started_at {
            found.push("its token ended before it was given out".to_owned());
        }
        for (index, step) in (0..).zip(&run.steps) {
            if step.index != index {
                found.push(format!(
                    "step {} stands in the place of step {index}",
                    step.index
                ));
            }
            if self.state.is_terminal() && step.status == StepStatus::Running {
                found.push(format!("it is over, and step {index} still runs"));
            }
        }
        let mut names = BTreeSet::new();
        for artifact in &run.artifacts {
            if !names.insert(&artifact.name) {
                found.push(format!("it has two artifacts `{}`", artifact.name));
            }
            if artifact.id != ArtifactId::derive(self.id, &artifact.name) {
                found.push(format!(
                    "artifact `{}` has the id of another",
                    artifact.name
                ));
            }
        }
    }
}
