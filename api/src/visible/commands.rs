//! What the caller changes. Each command asks again whether the caller's token is still valid: a body may have taken hours.

use std::collections::BTreeMap;

use model::decide::{
    ApproveRemoval, Command, CreateRegistration, NewRegistration, Once, Precondition, RevokeToken,
    SignOut, SignOutEverywhere,
};
use model::retention::RetentionPolicy;
use model::{
    ActiveWorkflow, AuditAction, EncodingCheck, IdempotencyKey, KeyId, KeyState, ProjectId,
    ProjectSecrets, Rights, RunnerId, SecretValue, SessionId, SourceName, StoredSecret, TokenId,
    WorkflowId, World,
};
use reconciler::{Handle, LinkedToken, NewSignInLink, RerunOf, Retained, SIGN_IN_LINK};
use serde_json::Value;
use state::SubmitError;
use wire::ErrorCode;

use super::{Shown, ShownJob, Visible};
use crate::failure::{Failure, no_such_link, unauthorized};

impl Visible {
    /// The daemon, for a command. The body may have taken hours, and the token may have ended meanwhile.
    pub(super) fn acting(&self) -> Result<&Handle, Failure> {
        match (self.handle.rights(&self.principal), self.principal.link) {
            (Some(_), _) => Ok(&self.handle),
            (None, None) => Err(unauthorized()),
            (None, Some(_)) => Err(no_such_link()),
        }
    }

    /// The daemon, for a command about tokens. A secret that was replaced must not replace the new one.
    fn managing(&self) -> Result<&Handle, Failure> {
        let handle = self.acting()?;
        let secret = |world: &World| Some(world.token(self.principal.token)?.hash);
        if handle.state().read(secret) == Some(self.principal.secret) {
            return Ok(handle);
        }
        Err(Failure::new(
            ErrorCode::Forbidden,
            "this secret was replaced; tokens are managed with the new one",
        ))
    }

    /// Submits a command about something that the caller has found. Commands about tokens go through [`Self::create_token`] and
    /// [`Self::end_secret`] instead, which refuse a replaced secret.
    pub(crate) async fn submit<C: Command>(&self, command: Shown<C>) -> Result<C::Answer, Failure> {
        Ok(self.acting()?.state().submit(command.0).await?)
    }

    pub(crate) async fn sync_source(
        &self,
        source: &Shown<SourceName>,
        wait: bool,
    ) -> Result<(), Failure> {
        let synced = AuditAction::source_synced(source);
        self.acting()?.state().note_request(synced).await?;
        self.poll(source, wait).await
    }

    /// Approves a tip that retires many workflows, and polls the source, which applies it.
    pub(crate) async fn approve_source(
        &self,
        source: &Shown<SourceName>,
        commit: String,
        wait: bool,
    ) -> Result<(), Failure> {
        let approve = source.map(|name| ApproveRemoval {
            name: name.clone(),
            commit,
        });
        self.submit(approve).await?;
        self.poll(source, wait).await
    }

    async fn poll(&self, source: &Shown<SourceName>, wait: bool) -> Result<(), Failure> {
        tokio::select! {
            synced = self.acting()?.sources().sync(source, wait) => Ok(synced?),
            () = self.token_ended() => Err(unauthorized()),
        }
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

    pub(crate) fn key_state(&self, key: &KeyId) -> KeyState {
        self.handle.settings().key_state(key)
    }

    pub(crate) async fn check_masking(
        &self,
        secrets: &ProjectSecrets,
        name: &str,
    ) -> Result<Option<Vec<EncodingCheck>>, Failure> {
        let settings = self.handle.settings();
        Ok(settings.check_masking(secrets, name).await?)
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

    /// Submits a command that makes a token. It is given the caller's rights.
    pub(crate) async fn create_token<C: Command>(
        &self,
        create: impl FnOnce(Rights) -> C,
    ) -> Result<C::Answer, Failure> {
        let create = create(self.rights());
        Ok(self.managing()?.state().submit(create).await?)
    }

    /// Submits a command that ends the present secret of a token. It is given the caller's rights.
    pub(crate) async fn end_secret<C: Command>(
        &self,
        token: TokenId,
        end: impl FnOnce(Rights) -> C,
    ) -> Result<C::Answer, Failure> {
        let end = end(self.rights());
        Ok(self.managing()?.state().end_secret(token, end).await?)
    }

    pub(crate) async fn revoke_token(&self, token: TokenId) -> Result<(), Failure> {
        self.end_secret(token, |by| RevokeToken { token, by }).await
    }

    pub(crate) async fn sign_out(&self, session: SessionId) -> Result<(), Failure> {
        let token = self.principal.token;
        self.submit(Shown(SignOut { token, session })).await
    }

    pub(crate) async fn sign_out_everywhere(&self) -> Result<(), Failure> {
        let token = self.principal.token;
        self.acting()?.sign_ins().end_links(token);
        self.submit(Shown(SignOutEverywhere { token })).await
    }

    /// Makes a link that signs a browser in with the caller's token. It is in no record, so the request is noted by itself.
    pub(crate) async fn make_sign_in_link(&self) -> Result<NewSignInLink, Failure> {
        let expires_at = self.handle.now() + SIGN_IN_LINK;
        let created = AuditAction::sign_in_link_created(expires_at);
        self.acting()?.state().note_request(created).await?;
        Ok(self.acting()?.sign_ins().make_link(LinkedToken {
            id: self.principal.token,
            secret: self.principal.secret,
        }))
    }

    pub(crate) async fn remove_runner(&self, runner: &Shown<RunnerId>) -> Result<(), Failure> {
        Ok(self.acting()?.remove_runner(**runner).await?)
    }

    pub(crate) async fn create_registration(
        &self,
        key: Option<IdempotencyKey>,
    ) -> Result<NewRegistration, Failure> {
        let command = CreateRegistration;
        self.submit(Shown(Once { command, key })).await
    }
}
