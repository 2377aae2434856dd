//! What the caller changes. Each command asks again whether the caller is still let in: a body may have taken hours.

use std::collections::BTreeMap;

use model::decide::{
    ApproveRemoval, CreateToken, DeleteVar, NewRegistration, NewToken, Precondition, SetVar,
};
use model::decide::{
    DeleteSecret, RegenerateToken, Resume, RevokeToken, SignOut, SignOutEverywhere, Suspend,
};
use model::retention::RetentionPolicy;
use model::{
    ActiveWorkflow, AuditAction, EncodingCheck, IdempotencyKey, KeyId, KeyState, ProjectId,
    ProjectSecrets, RunnerId, SecretValue, SessionId, SourceName, StoredSecret, TokenId, Var,
    Viewer, WorkflowId, World,
};
use reconciler::{Handle, LinkedToken, NewSignInLink, RerunOf, Retained, SIGN_IN_LINK};
use serde_json::Value;
use state::SubmitError;
use wire::ErrorCode;

use super::{Shown, ShownJob, Visible};
use crate::failure::{Failure, unauthorized};
use crate::handlers::no_such_link;

impl Visible {
    /// The daemon, for a command. The body may have taken hours, and the token may have ended meanwhile.
    pub(super) fn acting(&self) -> Result<&Handle, Failure> {
        let is_valid = self.handle.state().read(|world| {
            let (token, now) = (world.token(self.token.id), self.handle.time(world));
            let is_open = |link| world.blob_link(link).is_some_and(|link| !link.is_over(now));
            token.is_some_and(|token| self.is_let_in(world, token, now))
                && self.link.is_none_or(is_open)
        });
        match self.link {
            _ if is_valid => Ok(&self.handle),
            None => Err(unauthorized()),
            Some(_) => Err(no_such_link()),
        }
    }

    /// The daemon, for a command about tokens. A secret that was replaced must not replace the new one.
    fn managing(&self) -> Result<&Handle, Failure> {
        let handle = self.acting()?;
        let secret = |world: &World| Some(world.token(self.token.id)?.hash);
        if handle.state().read(secret) == Some(self.secret) {
            return Ok(handle);
        }
        Err(Failure::new(
            ErrorCode::Forbidden,
            "this secret was replaced; tokens are managed with the new one",
        ))
    }

    pub(crate) async fn sync_source(
        &self,
        source: &Shown<SourceName>,
        wait: bool,
    ) -> Result<(), Failure> {
        let synced = AuditAction::source_synced(source);
        self.acting()?.state().note_request(synced).await?;
        self.look(source, wait).await
    }

    /// Lets a tip be applied that retires many workflows, at a look that is asked for.
    pub(crate) async fn approve_source(
        &self,
        source: &Shown<SourceName>,
        commit: String,
        wait: bool,
    ) -> Result<(), Failure> {
        let name = SourceName::clone(source);
        let approve = ApproveRemoval { name, commit };
        self.acting()?.approve_removal(approve).await?;
        self.look(source, wait).await
    }

    async fn look(&self, source: &Shown<SourceName>, wait: bool) -> Result<(), Failure> {
        tokio::select! {
            synced = self.acting()?.sync_source(source, wait) => Ok(synced?),
            () = self.token_ended() => Err(unauthorized()),
        }
    }

    pub(crate) async fn set_var(
        &self,
        project: &Shown<ProjectId>,
        name: &str,
        value: String,
        expects: Precondition,
    ) -> Result<Var, Failure> {
        let set = SetVar {
            project: **project,
            name: name.to_owned(),
            value,
            actor: self.actor(),
            expects,
        };
        Ok(self.acting()?.set_var(set).await?)
    }

    pub(crate) async fn delete_var(
        &self,
        project: &Shown<ProjectId>,
        name: &str,
        expects: Precondition,
    ) -> Result<(), Failure> {
        let (project, name) = (**project, name.to_owned());
        let delete = DeleteVar {
            project,
            name,
            expects,
        };
        Ok(self.acting()?.delete_var(delete).await?)
    }

    pub(crate) async fn set_secret(
        &self,
        project: &Shown<ProjectId>,
        name: &str,
        value: SecretValue,
        expects: Precondition,
    ) -> Result<StoredSecret, Failure> {
        let name = name.to_owned();
        let handle = self.acting()?;
        let set = handle.set_secret(**project, name, value, self.actor(), expects);
        Ok(set.await?)
    }

    /// Whether the daemon has the key of a secret.
    pub(crate) fn key_state(&self, key: &KeyId) -> KeyState {
        self.handle.key_state(key)
    }

    pub(crate) async fn check_masking(
        &self,
        secrets: &ProjectSecrets,
        name: &str,
    ) -> Result<Option<Vec<EncodingCheck>>, Failure> {
        Ok(self.handle.check_masking(secrets, name).await?)
    }

    pub(crate) async fn delete_secret(
        &self,
        project: &Shown<ProjectId>,
        name: &str,
        expects: Precondition,
    ) -> Result<(), Failure> {
        let (project, name) = (**project, name.to_owned());
        let delete = DeleteSecret {
            project,
            name,
            expects,
        };
        Ok(self.acting()?.delete_secret(delete).await?)
    }

