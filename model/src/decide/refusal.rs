use thiserror::Error;
use workflow::InputError;

use crate::idempotency::Made;
use crate::life_cycle::IllegalTransition;
use crate::{ConditionId, JobId, Reason, SuspendedPart, Timestamp};

/// Why a command was refused. A refused command changes nothing.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Refusal {
    #[error("there is no workflow `{workflow}`")]
    NoSuchWorkflow { workflow: String },
    #[error("workflow `{workflow}` has no scan `{scan}`")]
    NoSuchScan {
        workflow: String,
        scan: String,
        known: Vec<String>,
    },
    #[error("workflow `{workflow}` is retired: its file is gone from the source")]
    Retired { workflow: String },
    #[error("workflow `{workflow}` is retired: its source `{source_name}` is no longer configured")]
    SourceDropped {
        workflow: String,
        source_name: String,
    },
    #[error("scan `{scan}` of workflow `{workflow}` starts nothing: {why}")]
    Suspended {
        workflow: String,
        scan: String,
        /// The suspended part: the workflow or the scan.
        part: SuspendedPart,
        why: Box<Reason>,
    },
    /// The scan of the job was suspended before a runner claimed the job.
    #[error("job {job} waits: {why}")]
    JobHeld { job: JobId, why: Box<Reason> },
    /// The workflow's newest revision could not be read, so its scans are unknown.
    #[error("revision {revision} of `{workflow}` cannot be read")]
    WorkflowUnreadable {
        /// The workflow, as `source/name`.
        workflow: String,
        revision: u64,
        remedy: Remedy,
    },
    /// A new revision became active between reading the inputs and the decision.
    #[error("workflow `{workflow}` changed while the dispatch was read")]
    RevisionChanged { workflow: String },
    #[error("the inputs do not fit what scan `{scan}` declares")]
    InvalidInputs {
        scan: String,
        errors: Vec<InputError>,
    },
    #[error("the idempotency key was used for another request within the last 24 hours")]
    IdempotencyMismatch,
    /// The first answer had a secret, which is not stored.
    #[error(
        "this request has taken effect before, on {made}; its secret was only in the first answer"
    )]
    AlreadyDone { made: Made },
    #[error("job {job} is over or does not exist")]
    JobOver { job: JobId },
    #[error("job {job} is {state}; only finished jobs can be removed")]
    JobNotOver {
        job: JobId,
        /// The name of its state.
        state: &'static str,
    },
    #[error("job {job} is {state}; only finished jobs can be run again")]
    RerunNotOver {
        job: JobId,
        /// The name of its state.
        state: &'static str,
    },
    /// A rerun would run at the same time as the retry.
    #[error(
        "job {job} is retried as {retry}, which is not finished; wait for it, or cancel it first"
    )]
    RetryNotOver { job: JobId, retry: JobId },
    #[error("workflow `{workflow}` no longer has the scan `{scan}`")]
    ScanRetired {
        workflow: String,
        scan: String,
        renamed_to: Option<String>,
    },
    /// The job was not ended by its worker, which may still append to its log.
    #[error("the runner of job {job} may add to its log until {until}")]
    JobNotSilent { job: JobId, until: Timestamp },
    /// An expression needs jobs of a scan whose history cannot be read now.
    #[error("the history of scan `{scan}` cannot be read")]
    HistoryUnreadable { scan: String },
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// The caller does not have the worker token of the job.
    #[error("job {job} is executed by another worker")]
    NotYourJob { job: JobId },
    /// A worker's report contradicts the job's record or its scan.
    #[error("job {job}: {problem}")]
    BadReport { job: JobId, problem: String },
    #[error("job {job}: revision {revision} of its workflow cannot be read")]
    RevisionUnreadable { job: JobId, revision: u64 },
    /// Too many waiting jobs of the scan, or too many unfinished jobs of the token, of the project or in total.
    #[error("scan `{scan}` cannot have another job: {jobs} are {state}")]
    TooManyJobs {
        scan: String,
        jobs: usize,
        state: &'static str,
    },
    #[error("there are {tokens} tokens, which is the limit")]
    TooManyTokens { tokens: usize },
    /// A record of the job cannot be written as JSON. This is a bug.
    #[error("job {job}: its {record} cannot be written as JSON: {problem}")]
    Unwritable {
        job: JobId,
        record: &'static str,
        problem: String,
    },
    #[error("scan `{scan}` declares no artifact `{artifact}`")]
    UndeclaredArtifact { scan: String, artifact: String },
    #[error("job {job} has an artifact `{artifact}` with another content already")]
    ArtifactMismatch { job: JobId, artifact: String },
    #[error("the registration token is unknown, used up or older than 15 minutes")]
    BadRegistration,
    #[error("{waiting} registration tokens for {} wait for their runners", match project {
        Some(project) => format!("project `{project}`"),
        None => "all projects".to_owned(),
    })]
    TooManyRegistrations {
        waiting: usize,
        /// The project whose share is full. None for tokens of all projects.
        project: Option<String>,
    },
    /// The runner that has the name may be of other projects, so nothing is said of it.
    #[error("the runner name `{name}` is taken")]
    NameTaken { name: String },
    #[error("this needs `runner:write` in all projects of the runner")]
    RunnerOfOthers,
    /// The runner got other projects after the offer.
    #[error("runner `{runner}` does not serve the project of job {job}")]
    NotServed { job: JobId, runner: String },
    #[error("{field}: {problem}")]
    InvalidField {
        /// Path of the member.
        field: &'static str,
        problem: String,
    },
    #[error("the daemon has no key to seal secrets with")]
    NoSecretKey,
    #[error("there is no such runner")]
    NoSuchRunner,
    #[error("a new token cannot have more rights than its creator")]
    TooStrong,
    #[error("only the owner of a token can give it a new secret")]
    NotYourToken,
    /// With a token of another person, the caller would act as that person.
    #[error("administrators make tokens for service users; people make their own")]
    NotForOthers,
    #[error("there is no such user")]
    NoSuchUser,
    #[error("the name `{name}` is taken; names of users are never given again")]
    UserExists { name: String },
    #[error("there are {users} users, which is the limit")]
    TooManyUsers { users: usize },
    #[error("{invitations} invitations that you have made are open, which is the limit")]
    TooManyInvitations { invitations: usize },
    /// The invitation or reset is unknown, used up, too old, or its maker has lost the right to make it.
    #[error("there is no such link")]
    NoSuchUserLink,
    /// Somebody would get more rights than the caller may give.
    #[error("the caller may not give these rights")]
    MayNotGive,
    #[error("a token cannot change the password of its own owner")]
    OwnPassword,
    /// The user cannot have a link for a new password.
    #[error("{problem}")]
    NoPasswordOf { problem: &'static str },
    #[error("this needs a sign-in of the last 10 minutes")]
    SignInAgain,
    /// Nobody could manage the installation any more.
    #[error("this is the last administrator who can sign in; make another one first")]
    LastAdministrator,
    /// The credential of the caller has ended during the request.
    #[error("the credential has ended")]
    NoRights,
    /// The caller had more rights when the request began.
    #[error("the rights of the caller were reduced during this request")]
    RightsReduced,
    #[error("there is no such token")]
    NoSuchToken,
    /// The session does not exist, or has ended.
    #[error("there is no such session")]
    NoSuchSession,
    /// Without this token nobody could manage the daemon.
    #[error("this is the last token with the scope `admin`; make another one first")]
    LastAdmin,
    #[error("there is no source `{source_name}`")]
    NoSuchSource { source_name: String },
    #[error("commit {commit} is not the newest tip of source `{source_name}`")]
    NotTheTip { source_name: String, commit: String },
    #[error("there is no project `{project}`")]
    NoSuchProject { project: String },
    #[error("project `{project}` has no var `{name}`")]
    NoSuchVar { project: String, name: String },
    #[error("there is no channel {name}")]
    NoSuchChannel { name: String },
    #[error("project `{project}` has no secret `{name}`")]
    NoSuchSecret { project: String, name: String },
    #[error("there is no rule `{name}`{}", if *is_in_file { " of the API" } else { "" })]
    NoSuchRule {
        name: String,
        /// True if `everscan.yaml` has it.
        is_in_file: bool,
    },
    #[error("there is no blob `{path}`")]
    NoSuchBlob { path: String },
    #[error("condition {condition} is not open")]
    NoSuchCondition { condition: ConditionId },
    #[error("there is no such link")]
    NoSuchBlobLink,
    #[error("there are {links} links to blobs{}, which is the limit", match project {
        Some(project) => format!(" of project `{project}`"),
        None => String::new(),
    })]
    TooManyBlobLinks {
        links: usize,
        /// The project whose share is full. None if all links together are too many.
        project: Option<String>,
    },
    /// The blob at the path does not meet the caller's condition. Its digest is not named: who may only write could find a
    /// short content by its digest.
    #[error("the blob `{path}` {}", match exists {
        true => "exists, and is not what the request expects",
        false => "does not exist",
    })]
    BlobChanged { path: String, exists: bool },
    /// A blob cannot have the name of a folder.
    #[error("`{path}` is a folder")]
    BlobIsFolder { path: String },
    /// A blob cannot be in a folder that has the name of another blob.
    #[error("`{path}` is a blob, so nothing can be in it")]
    BlobIsNoFolder { path: String },
    #[error("the folder `{folder}` has {entries} entries, which is the limit")]
    BlobFolderFull { folder: String, entries: usize },
    #[error("the project has {used} of {maximum} bytes in use, and {wanted} more do not fit")]
    QuotaExceeded {
        used: u64,
        maximum: u64,
        wanted: u64,
    },
    #[error("there is no such callback server")]
    NoSuchCallback,
    #[error("this callback server has no such name")]
    NoSuchCallbackToken,
    #[error("the project already has a callback server `{name}`")]
    CallbackExists { name: String },
    #[error("the project has {limit} callback servers, which is the limit")]
    TooManyCallbacks { limit: usize },
    #[error("the callback server has {limit} names, which is the limit; end one first")]
    TooManyCallbackTokens { limit: usize },
    #[error("there is no such payload group")]
    NoSuchPayloadGroup,
    #[error("the project already has a payload group `{name}`")]
    PayloadGroupExists { name: String },
    #[error("the group has no payload `{name}`")]
    NoSuchPayload { name: String },
    #[error("{what}, which is the limit")]
    PayloadLimit { what: String },
    /// The edit expects a different version of the var or secret.
    #[error("{what} `{name}` {}", match present {
        Some(_) if *must_be_new => "exists already".to_owned(),
        Some(version) => format!("has version {version}, but the request expects another one"),
        None => "does not exist, but the request expects it".to_owned(),
    })]
    PreconditionFailed {
        /// `var`, `secret`, `channel` or `payload`.
        what: &'static str,
        name: String,
        /// The present version; none if it does not exist.
        present: Option<u64>,
        must_be_new: bool,
    },
}

impl Refusal {
    pub(super) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::InvalidField {
            field,
            problem: problem.into(),
        }
    }
}

/// How to repair an unreadable newest revision. Restoring its file from a backup always works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Make its invalid file valid.
    ValidFile { source_name: String },
    /// Add its removed file to the source again.
    File,
    /// Configure its source again.
    Source,
    /// Only a backup helps, because the file in the source has not changed.
    Backup,
}
