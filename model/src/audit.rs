//! The actions that the audit log names, one for each thing that a decision creates, changes or removes. An action contains
//! the name of the thing, but never its value.

mod changes;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::changes::actions;
use crate::job::Job;
use crate::limits::AUDIT_TEXT_CHARS;
use crate::revision::WorkflowRef;
use crate::runner::Runner;
use crate::user::UserName;
use crate::world::World;
use crate::{JobId, ProjectId, Scopes, SourceName, Timestamp};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum AuditKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl AuditKind {
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            pub const NAMES: &'static [&'static str] = &[$($name),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    TokenCreated = "token_created",
    TokenRegenerated = "token_regenerated",
    TokenRevoked = "token_revoked",
    /// A token got another owner.
    TokenMoved = "token_moved",
    SignedIn = "signed_in",
    SignedOut = "signed_out",
    /// An invalid credential was presented.
    SignInRefused = "sign_in_refused",
    SignInLinkCreated = "sign_in_link_created",
    UserCreated = "user_created",
    /// An invitation, or a link for a new password.
    UserLinkCreated = "user_link_created",
    UserLinkUsed = "user_link_used",
    UserLinkEnded = "user_link_ended",
    PasswordChanged = "password_changed",
    /// All sessions of a user were ended.
    SignedOutEverywhere = "signed_out_everywhere",
    UserActivated = "user_activated",
    UserDeactivated = "user_deactivated",
    UserDeleted = "user_deleted",
    AdministratorAdded = "administrator_added",
    AdministratorRemoved = "administrator_removed",
    MemberSet = "member_set",
    MemberRemoved = "member_removed",
    RegistrationCreated = "registration_created",
    RunnerLimited = "runner_limited",
    RunnerRemoved = "runner_removed",
    ConditionAcknowledged = "condition_acknowledged",
    ConditionSilenced = "condition_silenced",
    /// A poll was requested.
    SourceSynced = "source_synced",
    /// A tip that retires many workflows was approved.
    SourceApproved = "source_approved",
    VarSet = "var_set",
    VarDeleted = "var_deleted",
    SecretSet = "secret_set",
    SecretDeleted = "secret_deleted",
    /// A runner claimed a job and got the value of a secret.
    SecretRead = "secret_read",
    RuleSet = "rule_set",
    RuleDeleted = "rule_deleted",
    JobDispatched = "job_dispatched",
    /// A retry or a trigger created a job.
    JobScheduled = "job_scheduled",
    JobCancelled = "job_cancelled",
    /// A job ended without a person's cancellation.
    JobEnded = "job_ended",
    JobDeleted = "job_deleted",
    ArtifactDeleted = "artifact_deleted",
    WorkflowSuspended = "workflow_suspended",
    WorkflowResumed = "workflow_resumed",
    ScanSuspended = "scan_suspended",
    ScanResumed = "scan_resumed",
    ChannelSet = "channel_set",
    ChannelDeleted = "channel_deleted",
    CallbackCreated = "callback_created",
    CallbackDeleted = "callback_deleted",
    CallbackRulesSet = "callback_rules_set",
    /// A name of a callback server was made.
    CallbackTokenCreated = "callback_token_created",
    CallbackTokenEnded = "callback_token_ended",
    PayloadGroupCreated = "payload_group_created",
    /// Its variables.
    PayloadGroupChanged = "payload_group_changed",
    PayloadGroupDeleted = "payload_group_deleted",
    /// A new version of a payload.
    PayloadStored = "payload_stored",
    PayloadDeleted = "payload_deleted",
    BlobStored = "blob_stored",
    BlobDeleted = "blob_deleted",
    BlobLinkCreated = "blob_link_created",
    BlobLinkRevoked = "blob_link_revoked",
}

impl AuditKind {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// One thing that was created, changed or removed, with the fields that its kind needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditAction {
    pub kind: AuditKind,
    /// Of a token, session, registration token, runner, link or user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// Of a token, runner, source, var, secret, rule, artifact or user; the path of a blob; `GROUP/NAME` of a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// As `SOURCE/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Of a var, secret or payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Of a new token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The text of a suspension or resumption, the code of the reason why a job ended, the approved commit, the role of a
    /// member, the new owner of a token, the old and new projects of a runner, the projects and labels of a registration
    /// token, or the tag of a callback server's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How often it happened, if one action stands for several events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl AuditAction {
    const fn new(kind: AuditKind) -> Self {
        Self {
            kind,
            id: None,
            name: None,
            project: None,
            workflow: None,
            scan: None,
            job: None,
            version: None,
            scopes: None,
            expires_at: None,
            reason: None,
            count: None,
        }
    }

    /// A poll is requested. No record changes.
    pub fn source_synced(source: &SourceName) -> Self {
        Self::new(AuditKind::SourceSynced).name(source.as_str())
    }

    /// A sign-in link was created. No record contains it.
    pub fn sign_in_link_created(expires_at: Timestamp) -> Self {
        Self {
            expires_at: Some(expires_at),
            ..Self::new(AuditKind::SignInLinkCreated)
        }
    }

    /// `user` is the user who was tried, if there is such a user. What else was typed may be a password.
    pub fn sign_in_refused(count: u64, user: Option<&UserName>) -> Self {
        Self {
            count: Some(count),
            name: user.map(|user| cut(user.as_str())),
            ..Self::new(AuditKind::SignInRefused)
        }
    }

    fn id(self, id: Uuid) -> Self {
        let id = Some(id);
        Self { id, ..self }
    }

    fn name(self, name: &str) -> Self {
        let name = Some(cut(name));
        Self { name, ..self }
    }

    fn in_project(self, world: &World, project: ProjectId) -> Self {
        let project = Some(project_name(world, project));
        Self { project, ..self }
    }

    fn of_owner(self, world: &World, project: Option<ProjectId>) -> Self {
        match project {
            Some(project) => self.in_project(world, project),
            None => self,
        }
    }

    fn of_workflow(self, workflow: &WorkflowRef) -> Self {
        let workflow = Some(cut(&format!("{}/{}", workflow.source, workflow.name)));
        Self { workflow, ..self }
    }

    fn because(self, reason: Option<&str>) -> Self {
        let reason = reason.map(cut);
        Self { reason, ..self }
    }

    fn of_runner(kind: AuditKind, runner: &Runner) -> Self {
        Self::new(kind).id(runner.id.uuid()).name(&runner.name)
    }

    fn of_job(kind: AuditKind, job: &Job) -> Self {
        Self {
            job: Some(job.id),
            scan: Some(cut(job.scan.as_str())),
            ..Self::new(kind).of_workflow(&job.workflow)
        }
    }
}

fn project_name(world: &World, project: ProjectId) -> String {
    let source = world.source_of(project);
    source.map_or_else(|| project.to_string(), |source| source.name.to_string())
}

fn cut(text: &str) -> String {
    text.chars().take(AUDIT_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests;