    pub(crate) async fn prune(
        &self,
        workflow: &Shown<ActiveWorkflow>,
        policy: Option<RetentionPolicy>,
        dry_run: bool,
    ) -> Result<Retained, Failure> {
        Ok(self.acting()?.prune(workflow, policy, dry_run).await?)
    }

    pub(crate) async fn dispatch(
        &self,
        workflow: &Shown<WorkflowId>,
        scan: &str,
        inputs: &BTreeMap<String, Value>,
        key: Option<IdempotencyKey>,
    ) -> Result<ShownJob, Failure> {
        let job = self
            .acting()?
            .dispatch(**workflow, scan, inputs, self.actor(), key);
        Ok(Shown(job.await?))
    }

    pub(crate) async fn rerun(
        &self,
        job: &ShownJob,
        which: RerunOf,
        key: Option<IdempotencyKey>,
    ) -> Result<ShownJob, Failure> {
        let again = self.acting()?.rerun(job, which, self.actor(), key);
        Ok(Shown(again.await?))
    }

    pub(crate) async fn suspend(
        &self,
        workflow: &Shown<WorkflowId>,
        scan: Option<&str>,
        reason: String,
    ) -> Result<(), Failure> {
        let suspend = Suspend {
            workflow: **workflow,
            scan: scan.map(str::to_owned),
            reason,
            actor: self.actor(),
        };
        Ok(self.acting()?.suspend(suspend).await?)
    }

    pub(crate) async fn resume(
        &self,
        workflow: &Shown<WorkflowId>,
        scan: Option<&str>,
        reason: Option<String>,
    ) -> Result<(), Failure> {
        let resume = Resume {
            workflow: **workflow,
            scan: scan.map(str::to_owned),
            reason,
            actor: self.actor(),
        };
        Ok(self.acting()?.resume(resume).await?)
    }

    /// Cancels a job. None if that is refused, for example because it has ended meanwhile.
    pub(crate) async fn cancel(&self, job: &ShownJob) -> Result<Option<ShownJob>, Failure> {
        match self.acting()?.cancel(job.id, self.actor()).await {
            Ok(job) => Ok(Some(Shown(job))),
            Err(SubmitError::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn delete_job(&self, job: &ShownJob) -> Result<(), Failure> {
        self.acting()?.delete_job(job.id, self.actor()).await?;
        Ok(())
    }

    pub(crate) async fn delete_artifact(&self, job: &ShownJob, name: &str) -> Result<(), Failure> {
        let delete = self
            .acting()?
            .delete_artifact(job.id, name.to_owned(), self.actor());
        delete.await?;
        Ok(())
    }

    pub(crate) async fn create_token(
        &self,
        create: impl FnOnce(Viewer) -> CreateToken,
        key: Option<IdempotencyKey>,
    ) -> Result<NewToken, Failure> {
        let create = create(Viewer::clone(&self.viewer));
        Ok(self.managing()?.create_token(create, key).await?)
    }

    pub(crate) async fn regenerate_token(
        &self,
        regenerate: impl FnOnce(Viewer) -> RegenerateToken,
        key: Option<IdempotencyKey>,
    ) -> Result<NewToken, Failure> {
        let regenerate = regenerate(Viewer::clone(&self.viewer));
        Ok(self.managing()?.regenerate_token(regenerate, key).await?)
    }

    pub(crate) async fn revoke_token(&self, token: TokenId) -> Result<(), Failure> {
        let by = Viewer::clone(&self.viewer);
        Ok(self
            .managing()?
            .revoke_token(RevokeToken { token, by })
            .await?)
    }

    /// Ends a session of the caller's token.
    pub(crate) async fn sign_out(&self, session: SessionId) -> Result<(), Failure> {
        let token = self.token.id;
        let state = self.acting()?.state();
        Ok(state.submit(SignOut { token, session }).await?)
    }

    /// Ends all sessions of the caller's token.
    pub(crate) async fn sign_out_everywhere(&self) -> Result<(), Failure> {
        let token = self.token.id;
        let handle = self.acting()?;
        handle.end_sign_in_links(token);
        Ok(handle.state().submit(SignOutEverywhere { token }).await?)
    }

    /// Makes a link that signs a browser in with the caller's token. It is in no record, so the request is noted by itself.
    pub(crate) async fn make_sign_in_link(&self) -> Result<NewSignInLink, Failure> {
        let expires_at = self.handle.now() + SIGN_IN_LINK;
        let created = AuditAction::sign_in_link_created(expires_at);
        self.acting()?.state().note_request(created).await?;
        Ok(self.acting()?.make_sign_in_link(LinkedToken {
            id: self.token.id,
            secret: self.secret,
        }))
    }

    pub(crate) async fn remove_runner(&self, runner: &Shown<RunnerId>) -> Result<(), Failure> {
        Ok(self.acting()?.remove_runner(**runner).await?)
    }

    pub(crate) async fn create_registration(
        &self,
        key: Option<IdempotencyKey>,
    ) -> Result<NewRegistration, Failure> {
        Ok(self.acting()?.create_registration(key).await?)
    }
}
