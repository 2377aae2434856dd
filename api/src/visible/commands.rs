//! The commands of the caller. Each checks again whether the caller's token is still valid, because the body may have taken
//! hours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::{Outcome, send_test};
use model::channel::{Channel, Target};
use model::decide::{
    Acknowledge, ApproveRemoval, ChangePayloadGroup, Command, CreateBlobLink, CreateCallback,
    CreateCallbackToken, CreatePayloadGroup, CreateRegistration, CreateUser, DeleteChannel,
    DeletePayload, DeleteRule, DeleteSecret, DeleteUser, DeleteVar, EndCallbackToken, LimitRunner,
    MakeUserLink, Maker, MintTags, MoveToken, NewRegistration, Once, Precondition, Refusal, Resume,
    RevokeBlobLink, RevokeToken, SendAgain, SetCallbackRules, SetChannel, SetMember, SetPassword,
    SetRule, SetVar, SignOut, SignOutEverywhere, SignedInBy, Silence, Suspend, UpdateUser,
};
use model::retention::RetentionPolicy;
use model::{
    ActiveWorkflow, AuditAction, IdempotencyKey, KeyId, KeyState, MaskingCheck, PasswordHash,
    ProjectId, ProjectSecrets, Projects, Rights, RunnerId, SealingKey, SecretValue, Seen,
    SessionId, SourceName, StoredSecret, Timestamp, Token, TokenId, TokenManager, UsedToken, User,
    UserId, WorkflowId, World,
};
use reconciler::{Handle, NewSignInLink, RerunOf, Retained, SIGN_IN_LINK};
use serde_json::Value;
use state::SubmitError;
use wire::ErrorCode;

use super::{Shown, ShownJob, Visible};
use crate::failure::{Failure, not_for_jobs, unauthorized};

/// A command for [`Visible::submit`]. Commands about tokens are not among them: they go through [`Visible::create_token`]
/// and [`Visible::end_secret`], which refuse a replaced secret.
pub(crate) trait Submitted: Command {}

impl Submitted for Acknowledge {}
impl Submitted for CreateUser {}
impl Submitted for DeleteUser {}
impl Submitted for MakeUserLink {}
impl Submitted for SetMember {}
impl Submitted for UpdateUser {}
impl Submitted for ApproveRemoval {}
impl Submitted for DeleteRule {}
impl Submitted for DeleteChannel {}
impl Submitted for DeleteSecret {}
impl Submitted for DeleteVar {}
impl Submitted for Once<CreateBlobLink> {}
impl Submitted for Once<CreateRegistration> {}
impl Submitted for CreateCallback {}
impl Submitted for CreateCallbackToken {}
impl Submitted for MintTags {}
impl Submitted for EndCallbackToken {}
impl Submitted for SetCallbackRules {}
impl Submitted for CreatePayloadGroup {}
impl Submitted for ChangePayloadGroup {}
impl Submitted for DeletePayload {}
impl Submitted for Resume {}
impl Submitted for RevokeBlobLink {}
impl Submitted for SetRule {}
impl Submitted for SendAgain {}
impl Submitted for SetChannel {}
impl Submitted for SetVar {}
impl Submitted for SignOut {}
impl Submitted for Silence {}
impl Submitted for Suspend {}

impl Visible {
    /// The daemon, for a command. Checks the token again, because the body may have taken hours.
    pub(super) fn acting(&self) -> Result<&Handle, Failure> {
        self.state().read(|world| self.check(world))?;
        Ok(&self.handle)
    }

    /// The daemon, for a command about tokens. A replaced secret must not replace the new secret.
    fn managing(&self) -> Result<&Handle, Failure> {
        let handle = self.acting()?;
        let Some(UsedToken { token, secret }) = self.principal().used() else {
            self.own_user()?;
            return Ok(handle);
        };
        let present = |world: &World| Some(world.token(token)?.hash);
        if handle.state().read(present) == Some(secret) {
            return Ok(handle);
        }
        Err(Failure::new(
            ErrorCode::Forbidden,
            "this secret was replaced; tokens are managed with the new one",
        ))
    }

