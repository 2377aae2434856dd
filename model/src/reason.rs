//! Why something changed or did not change. Files, API and CLI all render this one enum.

use std::fmt;

use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};

use crate::{Actor, Ahead, JobId, SourceName, SuspendedPart, Timestamp};

/// Why a job or a source is in its state. The serialised `code` is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// Somebody asked for the job.
    Dispatched,
    /// Somebody ran an earlier job again.
    Rerun {
        /// That job.
        of: JobId,
    },
    /// The job before it failed or was lost.
    Retry {
        /// That job.
        of: JobId,
    },
    /// A slot of the schedule came due.
    SlotDue {
        slot: Timestamp,
    },
    /// The expression became true.
    ExpressionTrue,
    ExpressionFalse,
    /// The expression could not be evaluated.
    ExpressionFailed {
        message: String,
    },
    /// A job of the scan was not over.
    Overlap {
        job: JobId,
    },
    /// Slots passed while the daemon could not start a job.
    SlotsMissed,
    /// The schedule had been followed up to a time far ahead of the clock. It continues from now.
    ClockSetBack {
        /// That moment.
        cursor: Timestamp,
    },
    /// A newer job took its place.
    Replaced {
        /// The newer job.
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
        /// The script's exit code, when it ended by itself.
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
    /// The files of the repository could not be brought to the job.
    CheckoutFailed {
        message: String,
    },
    /// The runner could not prepare the job.
    SetupFailed {
        message: String,
    },
    /// The runner was told to stop at once.
    RunnerStopped {
        message: String,
    },
    /// The runner was silent for too long, signed off, or came back without the job.
    RunnerLost,
    /// The job was running when the backup was taken.
    Restored,
    /// Somebody cancelled the job.
    CancelledByUser,
    /// The scan's `timeout` passed.
    TimedOut,
    /// The worker session token reached its end.
    SessionExpired,
    /// The workflow or the scan is suspended.
    Suspended {
        part: SuspendedPart,
        since: Timestamp,
        by: Actor,
        /// Why, in the words of who did it.
        text: String,
    },
    /// The workflow, or the scan in it, is gone from the source.
    Retired,
    /// The daemon's configuration no longer names the source.
    SourceDropped,
    /// The artifact's `expires_in` has passed.
    Expired,
    /// Somebody deleted it.
    DeletedByUser,
    /// The retention policy removed it.
    Pruned,
    /// It is a retry whose time has not come.
    RetryDue {
        at: Timestamp,
        attempt: u32,
        attempts: u32,
    },
    /// Its scan and others have woken each other for more than a lap. The daemon keeps a pause.
    CyclePause {
        /// Its end.
        at: Timestamp,
    },
    /// No runner is registered.
    NoRunner,
    /// No registered runner has contacted the daemon recently.
    NoRunnerConnected {
        /// How many are registered.
        registered: u64,
    },
    /// No connected runner has every label that the scan asks for.
    NoRunnerFits {
        /// What the scan asks for.
        labels: Vec<String>,
    },
    /// No connected runner with every label has a program that can do what the scan asks for.
    RunnersTooOld {
        capability: String,
    },
    /// Every connected runner is exclusive, and the scan asks for no label.
    RunnersExclusive {
        /// How many there are.
        runners: u64,
    },
    /// Every connected runner with the labels is at its capacity.
    RunnersBusy {
        /// How many there are.
        runners: u64,
        /// The first of the jobs they hold. Finished jobs come first.
        jobs: Vec<JobId>,
        /// How many more they hold.
        more: u64,
        /// How many of all these jobs have finished and still hold their slots.
        over: u64,
        /// The jobs that wait for the same runners.
        ahead: Ahead,
    },
    /// A connected runner has room for the job, but has not asked for work yet.
    NotFetched {
        /// The jobs that wait for the same runners.
        ahead: Ahead,
    },
    /// The repository was read.
    Fetched,
    /// The repository could not be read.
    FetchFailed {
        /// What happened and what to do.
        message: String,
    },
    /// The repository's host did not accept the credentials.
    CredentialsRefused {
        /// What happened, which credentials they were, and what to do.
        message: String,
    },
    /// The repository has no commit yet.
    EmptyRepository,
    /// The repository has not been read since the source was configured.
    NeverFetched,
    /// The source's folder does not exist at the tip, so there are no workflows.
    FolderMissing {
        /// The folder that was looked for.
        folder: String,
    },
    /// The source's folder has no workflow file at the tip.
    NoWorkflows {
        folder: String,
    },
    /// What the tip has at the path of the source's folder is no folder. No workflow is treated as deleted.
    FolderUnreadable {
        folder: String,
        /// What it is.
        what: String,
    },
    /// The tip would retire so many workflows that somebody must approve it.
    RemovalHeld {
        source: SourceName,
        /// How many would retire.
        workflows: u64,
        /// The first of them.
        names: Vec<String>,
        /// The folder, if that was configured anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// Every file at the tip is valid.
    FilesValid,
    /// Some files at the tip are invalid. Their last valid versions stay active, where there is one.
    FilesInvalid {
        invalid: u64,
        /// Of how many.
        files: u64,
        /// How many of the invalid files have no valid version.
        #[serde(default)]
        without_good: u64,
    },
    /// All workflows of the tip are active.
    TipActive,
    /// A workflow of the tip could not be stored.
    ApplyFailed {
        /// The first workflow file it happened to.
        file: String,
        message: String,
        /// How many files it happened to.
        files: u64,
    },
    /// Only part of the tip is active. The other workflows stay at their last valid versions, where there is one.
    TipPartlyActive {
        /// Workflows that are active as of the tip.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatched => f.write_str("dispatched"),
            Self::Rerun { of } => write!(f, "job {of} was run again"),
            Self::Retry { of } => write!(f, "job {of} failed and is tried again"),
            Self::SlotDue { slot } => {
                let slot = slot.to_rfc3339_opts(SecondsFormat::Secs, true);
                write!(f, "its schedule was due at {slot}")
            }
            Self::ExpressionTrue => f.write_str("its expression became true"),
            Self::ExpressionFalse => f.write_str("its expression is false"),
            Self::ExpressionFailed { message } => {
                write!(f, "its expression failed: {message}")
            }
            Self::Overlap { job } => write!(f, "job {job} of the scan had not finished"),
            Self::SlotsMissed => f.write_str("the scan could not start in time: the daemon was away, or a job of the scan was in the way"),
            Self::ClockSetBack { cursor } => {
                let cursor = cursor.to_rfc3339_opts(SecondsFormat::Secs, true);
                write!(
                    f,
                    "its schedule had been followed up to {cursor}, far ahead of the clock; it goes on from now"
                )
            }
            Self::Replaced { by } => write!(f, "job {by} took its place"),
            Self::Claimed => f.write_str("claimed by a runner"),
            Self::StepsSucceeded => f.write_str("all steps succeeded"),
            Self::StepFailed {
                step,
                exit_code: Some(code),
            } => write!(
                f,
                "step {} failed with exit code {code}",
                u64::from(*step) + 1
            ),
            Self::StepFailed {
                step,
                exit_code: None,
            } => write!(f, "step {} failed", u64::from(*step) + 1),
            Self::ArtifactFailed { message } => write!(f, "an artifact failed: {message}"),
            // The runner says which value it was.
            Self::EnvFailed { message } => f.write_str(message),
            Self::CheckoutFailed { message } => {
                write!(
                    f,
                    "the job did not get its files of the repository: {message}"
                )
            }
            Self::SetupFailed { message } => {
                write!(f, "the runner could not prepare the job: {message}")
            }
            Self::RunnerStopped { message } => write!(f, "the runner stopped the job: {message}"),
            Self::RunnerLost => f.write_str("the runner was lost"),
            Self::Restored => f.write_str("the job was running when the backup was taken"),
            Self::CancelledByUser => f.write_str("cancelled by a user"),
            Self::TimedOut => f.write_str("the scan's timeout passed"),
            Self::SessionExpired => f.write_str("the worker session ended"),
            Self::Suspended {
                part,
                since,
                by,
                text,
            } => {
                let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
                let whole = match part {
                    SuspendedPart::Workflow => "workflow ",
                    SuspendedPart::Scan => "",
                };
                write!(f, "{whole}suspended since {since} by {by}: {text}")
            }
            Self::Retired => f.write_str("its file or scan is gone from the source, or has another name there"),
            Self::SourceDropped => f.write_str("its source is no longer configured"),
            Self::Expired => f.write_str("it has expired"),
            Self::DeletedByUser => f.write_str("deleted by a user"),
            Self::Pruned => f.write_str("removed to make room"),
            Self::RetryDue {
                at,
                attempt,
                attempts,
            } => {
                let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
                write!(f, "retry at {at} (attempt {attempt} of {attempts})")
            }
            Self::CyclePause { at } => write!(
                f,
                "its scan and others wake each other in a circle, so it waits until {}",
                at.to_rfc3339_opts(SecondsFormat::Millis, true)
            ),
            Self::NoRunner => f.write_str("no runner is registered"),
            Self::NoRunnerConnected { registered: 1 } => {
                f.write_str("the only registered runner is not connected")
            }
            Self::NoRunnerConnected { registered } => {
                write!(
                    f,
                    "none of the {registered} registered runners is connected"
                )
            }
            Self::NoRunnerFits { labels } => {
                let noun = if labels.len() == 1 { "label" } else { "labels" };
                let labels = labels.join(", ");
                write!(f, "no connected runner has the {noun} {labels}")
            }
            Self::RunnersTooOld { capability } => write!(
                f,
                "no connected runner with its labels knows `{capability}`; update the runner"
            ),
            Self::RunnersExclusive { runners: 1 } => f.write_str(
                "the only connected runner takes only scans whose `runs_on` names one of its labels",
            ),
            Self::RunnersExclusive { runners } => write!(
                f,
                "all {runners} connected runners take only scans whose `runs_on` names one of their labels"
            ),
            Self::RunnersBusy {
                runners,
                jobs,
                more,
                over,
                ahead,
            } => {
                match runners {
                    1 => f.write_str("the only runner that can take it is busy with ")?,
                    _ => write!(f, "all {runners} runners that can take it are busy with ")?,
                }
                let all = jobs.len() as u64 + more;
                let names: Vec<String> = jobs.iter().map(ToString::to_string).collect();
                match (jobs.len(), more) {
                    (0, 1) => f.write_str("another job")?,
                    (0, _) => write!(f, "{more} other jobs")?,
                    (1, 0) => write!(f, "job {}", names.join(""))?,
                    (_, 0) => write!(f, "jobs {}", names.join(", "))?,
                    (_, _) => write!(f, "jobs {} and {more} more", names.join(", "))?,
                }
                match over {
                    0 => {}
                    _ if *over == all && all == 1 => {
                        f.write_str(", which is over and still holds its slot")?;
                    }
                    _ if *over == all => {
                        f.write_str(", which are over and still hold their slots")?;
                    }
                    1 => f.write_str("; 1 of them is over and still holds its slot")?,
                    _ => write!(f, "; {over} of them are over and still hold their slots")?,
                }
                write_ahead(f, ahead)
            }
            Self::NotFetched { ahead } => {
                f.write_str("no runner with room for it has asked for work yet")?;
                write_ahead(f, ahead)
            }
            Self::Fetched => f.write_str("the repository was read"),
            Self::FetchFailed { message } | Self::CredentialsRefused { message } => {
                f.write_str(message)
            }
            Self::EmptyRepository => f.write_str("the repository has no commit yet"),
            Self::NeverFetched => f.write_str("the repository has not been read yet"),
            Self::FolderMissing { folder } => write!(
                f,
                "the folder `{folder}` does not exist at the tip, so there are no workflows"
            ),
            Self::NoWorkflows { folder } if folder.is_empty() => {
                f.write_str("the tip has no workflow file")
            }
            Self::NoWorkflows { folder } => {
                write!(f, "the folder `{folder}` has no workflow file at the tip")
            }
            Self::FolderUnreadable { folder, what } => write!(
                f,
                "there is no folder `{folder}` at the tip: {what}; what was active goes on"
            ),
            Self::RemovalHeld {
                source,
                workflows,
                names,
                folder,
            } => {
                match (folder, workflows) {
                    (None, _) => write!(f, "all {workflows} workflows would retire")?,
                    (Some(folder), 1) => {
                        write!(f, "1 workflow is not in the new path `{folder}` and would retire")?;
                    }
                    (Some(folder), _) => write!(
                        f,
                        "{workflows} workflows are not in the new path `{folder}` and would retire"
                    )?,
                }
                write!(f, " ({}", names.join(", "))?;
                match workflows.saturating_sub(names.len() as u64) {
                    0 => {}
                    more => write!(f, " and {more} more")?,
                }
                write!(
                    f,
                    "); the tip is held and what was active goes on, until `everscan source approve {source}`"
                )
            }
            Self::FilesValid => f.write_str("every workflow file is valid"),
            Self::FilesInvalid {
                invalid,
                files,
                without_good,
            } => {
                write!(f, "{invalid} of {files} workflow files invalid; ")?;
                match (invalid.saturating_sub(*without_good), *without_good) {
                    (_, 0) => f.write_str("last good versions go on"),
                    (0, _) => f.write_str("no good version so far"),
                    (good, _) => {
                        write!(
                            f,
                            "last good versions of {good} go on, the rest have none yet"
                        )
                    }
                }
            }
            Self::TipActive => f.write_str("the tip is active"),
            Self::ApplyFailed {
                file,
                message,
                files: 1,
            } => write!(f, "{file} could not be made active: {message}"),
            Self::ApplyFailed {
                file,
                message,
                files,
            } => write!(
                f,
                "{files} workflow files could not be made active, the first {file}: {message}"
            ),
            Self::TipPartlyActive { active, files } => {
                write!(f, "{active} of {files} workflow files active")
            }
        }
    }
}

fn write_ahead(f: &mut fmt::Formatter<'_>, ahead: &Ahead) -> fmt::Result {
    ahead
        .sentence()
        .map_or(Ok(()), |sentence| write!(f, "; {sentence}"))
}

#[cfg(test)]
mod tests;
