//! Contradictions in a job's record, for readers of a record that somebody may have changed.

use std::collections::BTreeSet;

use crate::ArtifactId;
use crate::job::{Job, JobState, Run, StepOutcome, StepStatus};

impl Job {
    /// All contradictions in the job's record. A record that the daemon wrote has none. Times contradict nothing, because
    /// somebody may have set the clock between two of them.
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
    fn what_the_daemon_wrote_is_regular() {
        assert_eq!(succeeded().irregularities(), Vec::<String>::new());
        let mut test = TestWorld::new();
        let (running, _) = test.running();
        let job = test.world.job(running).unwrap();
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }

    #[test]
    fn a_success_has_no_step_that_failed_it() {
        let failed = step(1, StepStatus::Failed, Some(StepOutcome::Failed));
        let found = after(|run| run.steps[1] = failed);
        assert_eq!(found, "it succeeded, and step 1 failed it");
        let allowed = step(1, StepStatus::Failed, Some(StepOutcome::Succeeded));
        let mut job = succeeded();
        job.state.run_mut().unwrap().steps[1] = allowed;
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }

    #[test]
    fn steps_stand_in_their_order_and_none_outlives_its_job() {
        let running = step(0, StepStatus::Running, None);
        let found = after(|run| run.steps[0] = running);
        assert_eq!(found, "it is over, and step 0 still runs");
        let found = after(|run| drop(run.steps.remove(0)));
        assert_eq!(found, "step 1 stands in the place of step 0");
    }

    #[test]
    fn artifacts_have_names_and_ids_of_their_own() {
        let found = after(|run| run.artifacts.push(run.artifacts[0].clone()));
        assert_eq!(found, "it has two artifacts `hosts`");
        let found = after(|run| run.artifacts[0].id = run.artifacts[1].id);
        assert_eq!(found, "artifact `hosts` has the id of another");
    }

    #[test]
    fn a_clock_that_was_set_is_no_irregularity() {
        let mut job = succeeded();
        let run = job.state.run_mut().unwrap();
        run.expires_at = run.started_at - TimeDelta::hours(1);
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }

    #[test]
    fn the_end_of_a_log_is_not_known_while_the_job_runs() {
        let mut job = succeeded();
        let mut run = Box::new(job.state.run_mut().unwrap().clone());
        run.log_records = 1;
        job.state = JobState::Running { run: run.clone() };
        assert_eq!(
            job.irregularities(),
            ["it is running, and the end of its log is known"]
        );
        run.log_records = 0;
        job.state = JobState::Running { run };
        assert_eq!(job.irregularities(), Vec::<String>::new());
    }
}
