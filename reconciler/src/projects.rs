//! Secrets of projects: setting them, and giving them to the workers that need them.
//!
//! The encryption key never enters the state. Without the right key, everything except secrets still works.

use model::decide::{Precondition, SetSecret};
use model::{Actor, Job, NamedValues, ProjectId, Revision, SecretValue, StoredSecret};

use crate::error::SecretError;
use crate::handle::Handle;

impl Handle {
    /// Sets a secret, encrypted with the daemon's key.
    pub async fn set_secret(
        &self,
        project: ProjectId,
        name: String,
        value: SecretValue,
        actor: Actor,
        expects: Precondition,
    ) -> Result<StoredSecret, SecretError> {
        let keys = self
            .settings()
            .secret_keys
            .as_ref()
            .ok_or(SecretError::NoKey)?;
        let set = SetSecret {
            project,
            name,
            value,
            key: keys.current().clone(),
            actor,
            expects,
        };
        Ok(self.state().submit(set).await?)
    }

    /// The values of the secrets and variables that a claimed job's expressions use.
    pub(crate) fn named_values(&self, job: &Job, revision: &Revision) -> NamedValues {
        let Some(scan) = revision.definition.scan(job.scan.as_str()) else {
            return NamedValues::default();
        };
        let mut values = self
            .state()
            .read(|world| NamedValues::of(world, job, scan, self.settings().secret_keys.as_ref()));
        if scan.callback.is_some() && self.callbacks().is_none() {
            let why =
                "this daemon has no zone for callback servers; the operator configures `callback`";
            values.missing.insert("callback".to_owned(), why.to_owned());
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use model::decide::Failure;
    use model::{Step, StepStatus, WorkflowId};
    use tempfile::TempDir;

    use super::*;
    use crate::testing::{TestDaemon, activate, configure, source_name};

    const USE: &str = "
scans:
  use:
    on: {dispatch: {}}
    steps: [{run: '${{ secrets.KEY }}${{ vars.URL }}'}]
";

    #[tokio::test]
    async fn a_worker_gets_the_secrets_of_its_job_at_each_request() {
        let folder = TempDir::new().unwrap();
        let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
        daemon.handle.state().submit(configure()).await.unwrap();
        let project = ProjectId::of_source(&source_name());
        let value = SecretValue::new("hunter2".to_owned());
        let set = daemon.handle.set_secret(
            project,
            "KEY".to_owned(),
            value,
            Actor::Daemon,
            Precondition::Anything,
        );
        assert_eq!(set.await.unwrap().edit.version, 1);
        let workflow = WorkflowId::derive(&source_name(), "use");
        let state = daemon.handle.state();
        state.submit(activate("use", USE)).await.unwrap();
        let (runner, _) = daemon.register("r", 1).await;
        let worker = daemon.run(runner, workflow, "use").await;
        let resolved = daemon.handle.resolve(&worker, None).await.unwrap();
        assert_eq!(resolved.values.secrets["KEY"].reveal(), "hunter2");
        assert!(resolved.values.missing["vars.URL"].contains("is not set in project recon"));
        assert!(!format!("{resolved:?}").contains("hunter2"));
        daemon.close().await;
    }

    #[tokio::test]
    async fn an_unmasked_error_of_a_runner_is_masked_before_it_is_stored() {
        let folder = TempDir::new().unwrap();
        let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
        daemon.handle.state().submit(configure()).await.unwrap();
        let project = ProjectId::of_source(&source_name());
        let set = daemon.handle.set_secret(
            project,
            "KEY".to_owned(),
            SecretValue::new("hunter2/hunter2".to_owned()),
            Actor::Daemon,
            Precondition::Anything,
        );
        set.await.unwrap();
        let workflow = WorkflowId::derive(&source_name(), "use");
        let state = daemon.handle.state();
        state.submit(activate("use", USE)).await.unwrap();
        let (runner, _) = daemon.register("r", 1).await;
        let worker = daemon.run(runner, workflow, "use").await;
        let step = Step {
            name: None,
            index: 0,
            status: StepStatus::Failed,
            outcome: None,
            exit_code: None,
            error: Some("no host at https://hunter2/hunter2/ or aHVudGVyMi9odW50ZXIy".to_owned()),
            started_at: None,
            finished_at: None,
        };
        let reported = daemon
            .handle
            .report_steps(&worker, vec![step.clone()], None);
        reported.await.unwrap();
        let masked = "no host at https://***/ or ***";
        let job = worker.job().id;
        let error = |job: &Job| job.state.run().unwrap().steps[0].error.clone().unwrap();
        let stored = state.job(job).await.unwrap().unwrap();
        assert_eq!(error(&stored), masked);
        let failure = Failure::Setup("cannot mount hunter2/hunter2".to_owned());
        let completed = daemon
            .handle
            .complete(
                &worker,
                vec![step],
                workflow::Outputs::new(),
                std::collections::BTreeMap::new(),
                0,
                Some(failure),
            )
            .await
            .unwrap();
        assert_eq!(error(&completed), masked);
        let text = format!("{completed:?}");
        assert!(
            text.contains("cannot mount ***") && !text.contains("hunter2"),
            "{text}"
        );
        daemon.close().await;
    }
}
