//! One poll of a repository: fetch, read, plan, apply, record.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use model::decide::{Activate, RecordApplyFailure, RecordPoll, RecordTip};
use model::plan::{DesiredTip, TipPlan, plan};
use model::{Reason, Removal, SourceConditionKind, Status, error_chain};
use state::{State, SubmitError};
use workflow::Diagnostic;
use workflow::notify::Rule;

use super::configured::{self, SourceConfig, configure_one};
use crate::git::{CommitId, FetchError, Mirror, ReadLimits, Relation, Snapshot, Tip};
use crate::limits::AT_ONCE;
use crate::source::desired::desired;

/// The poll failed. The error is recorded or logged, and the poll is repeated.
pub(crate) struct PollFailed;

/// Polls once. `applied` is the last tip that this process has applied completely. It is none after a start or a
/// failure, so that the rest of an interrupted poll is applied.
pub(crate) async fn poll(
    state: &State,
    config: &SourceConfig,
    mirror: &Mirror,
    applied: &mut Option<Tip>,
) -> Result<(), PollFailed> {
    configure_one(state, config)
        .await
        .map_err(|error| failed(config, &error))?;
    let tip = match fetch(config, mirror).await {
        Ok(tip) => tip,
        Err(error) => return record_failure(state, config, &error).await,
    };
    if applied.as_ref() == Some(&tip) && !is_approved(state, config) {
        return record_poll(state, config, Status::True, Reason::Fetched).await;
    }
    *applied = None;
    let (relation, snapshot) = match read(state, config, mirror, &tip).await {
        Ok(read) => read,
        Err(message) => {
            return record_failed_poll(state, config, Reason::FetchFailed { message }).await;
        }
    };
    let warnings = snapshot.warnings.clone();
    let (desired, rules) = match desired(state, config, &tip, snapshot).await {
        Ok(desired) => desired,
        Err(message) => {
            return record_failed_poll(state, config, Reason::FetchFailed { message }).await;
        }
    };
    let done = apply(state, config, &tip, relation, warnings, desired, rules)
        .await
        .map_err(|error| failed(config, &error))?;
    match done {
        Applied::Whole => {
            *applied = Some(tip);
            Ok(())
        }
        Applied::Partly => Err(PollFailed),
    }
}

/// True if a person has approved a held tip. Then the tip is read once more.
fn is_approved(state: &State, config: &SourceConfig) -> bool {
    let removal = state.read(|world| world.source(&config.name)?.removal);
    removal == Some(Removal::Approved)
}

async fn fetch(config: &SourceConfig, mirror: &Mirror) -> Result<Tip, FetchError> {
    let (mirror, location, reference) = (
        mirror.clone(),
        config.location.clone(),
        config.reference.clone(),
    );
    let limited = location.clone();
    tokio::task::spawn_blocking(move || mirror.fetch(&location, reference.as_ref()))
        .await
        .unwrap_or_else(|_| {
            Err(FetchError::Unreachable {
                location: limited,
                complaint: "the fetch ended unexpectedly".to_owned(),
            })
        })
}

async fn record_failure(
    state: &State,
    config: &SourceConfig,
    error: &FetchError,
) -> Result<(), PollFailed> {
    if let FetchError::Empty { .. } = error {
        return record_poll(state, config, Status::True, Reason::EmptyRepository).await;
    }
    let mut message = error_chain(error);
    if let Some(hint) = error.hint(&config.access) {
        message.push_str("; ");
        message.push_str(&hint);
    }
    let reason = if matches!(error, FetchError::AccessDenied { .. }) {
        Reason::CredentialsRefused { message }
    } else {
        Reason::FetchFailed { message }
    };
    record_failed_poll(state, config, reason).await
}

async fn record_failed_poll(
    state: &State,
    config: &SourceConfig,
    reason: Reason,
) -> Result<(), PollFailed> {
    tracing::warn!(source = %config.name, message = %reason, "the repository cannot be read");
    record_poll(state, config, Status::False, reason).await?;
    Err(PollFailed)
}

async fn record_poll(
    state: &State,
    config: &SourceConfig,
    status: Status,
    reason: Reason,
) -> Result<(), PollFailed> {
    state
        .submit(RecordPoll {
            name: config.name.clone(),
            status,
            reason,
        })
        .await
        .map_err(|error| failed(config, &error))
}

/// Makes the mirror keep the commits whose files jobs need. If this fails, it is retried after the next poll.
pub(crate) async fn keep_commits(state: &State, config: &SourceConfig, mirror: &Mirror) {
    let commits = state.read(|world| world.commits_in_use(&config.name));
    let commits: BTreeSet<CommitId> = commits
        .iter()
        .filter_map(|commit| commit.parse().ok())
        .collect();
    let mirror = mirror.clone();
    let kept = tokio::task::spawn_blocking(move || mirror.keep(&commits)).await;
    if let Ok(Err(error)) = kept {
        let error = error_chain(&error);
        tracing::debug!(source = %config.name, error, "the mirror has no references to the commits whose files jobs need");
    }
}

