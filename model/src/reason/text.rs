//! The sentences that show reasons.

use std::fmt;

use chrono::SecondsFormat;

use super::Reason;
use crate::{Ahead, SuspendedPart};

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatched => f.write_str("dispatched"),
            Self::Rerun { of } => write!(f, "job {of} was run again"),
            Self::Retry { of } => write!(f, "job {of} failed and is tried again"),
            Self::SlotDue { slot, schedule } => {
                let slot = slot.to_rfc3339_opts(SecondsFormat::Secs, true);
                match schedule {
                    Some(schedule) => write!(f, "its schedule `{schedule}` was due at {slot}"),
                    None => write!(f, "its schedule was due at {slot}"),
                }
            }
            Self::ExpressionTrue => f.write_str("its expression became true"),
            Self::ExpressionFalse => f.write_str("its expression is false"),
            Self::ExpressionFailed { message } => {
                write!(f, "its expression failed: {message}")
            }
            Self::CallbackHeard {
                name,
                first,
                last,
                count,
            } => match count {
                1 => write!(f, "callback server `{name}` had interaction {last}"),
                _ => write!(f, "callback server `{name}` had {count} interactions, from {first} to {last}"),
            },
            Self::OwnCallbacks => f.write_str("the scan's own jobs have made the names that were used"),
            Self::Overlap { job } => write!(f, "job {job} of the scan had not finished"),
            Self::SlotsMissed => f.write_str("the scan could not start in time: the daemon was away, or a job of the scan was in the way"),
            Self::ClockSetBack { cursor } => {
                let cursor = cursor.to_rfc3339_opts(SecondsFormat::Secs, true);
                write!(
                    f,
                    "its schedule was far ahead of the clock, at {cursor}; it was reset to now"
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
            // The runner's message contains the name of the value.
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
            Self::NoRunner => f.write_str("no runner of this project is registered"),
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
                "there is no folder `{folder}` at the tip: {what}; what was active stays active"
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
                    "); the tip is held and what was active stays active, until `everscan source approve {source}`"
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
                    (_, 0) => f.write_str("the last valid versions stay active"),
                    (0, _) => f.write_str("no valid version so far"),
                    (good, _) => {
                        write!(
                            f,
                            "the last valid versions of {good} stay active, the rest have none yet"
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
