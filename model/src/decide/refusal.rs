//! Why a command was refused.

use thiserror::Error;
use workflow::InputError;

use crate::life_cycle::IllegalTransition;
use crate::{JobId, Timestamp};

/// Why a command was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Refusal {
    /// No workflow of that id.
    #[error("there is no workflow `{workflow}`")]
    NoSuchWorkflow {
        /// What was asked for.
        workflow: String,
    },
    /// No scan of that name in the active revision.
    #[error("workflow `{workflow}` has no scan `{scan}` (it has: {})", known.join(", "))]
    NoSuchScan {
        /// The workflow's name.
        workflow: String,
        /// What was asked for.
        scan: String,
        /// The scans it has.
        known: Vec<String>,
    },
    /// The workflow's file is gone from its source.
    #[error("workflow `{workflow}` is retired: its file is gone from the source")]
    Retired {
        /// The workflow's name.
        workflow: String,
    },
    /// The workflow's source is not configured any more.
    #[error("workflow `{workflow}` is retired: its source `{source_name}` is no longer configured")]
    SourceDropped {
        /// The workflow's name.
        workflow: String,
        /// The source's name.
        source_name: String,
    },
    /// The workflow's newest revision could not be loaded, so nothing is known of its scans.
    #[error("revision {revision} of `{workflow}` cannot be read")]
    WorkflowUnreadable {
        /// The workflow, as `source/name`.
        workflow: String,
        /// The revision's number.
        revision: u64,
        /// What ends it.
        remedy: Remedy,
    },
    /// A new revision became active between reading the inputs and deciding.
    #[error("workflow `{workflow}` changed while the dispatch was read")]
    RevisionChanged {
        /// The workflow's name.
        workflow: String,
    },
    /// Inputs that do not fit the declaration.
    #[error("the inputs do not fit what scan `{scan}` declares")]
    InvalidInputs {
        /// The scan's name.
        scan: String,
        /// One entry for each input.
        errors: Vec<InputError>,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request within the last 24 hours")]
    IdempotencyMismatch,
    /// No unfinished job of that id.
    #[error("job {job} is over or does not exist")]
    JobOver {
        /// The job.
        job: JobId,
    },
    /// The job is not over, so nothing of it can be removed.
    #[error("job {job} is {state}; only what is over can be removed")]
    JobNotOver {
        /// The job.
        job: JobId,
        /// The name of its state.
        state: &'static str,
    },
    /// The job was ended by somebody else than its worker, which may still add to its log.
    #[error("the runner of job {job} may add to its log until {until}")]
    JobNotSilent {
        /// The job.
        job: JobId,
        /// Until when.
        until: Timestamp,
    },
    /// An expression reads jobs of a scan whose history cannot be read now.
    #[error("the history of scan `{scan}` cannot be read")]
    HistoryUnreadable {
        /// The scan.
        scan: String,
    },
    /// Not legal in the job's state.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// The caller does not hold the token of the job's execution.
    #[error("job {job} is executed by another worker")]
    NotYourJob {
        /// The job.
        job: JobId,
    },
    /// A worker's report that cannot be.
    #[error("job {job}: {problem}")]
    BadReport {
        /// The job.
        job: JobId,
        /// What is wrong.
        problem: String,
    },
    /// The job's revision could not be loaded, so nothing of the job can be checked against it.
    #[error("job {job}: revision {revision} of its workflow cannot be read")]
    RevisionUnreadable {
        /// The job.
        job: JobId,
        /// The revision's number.
        revision: u64,
    },
    /// Too many jobs of the scan wait, or are unfinished altogether.
    #[error("scan `{scan}` cannot have another job: {jobs} are {state}")]
    TooManyJobs {
        /// The scan's name.
        scan: String,
        /// How many there are.
        jobs: usize,
        /// What they are.
        state: &'static str,
    },
    /// Too many tokens exist.
    #[error("there are {tokens} tokens, and more are not kept")]
    TooManyTokens {
        /// How many.
        tokens: usize,
    },
    /// A record of the job cannot be written as JSON, which is a defect.
    #[error("job {job}: its {record} cannot be written as JSON: {problem}")]
    Unwritable {
        /// The job.
        job: JobId,
        /// Which record.
        record: &'static str,
        /// What the writer said.
        problem: String,
    },
    /// The artifact is not one the scan declares.
    #[error("scan `{scan}` declares no artifact `{artifact}`")]
    UndeclaredArtifact {
        /// The scan's name.
        scan: String,
        /// What was uploaded.
        artifact: String,
    },
    /// The artifact was stored with another content.
    #[error("job {job} has an artifact `{artifact}` with another content already")]
    ArtifactMismatch {
        /// The job.
        job: JobId,
        /// The artifact.
        artifact: String,
    },
    /// The registration token is unknown, used or has run out.
    #[error("the registration token is unknown, used up or older than 15 minutes")]
    BadRegistration,
    /// Too many registration tokens wait.
    #[error("{waiting} registration tokens wait for their runners")]
    TooManyRegistrations {
        /// How many.
        waiting: usize,
    },
    /// Another runner has that name.
    #[error("a runner named `{name}` is registered already")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A name, label, capacity or scope that is not acceptable.
    #[error("{field}: {problem}")]
    InvalidField {
        /// Path of the member.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// No runner of that id.
    #[error("there is no such runner")]
    NoSuchRunner,
    /// A token may not make one that may do more.
    #[error("a token cannot make one with more scopes than its own")]
    TooStrong,
    /// No source of that name.
    #[error("there is no source `{source_name}`")]
    NoSuchSource {
        /// What was asked for.
        source_name: String,
    },
    /// No project of that id.
    #[error("there is no project `{project}`")]
    NoSuchProject {
        /// What was asked for.
        project: String,
    },
    /// No var of that name.
    #[error("project `{project}` has no var `{name}`")]
    NoSuchVar {
        /// The project's name.
        project: String,
        /// What was asked for.
        name: String,
    },
    /// No secret of that name.
    #[error("project `{project}` has no secret `{name}`")]
    NoSuchSecret {
        /// The project's name.
        project: String,
        /// What was asked for.
        name: String,
    },
}

/// What ends that a workflow's newest revision cannot be read. A file restored from a backup always does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A valid file in place of the invalid one that its source has.
    ValidFile {
        /// The source's name.
        source_name: String,
    },
    /// Its file, which is gone from its source.
    File,
    /// Its source, which is no longer configured.
    Source,
    /// Nothing else: its file is as it was.
    Backup,
}