/// The tip's relation to the previous tip, and its files.
async fn read(
    state: &State,
    config: &SourceConfig,
    mirror: &Mirror,
    tip: &Tip,
) -> Result<(Option<Relation>, Snapshot), String> {
    let before = state.read(|world| {
        world
            .source(&config.name)
            .and_then(|source| source.tip.clone())
    });
    let (mirror, commit, folder) = (mirror.clone(), tip.commit, config.folder.clone());
    let read = tokio::task::spawn_blocking(move || {
        let relation = before
            .and_then(|before| before.commit.parse::<CommitId>().ok())
            .map(|before| mirror.relation(&before, &commit))
            .transpose()?;
        let snapshot = mirror.read(&commit, &folder, &ReadLimits::default())?;
        Ok::<_, crate::git::ReadError>((relation, snapshot))
    });
    match read.await {
        Ok(read) => read.map_err(|error| match error.hint() {
            Some(hint) => format!("{}; {hint}", error_chain(&error)),
            None => error_chain(&error),
        }),
        Err(_) => Err("reading the commit ended unexpectedly".to_owned()),
    }
}

/// Applies the plan for a tip, and records the tip last. If this is interrupted, the next poll plans the rest.
async fn apply(
    state: &State,
    config: &SourceConfig,
    tip: &Tip,
    relation: Option<Relation>,
    warnings: Vec<Diagnostic>,
    desired: DesiredTip,
    rules: Option<Vec<Rule>>,
) -> Result<Applied, SubmitError> {
    let file_count = desired.files.len() as u64;
    let now = state.now();
    let plan = state.read(|world| {
        let source = world.source(&config.name)?;
        Some(plan(source, desired, world, now))
    });
    let TipPlan {
        activate,
        retire,
        hold,
        stale,
        verdicts,
        standing,
    } = plan.unwrap_or_default();
    for stale in stale
        .iter()
        .filter(|stale| stale.commit == tip.commit.to_string())
    {
        if let Some(first) = stale.diagnostics.first() {
            let place = format!("{}:{}:{}", first.file, first.line, first.column);
            tracing::warn!(source = %config.name, place, problem = first.message, "a workflow file is invalid");
        }
    }
    // Submit them together, so that a large push shares commits. A file that cannot be stored does not stop the other files.
    let activations = activate
        .into_iter()
        .map(|activate| make_active(state, config, activate));
    let failures: Vec<Failure> = stream::iter(activations)
        .buffered(AT_ONCE)
        .filter_map(|done| async move { done.err() })
        .collect()
        .await;
    stream::iter(hold)
        .map(|hold| state.submit(hold))
        .buffered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    for retire in retire {
        configured::retire(state, retire).await?;
    }
    if let Some(first) = failures.first() {
        let record = RecordApplyFailure {
            name: config.name.clone(),
            file: first.file.clone(),
            message: first.message.clone(),
            files: failures.len() as u64,
        };
        state.submit(record).await?;
        return Ok(Applied::Partly);
    }
    let (history_rewritten, skipped, more_skipped) = match relation {
        None | Some(Relation::Same) => (false, Vec::new(), false),
        Some(Relation::Descendant { skipped, more }) => (false, skipped, more),
        Some(Relation::Rewritten) => {
            tracing::warn!(source = %config.name, commit = %tip.commit, "the history of the repository was rewritten: the previous tip is not an ancestor of this one");
            (true, Vec::new(), false)
        }
    };
    let record = RecordTip {
        name: config.name.clone(),
        commit: tip.commit.to_string(),
        summary: tip.summary.clone(),
        author: tip.author.clone(),
        history_rewritten,
        skipped: skipped.iter().map(ToString::to_string).collect(),
        more_skipped,
        files: verdicts,
        stale_files: stale,
        rules,
        warnings,
        file_count,
        standing,
        default_reference: tip.default_reference.clone(),
    };
    state.submit(record).await?;
    log_standing(state, config);
    Ok(Applied::Whole)
}

/// Logs why the workflows of a tip are not active, or that it has no workflows.
fn log_standing(state: &State, config: &SourceConfig) {
    let source = state.read(|world| world.source(&config.name).cloned());
    let conditions = source.iter().flat_map(|source| &source.conditions);
    for condition in conditions.filter(|one| one.kind == SourceConditionKind::Active) {
        let is_whole = matches!(
            condition.reason,
            Reason::TipActive | Reason::TipPartlyActive { .. }
        );
        if !is_whole {
            tracing::warn!(source = %config.name, message = %condition.reason, "no workflow of the tip is active");
        }
    }
}

enum Applied {
    Whole,
    /// Some files could not be stored. The source's record contains the first file and the error.
    Partly,
}

struct Failure {
    file: String,
    message: String,
}

async fn make_active(
    state: &State,
    config: &SourceConfig,
    activate: Activate,
) -> Result<(), Failure> {
    tracing::info!(source = %config.name, workflow = activate.name, commit = activate.commit, "a workflow changes");
    let file = activate.file.clone();
    let failed = |error: &dyn std::error::Error| {
        let message = error_chain(error);
        tracing::warn!(source = %config.name, file, message, "a workflow file cannot be made active");
        Failure {
            file: file.clone(),
            message,
        }
    };
    state
        .activate(activate)
        .await
        .map_err(|error| failed(&error))
}

fn failed(config: &SourceConfig, error: &dyn std::error::Error) -> PollFailed {
    tracing::warn!(source = %config.name, error = error_chain(error), "the changes of the repository cannot be applied");
    PollFailed
}
