//! Why a command was refused.

use thiserror::Error;
use workflow::InputError;

use crate::idempotency::Made;
use crate::life_cycle::IllegalTransition;
use crate::{JobId, Reason, SuspendedPart, Timestamp};

/// Why a command was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Refusal {
    #[error("there is no workflow `{workflow}`")]
    NoSuchWorkflow { workflow: String },
    #[error("workflow `{workflow}` has no scan `{scan}` (it has: {})", known.join(", "))]
    NoSuchScan {
        workflow: String,
        scan: String,
        known: Vec<String>,
    },
    /// The workflow's file is gone from its source.
    #[error("workflow `{workflow}` is retired: its file is gone from the source")]
    Retired { workflow: String },
    /// The workflow's source is not configured any more.
    #[error("workflow `{workflow}` is retired: its source `{source_name}` is no longer configured")]
    SourceDropped {
        workflow: String,
        source_name: String,
    },
    /// The scan or its workflow is suspended.
    #[error("scan `{scan}` of workflow `{workflow}` starts nothing: {why}")]
    Suspended {
        workflow: String,
        scan: String,
        /// Whether the workflow is, and not the scan alone.
        part: SuspendedPart,
        why: Box<Reason>,
    },
    /// A runner comes for a job whose scan was suspended meanwhile.
    #[error("job {job} waits: {why}")]
    JobHeld { job: JobId, why: Box<Reason> },
    /// The workflow's newest revision could not be read, so its scans are unknown.
    #[error("revision {revision} of `{workflow}` cannot be read")]
    WorkflowUnreadable {
        /// The workflow, as `source/name`.
        workflow: String,
        revision: u64,
        /// How to repair it.
        remedy: Remedy,
    },
    /// A new revision became active between reading the inputs and deciding.
    #[error("workflow `{workflow}` changed while the dispatch was read")]
    RevisionChanged { workflow: String },
    #[error("the inputs do not fit what scan `{scan}` declares")]
    InvalidInputs {
        scan: String,
        /// One entry for each input.
        errors: Vec<InputError>,
    },
    #[error("the idempotency key was used for another request within the last 24 hours")]
    IdempotencyMismatch,
    /// The answer to the first of these requests had a secret, which is not stored.
    #[error(
        "this request has taken effect before, on {made}; its secret was in the first answer alone"
    )]
    AlreadyDone { made: Made },
    /// The job has finished, or does not exist.
    #[error("job {job} is over or does not exist")]
    JobOver { job: JobId },
    /// The job has not finished, so nothing of it can be removed.
    #[error("job {job} is {state}; only what is over can be removed")]
    JobNotOver {
        job: JobId,
        /// The name of its state.
        state: &'static str,
    },
    /// The job has not finished, so it cannot be run again.
    #[error("job {job} is {state}; only what is over can be run again")]
    RerunNotOver {
        job: JobId,
        /// The name of its state.
        state: &'static str,
    },
    /// The job is retried. Run again, it would have two unfinished jobs beside each other.
    #[error(
        "job {job} is retried as {retry}, which is not finished; wait for it, or cancel it first"
    )]
    RetryNotOver { job: JobId, retry: JobId },
    /// The newest revision has no such scan any more.
    #[error("workflow `{workflow}` no longer has the scan `{scan}`")]
    ScanRetired {
        workflow: String,
        scan: String,
        renamed_to: Option<String>,
    },
    /// The job was not ended by its worker, which may still add to its log.
    #[error("the runner of job {job} may add to its log until {until}")]
    JobNotSilent { job: JobId, until: Timestamp },
    /// An expression reads jobs of a scan whose history cannot be read now.
    #[error("the history of scan `{scan}` cannot be read")]
    HistoryUnreadable { scan: String },
    /// Not legal in the job's state.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// The caller does not hold the token of the job's execution.
    #[error("job {job} is executed by another worker")]
    NotYourJob { job: JobId },
    /// A worker's report contradicts what is known.
    #[error("job {job}: {problem}")]
    BadReport { job: JobId, problem: String },
    /// The revision that the job would run cannot be read.
    #[error("job {job}: revision {revision} of its workflow cannot be read")]
    RevisionUnreadable { job: JobId, revision: u64 },
    /// Too many jobs of the scan wait, or are unfinished of the token, of the project or altogether.
    #[error("scan `{scan}` cannot have another job: {jobs} are {state}")]
    TooManyJobs {
        scan: String,
        /// How many there are.
        jobs: usize,
        /// What they are.
        state: &'static str,
    },
    #[error("there are {tokens} tokens, and more are not kept")]
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
    #[error("{waiting} registration tokens wait for their runners")]
    TooManyRegistrations { waiting: usize },
    #[error("a runner named `{name}` is registered already")]
    NameTaken { name: String },
    #[error("{field}: {problem}")]
    InvalidField {
        /// Path of the member.
        field: &'static str,
        problem: String,
    },
    #[error("there is no such runner")]
    NoSuchRunner,
    #[error("a token cannot make one that may do more than itself")]
    TooStrong,
    #[error("there is no such token")]
    NoSuchToken,
    /// The session does not exist, or has ended.
    #[error("there is no such session")]
    NoSuchSession,
    /// Without it nobody could manage the daemon.
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
    #[error("project `{project}` has no secret `{name}`")]
    NoSuchSecret { project: String, name: String },
    #[error("there is no blob `{path}`")]
    NoSuchBlob { path: String },
    #[error("there is no such link")]
    NoSuchBlobLink,
    #[error("there are {links} links to blobs, and more are not kept")]
    TooManyBlobLinks { links: usize },
    /// The blob at the path is not as the caller said.
    #[error("the blob `{path}` {}", match sha256 {
        Some(sha256) => format!("has the SHA-256 {sha256}"),
        None => "does not exist".to_owned(),
    })]
    BlobChanged {
        path: String,
        /// Of the blob that is there.
        sha256: Option<String>,
    },
    /// A blob would have the name of a folder.
    #[error("`{path}` is a folder")]
    BlobIsFolder { path: String },
    /// A blob would be in a folder with the name of a blob.
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
    /// The edit is for another version of a var or secret than there is.
    #[error("{what} `{name}` {}", match present {
        Some(version) => format!("has version {version}, and not what the request expects"),
        None => "does not exist, and the request expects it".to_owned(),
    })]
    PreconditionFailed {
        /// `var` or `secret`.
        what: &'static str,
        name: String,
        /// The version now; none if it does not exist.
        present: Option<u64>,
    },
}

/// How to repair a newest revision that cannot be read. Restoring its file from a backup always works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Make its invalid file valid.
    ValidFile { source_name: String },
    /// Bring back its file, which is gone from the source.
    File,
    /// Configure its source again.
    Source,
    /// Only the backup: its file has not changed.
    Backup,
}
