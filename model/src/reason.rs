//! Why something changed or did not change. Files, API and CLI all show these reasons.

mod text;

use serde::{Deserialize, Serialize};

use crate::{Actor, Ahead, JobId, SourceName, SuspendedPart, Timestamp};

/// Why a job or a source is in its state. The serialised `code` is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// A person dispatched the job.
    Dispatched,
    /// A person ran an earlier job again.
    Rerun {
        of: JobId,
    },
    /// The previous job failed or was lost.
    Retry {
        of: JobId,
    },
    /// A slot of the schedule was due.
    SlotDue {
        slot: Timestamp,
        /// The schedule of the slot, if the scan has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
    },
    /// The expression became true.
    ExpressionTrue,
    ExpressionFalse,
    /// The expression could not be evaluated.
    ExpressionFailed {
        message: String,
    },
    /// A callback server had interactions.
    CallbackHeard {
        /// The name of the server.
        name: String,
        first: u64,
        last: u64,
        count: u64,
    },
    /// All interactions used names that jobs of the scan itself have made.
    OwnCallbacks,
    /// A job of the scan had not finished.
    Overlap {
        job: JobId,
    },
    /// Slots passed while the daemon could not start a job.
    SlotsMissed,
    /// The cursor of the schedule was far ahead of the clock. It was reset to now.
    ClockSetBack {
        /// The old cursor.
        cursor: Timestamp,
    },
    /// A newer job took its place.
    Replaced {
        by: JobId,
    },
    /// A runner claimed the job.
    Claimed,
    /// Every step ended without failing the job.
    StepsSucceeded,
    /// A step failed the job.
    StepFailed {
        /// Its position, from 0.
        step: u32,
        /// The script's exit code, if the script was not stopped.
        exit_code: Option<i32>,
    },
    /// An artifact's path, condition or upload failed.
    ArtifactFailed {
        message: String,
    },
    /// An environment value of the scan could not be evaluated.
    EnvFailed {
        message: String,
    },
    /// The files of the repository could not be put into the job's folder.
    CheckoutFailed {
        message: String,
    },
    /// The runner could not prepare the job.
    SetupFailed {
        message: String,
    },
    /// The runner had to stop immediately.
    RunnerStopped {
        message: String,
    },
    /// The runner was silent for too long, signed off, or reconnected without the job.
    RunnerLost,
    /// The job was running when the backup was taken.
    Restored,
    /// A person cancelled the job.
    CancelledByUser,
    /// The scan's `timeout` passed.
    TimedOut,
    /// The worker session token expired.
    SessionExpired,
    /// The workflow or the scan is suspended.
    Suspended {
        part: SuspendedPart,
        since: Timestamp,
        by: Actor,
        /// The text of the person who suspended it.
        text: String,
    },
    /// The workflow or the scan was removed from the source.
    Retired,
    /// The daemon's configuration no longer names the source.
    SourceDropped,
    /// The artifact's `expires_in` has passed.
    Expired,
    /// A person deleted it.
    DeletedByUser,
    /// The retention policy removed it.
    Pruned,
    /// A retry waits until it is due.
    RetryDue {
        at: Timestamp,
        attempt: u32,
        attempts: u32,
    },
    /// The scan and others have triggered each other for more than a lap, so the daemon makes a pause.
    CyclePause {
        /// The end of the pause.
        at: Timestamp,
    },
    /// No registered runner serves the project of the job.
    NoRunner,
    /// No runner of the project has contacted the daemon recently.
    NoRunnerConnected {
        registered: u64,
    },
    /// No connected runner has every label that the scan requires.
    NoRunnerFits {
        labels: Vec<String>,
    },
    /// No connected runner with every label has a program with a capability that the scan requires.
    RunnersTooOld {
        capability: String,
    },
    /// Every connected runner is exclusive, and the scan requires no label.
    RunnersExclusive {
        runners: u64,
    },
    /// Every connected runner with the labels is at its capacity.
    RunnersBusy {
        runners: u64,
        /// The first jobs that they hold. Finished jobs come first.
        jobs: Vec<JobId>,
        /// The number of other jobs that they hold.
        more: u64,
        /// The number of these jobs that have finished but still use their slots.
        over: u64,
        /// Older jobs for the same runners.
        ahead: Ahead,
    },
    /// A connected runner has a free slot for the job, but has not polled yet.
    NotFetched {
        /// Older jobs for the same runners.
        ahead: Ahead,
    },
    /// The repository was read.
    Fetched,
    /// The repository could not be read.
    FetchFailed {
        message: String,
    },
    /// The repository's host did not accept the credentials.
    CredentialsRefused {
        /// Which credentials were refused, how, and what to do.
        message: String,
    },
    /// The repository has no commit yet.
    EmptyRepository,
    /// The repository has not been read since the source was configured.
    NeverFetched,
    /// The source's folder does not exist at the tip, so there are no workflows.
    FolderMissing {
        /// The configured folder.
        folder: String,
    },
    /// The source's folder has no workflow file at the tip.
    NoWorkflows {
        folder: String,
    },
    /// At the tip, the path of the source's folder is not a folder. No workflow counts as deleted.
    FolderUnreadable {
        folder: String,
        /// A description of the entry at this path.
        what: String,
    },
    /// The tip would retire so many workflows that it needs an approval.
    RemovalHeld {
        source: SourceName,
        /// The number of workflows that would be retired.
        workflows: u64,
        /// The first workflows by name.
        names: Vec<String>,
        /// The folder, if its configuration has changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// Every file at the tip is valid.
    FilesValid,
    /// Some files at the tip are invalid. Their last valid versions, if any, stay active.
    FilesInvalid {
        invalid: u64,
        /// Number of workflow files.
        files: u64,
        /// The number of invalid files without a valid version.
        #[serde(default)]
        without_good: u64,
    },
    /// All workflows of the tip are active.
    TipActive,
    /// A workflow of the tip could not be stored.
    ApplyFailed {
        /// The first workflow file that failed.
        file: String,
        message: String,
        /// Number of files that failed.
        files: u64,
    },
    /// Only a part of the tip is active. The last valid versions of the other workflows, if any, stay active.
    TipPartlyActive {
        /// Workflows that are active in the version of the tip.
        active: u64,
        /// Workflow files at the tip.
        files: u64,
    },
}

