//! Contradictions in a job's record, for readers of a record that was perhaps edited by hand.

use std::collections::BTreeSet;

use crate::ArtifactId;
use crate::job::{Job, JobState, Run, StepOutcome, StepStatus};

impl Job {
    /// All contradictions in the job's record. A record written by the daemon has no contradictions. Times are not
    /// compared, because the clock may have been set in between.
    pub fn irregularities(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(run) = self.state.run() {
            self.check_run(run, &mut found);
        }
        match &self.state {
            JobState::Scheduled | JobState::Cancelled { .. } | JobState::Skipped { .. } => {}
            JobState::Running { run } => {
                if run.log_records != 0 {
                    found.push("it is running, but its record has the end of its log".to_owned());
                }
            }
            JobState::Succeeded { run, .. } => {
                let failed = |outcome| outcome == Some(StepOutcome::Failed);
                if let Some(step) = run.steps.iter().find(|step| failed(step.outcome)) {
                    found.push(format!("it succeeded although step {} failed", step.index));
                }
            }
            JobState::Failed { .. } => {}
        }
        found
    }

    fn check_run(&self, run: &Run, found: &mut Vec<String>) {
        for (index, step) in (0..).zip(&run.steps) {
            if step.index != index {
                found.push(format!(
                    "step {} is in the place of step {index}",
                    step.index
                ));
            }
            if self.state.is_terminal() && step.status == StepStatus::Running {
                found.push(format!("it has ended, but step {index} is running"));
            }
        }
        let mut names = BTreeSet::new();
        for artifact in &run.artifacts {
            if !names.insert(&artifact.name) {
                found.push(format!("it has two artifacts `{}`", artifact.name));
            }
            if artifact.id != ArtifactId::derive(self.id, &artifact.name) {
                found.push(format!(
                    "artifact `{}` has the id of another artifact",
                    artifact.name
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::TimeDelta;

    use crate::decide::StoreArtifact;
    use crate::job::{Job, JobState, Run, StepOutcome, StepStatus};
    use crate::testing::{TestWorld, complete, sha256, step};

    /// A job that succeeded with two steps and two artifacts.
    fn succeeded() -> Job {
        let mut test = TestWorld::new();
        let (job, token) = test.running();
        for name in ["hosts", "ports"] {
            let store = StoreArtifact {
                job,
                token,
                name: name.to_owned(),
                size: 1,
                sha256: sha256(name),
                content_digest: sha256(name),
            };
            test.run(store).unwrap();
        }
        let running = test.world.job(job).unwrap();
        assert_eq!(running.irregularities(), Vec::<String>::new());
        let answer = test.run(complete(job, token)).unwrap();
        Arc::unwrap_or_clone(answer)
    }

    /// The only irregularity of the job after a change of its run.
    fn after(change: impl FnOnce(&mut Run)) -> String {
        let mut job = succeeded();
        change(job.state.run_mut().unwrap());
        match job.irregularities().as_slice() {
            [only] => only.clone(),
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn records_of_the_daemon_have_no_irregularities() {
        assert_eq!(succeeded().irregularities(), Vec::<String>::new());
        let mut test = TestWorld::new();
        let (running, _) = test.running();
        let job = test.world.job(running).unwrap();
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }

    #[test]
    fn a_success_with_a_failed_step_is_irregular() {
        let failed = step(1, StepStatus::Failed, Some(StepOutcome::Failed));
        let found = after(|run| run.steps[1] = failed);
        assert_eq!(found, "it succeeded although step 1 failed");
        let allowed = step(1, StepStatus::Failed, Some(StepOutcome::Succeeded));
        let mut job = succeeded();
        job.state.run_mut().unwrap().steps[1] = allowed;
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }

    #[test]
    fn unordered_steps_and_running_steps_of_an_ended_job_are_irregular() {
        let running = step(0, StepStatus::Running, None);
        let found = after(|run| run.steps[0] = running);
        assert_eq!(found, "it has ended, but step 0 is running");
        let found = after(|run| drop(run.steps.remove(0)));
        assert_eq!(found, "step 1 is in the place of step 0");
    }

    #[test]
    fn duplicate_names_and_ids_of_artifacts_are_irregular() {
        let found = after(|run| run.artifacts.push(run.artifacts[0].clone()));
        assert_eq!(found, "it has two artifacts `hosts`");
        let found = after(|run| run.artifacts[0].id = run.artifacts[1].id);
        assert_eq!(found, "artifact `hosts` has the id of another artifact");
    }

    #[test]
    fn a_change_of_the_clock_is_not_irregular() {
        let mut job = succeeded();
        let run = job.state.run_mut().unwrap();
        run.expires_at = run.started_at - TimeDelta::hours(1);
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }

    #[test]
    fn a_log_end_of_a_running_job_is_irregular() {
        let mut job = succeeded();
        let mut run = Box::new(job.state.run_mut().unwrap().clone());
        run.log_records = 1;
        job.state = JobState::Running { run: run.clone() };
        assert_eq!(
            job.irregularities(),
            ["it is running, but its record has the end of its log"]
        );
        run.log_records = 0;
        job.state = JobState::Running { run };
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }
}
