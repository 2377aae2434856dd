//! One look at a repository: fetch, read, plan, apply, record.

use bytes::Bytes;
use model::decide::{RecordLook, RecordTip};
use model::plan::{DesiredTip, TipPlan, plan};
use model::{Reason, Status};
use state::{State, error_chain};

use crate::git::{CommitId, FetchError, Mirror, ReadLimits, Relation, Snapshot, Tip};
use crate::source::desired::desired;
use crate::source::{SourceConfig, configure_one};

/// The look did not come to its end; what happened is recorded or logged, and it is tried again.
pub(crate) struct LookFailed;

/// Looks once. `applied` is the commit whose files were applied last, and whole, by this process: the first look after
/// a start or a failure always applies, so that a half-done one is finished.
pub(crate) async fn look(
    state: &State,
    config: &SourceConfig,
    mirror: &Mirror,
    applied: &mut Option<CommitId>,
) -> Result<(), LookFailed> {
    configure_one(state, config)
        .await
        .map_err(|error| failed(config, &error))?;
    let tip = match fetch(config, mirror).await {
        Ok(tip) => tip,
        Err(error) => return record_failure(state, config, &error).await,
    };
    if *applied == Some(tip.commit) {
        return record_look(state, config, Status::True, Reason::Fetched).await;
    }
    *applied = None;
    let (relation, snapshot) = match read(state, config, mirror, &tip).await {
        Ok(read) => read,
        Err(message) => return record_unreadable(state, config, message).await,
    };
    let folder_missing = snapshot.folder_missing;
    let desired = match desired(state, config, &tip, snapshot).await {
        Ok(desired) => desired,
        Err(message) => return record_unreadable(state, config, message).await,
    };
    apply(state, config, &tip, relation, folder_missing, desired)
        .await
        .map_err(|error| failed(config, &*error))?;
    *applied = Some(tip.commit);
    Ok(())
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
) -> Result<(), LookFailed> {
    if let FetchError::Empty { .. } = error {
        return record_look(state, config, Status::True, Reason::EmptyRepository).await;
    }
    let mut message = error_chain(error);
    if let Some(hint) = error.hint() {
        message.push_str("; ");
        message.push_str(&hint);
    }
    record_unreadable(state, config, message).await
}

/// Always a failed look.
async fn record_unreadable(
    state: &State,
    config: &SourceConfig,
    message: String,
) -> Result<(), LookFailed> {
    tracing::warn!(source = %config.name, message, "the repository cannot be read");
    let reason = Reason::FetchFailed { message };
    record_look(state, config, Status::False, reason).await?;
    Err(LookFailed)
}

async fn record_look(
    state: &State,
    config: &SourceConfig,
    status: Status,
    reason: Reason,
) -> Result<(), LookFailed> {
    state
        .submit(RecordLook {
            name: config.name.clone(),
            status,
            reason,
        })
        .await
        .map_err(|error| failed(config, &error))
}

/// How the tip relates to the one before, and its files.
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

/// Makes what the tip asks for true, step by step, and records the tip last: whatever stops this half-way, the next look
/// plans the rest.
async fn apply(
    state: &State,
    config: &SourceConfig,
    tip: &Tip,
    relation: Option<Relation>,
    folder_missing: bool,
    desired: DesiredTip,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let file_count = desired.files.len() as u64;
    let now = state.now();
    let plan = state.read(|world| {
        let source = world.source(&config.name)?;
        Some(plan(source, desired, world, now))
    });
    let TipPlan {
        activate,
        retire,
        stale,
        verdicts,
    } = plan.unwrap_or_default();
    if folder_missing {
        tracing::warn!(source = %config.name, folder = config.folder, "the folder does not exist at the tip; nothing is removed");
    }
    for stale in stale
        .iter()
        .filter(|stale| stale.commit == tip.commit.to_string())
    {
        if let Some(first) = stale.diagnostics.first() {
            let place = format!("{}:{}:{}", first.file, first.line, first.column);
            tracing::warn!(source = %config.name, place, problem = first.message, "a workflow file is invalid");
        }
    }
    for activate in activate {
        tracing::info!(source = %config.name, workflow = activate.name, commit = activate.commit, "a workflow changes");
        if activate.is_object() {
            let text = Bytes::copy_from_slice(activate.text.as_bytes());
            state.store_payload(text).await?;
        }
        state.submit(activate).await?;
    }
    for retire in retire {
        state.submit(retire).await?;
    }
    let (history_rewritten, skipped, more_skipped) = match relation {
        None | Some(Relation::Same) => (false, Vec::new(), false),
        Some(Relation::Descendant { skipped, more }) => (false, skipped, more),
        Some(Relation::Rewritten) => (true, Vec::new(), false),
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
        file_count,
        folder_missing,
    };
    Ok(state.submit(record).await?)
}

fn failed(config: &SourceConfig, error: &dyn std::error::Error) -> LookFailed {
    tracing::warn!(source = %config.name, error = error_chain(error), "what the repository asks for cannot be applied");
    LookFailed
}