    /// Submits a command about something that the caller has found.
    pub(crate) async fn submit<C: Submitted>(
        &self,
        command: Shown<C>,
    ) -> Result<C::Answer, Failure> {
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
            failure = self.rights_lost() => Err(failure),
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

    /// The key that seals a new secret, if the daemon has one.
    pub(crate) fn sealing_key(&self) -> Option<SealingKey> {
        let keys = self.handle.settings().sealing_keys();
        keys.map(|keys| keys.current().clone())
    }

    /// Refuses a target to which no message can be sent.
    pub(crate) fn check_target(
        &self,
        target: &Target,
        secret: Option<&SecretValue>,
    ) -> Result<(), Failure> {
        delivery::check(&self.delivery, target, secret)
            .map_err(|(field, problem)| Failure::invalid(field, problem))
    }

    /// Sends a test message.
    pub(crate) async fn test_channel(&self, channel: &Channel) -> Result<Outcome, Failure> {
        let handle = self.acting()?;
        Ok(send_test(handle, &self.delivery, channel).await)
    }

    pub(crate) fn key_state(&self, key: &KeyId) -> KeyState {
        self.handle.settings().key_state(key)
    }

    pub(crate) async fn check_masking(
        &self,
        secrets: &ProjectSecrets,
        name: &str,
    ) -> Result<Option<MaskingCheck>, Failure> {
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

    /// Cancels a job. None if this is refused, for example because the job has ended meanwhile.
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

    /// Submits a command that makes a token. The command gets the caller with its rights, and the end of the caller's token.
    pub(crate) async fn create_token<C: Command>(
        &self,
        create: impl FnOnce(UserId, Rights, Option<Timestamp>) -> C,
    ) -> Result<C::Answer, Failure> {
        self.check_recent()?;
        // The roles of the owner always limit a token. So a person's token may also be for all projects.
        let granted = Rights {
            projects: self.own_projects()?,
            ..self.rights()
        };
        let create = create(self.own_user()?, granted, self.token_expires_at());
        Ok(self.managing()?.state().submit(create).await?)
    }

    /// The projects of the caller's credential, without its owner's roles.
    pub(crate) fn own_projects(&self) -> Result<Projects, Failure> {
        Ok(self.token_manager()?.projects)
    }

    /// Gives a token to another user.
    pub(crate) async fn move_token(
        &self,
        token: TokenId,
        to: UserId,
    ) -> Result<Arc<Token>, Failure> {
        // The new owner may be stronger, and the caller may know the secret.
        self.check_recent()?;
        let command = MoveToken { token, to };
        Ok(self.managing()?.state().submit(command).await?)
    }

    /// Submits a command that ends the present secret of a token. The command gets the same.
    pub(crate) async fn end_secret<C: Command>(
        &self,
        token: TokenId,
        end: impl FnOnce(TokenManager, Option<Timestamp>) -> C,
    ) -> Result<C::Answer, Failure> {
        let manager = self.token_manager()?;
        let end = end(manager, self.token_expires_at());
        Ok(self.managing()?.state().end_secret(token, end).await?)
    }

    fn token_expires_at(&self) -> Option<Timestamp> {
        let token = self.principal().token()?;
        self.state().read(|world| world.token(token)?.expires_at)
    }

    /// The user of a caller who manages credentials.
    pub(crate) fn own_user(&self) -> Result<UserId, Failure> {
        self.principal().user().ok_or_else(not_for_jobs)
    }

    fn token_manager(&self) -> Result<TokenManager, Failure> {
        self.own_user()?;
        let manager = self.state().read(|world| {
            let rights = self.rights_in(world);
            self.principal().token_manager(world, &rights)
        });
        manager.ok_or_else(unauthorized)
    }

    /// The tokens that the caller manages, as `look` sees them.
    pub(crate) fn managed_tokens<R>(
        &self,
        look: impl FnOnce(Seen<'_>, &mut dyn Iterator<Item = &Arc<Token>>) -> R,
    ) -> R {
        self.state().read(|world| {
            let rights = self.rights_in(world);
            let manager = self.principal().token_manager(world, &rights);
            let manages =
                |token: &&Arc<Token>| manager.as_ref().is_some_and(|it| it.manages(token));
            look(world.seen_by(&rights), &mut world.tokens().filter(manages))
        })
    }

    pub(crate) async fn revoke_token(&self, token: TokenId) -> Result<(), Failure> {
        self.end_secret(token, |by, _| RevokeToken { token, by })
            .await
    }

    pub(crate) async fn sign_out(&self, session: SessionId) -> Result<(), Failure> {
        if !self.signed_in().iter().any(|it| it.id == session) {
            return Err(Failure::from(Refusal::NoSuchSession));
        }
        let user = self.own_user()?;
        self.submit(Shown(SignOut { user, session })).await
    }

    /// Ends all sessions, and all tokens if they are to end. A token that may do less than its owner ends only itself and its own
    /// sessions.
    pub(crate) async fn sign_out_everywhere(&self, tokens: bool) -> Result<(), Failure> {
        let (user, with) = (self.own_user()?, self.only_sessions_with());
        let has_session = self.principal().session().is_some();
        // What cannot end, such as the last administrator's token, does not keep the rest.
        let mut ended = Ok(());
        if tokens && has_session {
            ended = self.end_tokens().await;
            // This session has ended with its token, and does no more.
            if ended.is_ok() && self.principal().token().is_some() {
                return Ok(());
            }
        }
        self.acting()?.sign_ins().end_links(user, with);
        let state = self.acting()?.state();
        state.submit(SignOutEverywhere { user, with }).await?;
        if tokens && !has_session {
            ended = self.end_tokens().await;
        }
        ended
    }

    /// Ends the caller's token. A person, or a token that may do whatever its owner may, ends all tokens of the user.
    async fn end_tokens(&self) -> Result<(), Failure> {
        let own = self.principal().token();
        let tokens: Vec<TokenId> = match self.only_sessions_with() {
            Some(token) => vec![token],
            None => self.managed_tokens(|_, tokens| {
                let its = tokens.filter(|token| Some(token.owner) == self.principal().user());
                its.map(|token| token.id).collect()
            }),
        };
        // The own token is the last, because it may do nothing afterwards.
        let (last, others): (Vec<TokenId>, _) =
            tokens.into_iter().partition(|token| Some(*token) == own);
        let mut ended = Ok(());
        for token in others.into_iter().chain(last) {
            ended = ended.and(self.revoke_token(token).await);
        }
        ended
    }

    /// The person behind a session that was not made with a token.
    pub(crate) fn person(&self) -> Result<Arc<User>, Failure> {
        let user = |world: &World| world.user(self.principal().user()?).cloned();
        let user = self
            .state()
            .read(user)
            .filter(|_| self.principal().is_person());
        user.ok_or_else(|| {
            let text = "this needs a session of the whole person, not a token or a session that was made with one";
            Failure::new(ErrorCode::Forbidden, text).hint("sign in with a password or with a link")
        })
    }

    /// Checks that the person of a session has just signed in, for acts that give rights. A stolen session must not become more than
    /// that. A token proves itself with each request.
    pub(crate) fn check_recent(&self) -> Result<(), Failure> {
        let is_recent = self.state().read(|world| {
            let session = self.principal().session().and_then(|id| world.session(id));
            session.is_none_or(|session| session.is_recent(self.handle.time(world)))
        });
        is_recent
            .then_some(())
            .ok_or_else(|| Failure::from(Refusal::SignInAgain))
    }

    /// Sets the caller's password. The caller's session ends, too.
    pub(crate) async fn set_password(&self, password: PasswordHash) -> Result<Arc<User>, Failure> {
        let session = self.principal().session().ok_or_else(unauthorized)?;
        let user = self.own_user()?;
        let set = SetPassword {
            user,
            session,
            password,
        };
        Ok(self.acting()?.state().submit(set).await?)
    }

    /// Makes a link that signs a browser in with the caller's token. Links are in no record, so the audit log gets a separate
    /// line.
    pub(crate) async fn make_sign_in_link(&self) -> Result<NewSignInLink, Failure> {
        let expires_at = self.handle.now() + SIGN_IN_LINK;
        let created = AuditAction::sign_in_link_created(expires_at);
        self.acting()?.state().note_request(created).await?;
        let handle = self.acting()?;
        let by = handle
            .state()
            .read(|world| SignedInBy::of(world, self.principal()));
        let by = by.ok_or_else(unauthorized)?;
        let session = self.principal().session();
        Ok(handle.sign_ins().make_link(self.own_user()?, by, session))
    }

    pub(crate) async fn remove_runner(&self, runner: &Shown<RunnerId>) -> Result<(), Failure> {
        let handle = self.acting()?;
        Ok(handle.remove_runner(**runner, self.rights()).await?)
    }

    pub(crate) async fn limit_runner(
        &self,
        limit: &Shown<(RunnerId, BTreeSet<ProjectId>)>,
    ) -> Result<(), Failure> {
        self.check_recent()?;
        let (runner, projects) = limit.0.clone();
        let by = self.rights();
        let limit = LimitRunner {
            runner,
            projects,
            by,
        };
        Ok(self.acting()?.limit_runner(limit).await?)
    }

    pub(crate) async fn create_registration(
        &self,
        projects: &Shown<Option<BTreeSet<ProjectId>>>,
        labels: Option<Vec<String>>,
        key: Option<IdempotencyKey>,
    ) -> Result<NewRegistration, Failure> {
        self.check_recent()?;
        let command = CreateRegistration {
            projects: projects.0.clone(),
            labels,
            maker: Some(Maker {
                token: self.principal().token(),
                user: self.own_user()?,
                rights: self.rights(),
            }),
        };
        self.submit(Shown(Once { command, key })).await
    }
}