impl Reason {
    /// The codes of the reasons for the state of a job.
    pub const OF_JOBS: &[&str] = &[
        "dispatched",
        "rerun",
        "retry",
        "slot_due",
        "expression_true",
        "callback_heard",
        "claimed",
        "steps_succeeded",
        "step_failed",
        "artifact_failed",
        "env_failed",
        "checkout_failed",
        "setup_failed",
        "runner_stopped",
        "runner_lost",
        "restored",
        "cancelled_by_user",
        "timed_out",
        "session_expired",
        "suspended",
        "retired",
        "source_dropped",
        "replaced",
        "expression_false",
        "expression_failed",
    ];

    /// The stable name.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Dispatched => "dispatched",
            Self::Rerun { .. } => "rerun",
            Self::Retry { .. } => "retry",
            Self::SlotDue { .. } => "slot_due",
            Self::ExpressionTrue => "expression_true",
            Self::ExpressionFalse => "expression_false",
            Self::ExpressionFailed { .. } => "expression_failed",
            Self::CallbackHeard { .. } => "callback_heard",
            Self::OwnCallbacks => "own_callbacks",
            Self::Overlap { .. } => "overlap",
            Self::SlotsMissed => "slots_missed",
            Self::ClockSetBack { .. } => "clock_set_back",
            Self::Replaced { .. } => "replaced",
            Self::Claimed => "claimed",
            Self::StepsSucceeded => "steps_succeeded",
            Self::StepFailed { .. } => "step_failed",
            Self::ArtifactFailed { .. } => "artifact_failed",
            Self::EnvFailed { .. } => "env_failed",
            Self::CheckoutFailed { .. } => "checkout_failed",
            Self::SetupFailed { .. } => "setup_failed",
            Self::RunnerStopped { .. } => "runner_stopped",
            Self::RunnerLost => "runner_lost",
            Self::Restored => "restored",
            Self::CancelledByUser => "cancelled_by_user",
            Self::TimedOut => "timed_out",
            Self::SessionExpired => "session_expired",
            Self::Suspended { .. } => "suspended",
            Self::Retired => "retired",
            Self::SourceDropped => "source_dropped",
            Self::Expired => "expired",
            Self::DeletedByUser => "deleted_by_user",
            Self::Pruned => "pruned",
            Self::RetryDue { .. } => "retry_due",
            Self::CyclePause { .. } => "cycle_pause",
            Self::NoRunner => "no_runner",
            Self::NoRunnerConnected { .. } => "no_runner_connected",
            Self::NoRunnerFits { .. } => "no_runner_fits",
            Self::RunnersTooOld { .. } => "runners_too_old",
            Self::RunnersExclusive { .. } => "runners_exclusive",
            Self::RunnersBusy { .. } => "runners_busy",
            Self::NotFetched { .. } => "not_fetched",
            Self::Fetched => "fetched",
            Self::FetchFailed { .. } => "fetch_failed",
            Self::CredentialsRefused { .. } => "credentials_refused",
            Self::EmptyRepository => "empty_repository",
            Self::NeverFetched => "never_fetched",
            Self::FolderMissing { .. } => "folder_missing",
            Self::NoWorkflows { .. } => "no_workflows",
            Self::FolderUnreadable { .. } => "folder_unreadable",
            Self::RemovalHeld { .. } => "removal_held",
            Self::FilesValid => "files_valid",
            Self::FilesInvalid { .. } => "files_invalid",
            Self::TipActive => "tip_active",
            Self::ApplyFailed { .. } => "apply_failed",
            Self::TipPartlyActive { .. } => "tip_partly_active",
        }
    }
}

#[cfg(test)]
mod tests;
