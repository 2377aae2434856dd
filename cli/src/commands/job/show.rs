//! The output of `everscan job show`.

use std::collections::BTreeMap;

use wire::{Artifact, ArtifactProgress, CallbackCause, Job, LogSummary, Step};

use crate::commands::notify;
use crate::commands::scan::range;
use crate::follow::cut_at;
use crate::limits;
use crate::table::{Fields, Table, bytes, ids, short_commit, time, time_or_dash};

/// The interactions that started a job.
fn callback(cause: &CallbackCause) -> String {
    let planted = match &cause.job {
        Some(job) => format!(", of a name that job {job} has made"),
        None => String::new(),
    };
    let range = range(cause.first, cause.last, cause.count);
    format!(
        "{range} of {} ({}){planted}",
        cause.name,
        cause.types.join(", ")
    )
}

pub(super) fn text(job: &Job) -> String {
    let revision = &job.revision;
    let mut fields = Fields::new()
        .add("job", job.id.to_string())
        .add(
            "workflow",
            format!("{}/{}", job.workflow.source, job.workflow.name),
        )
        .add("scan", &job.scan)
        .add(
            "revision",
            format!("{} ({})", revision.number, short_commit(&revision.commit)),
        )
        .add("state", job.state.as_str())
        .add(
            "reason",
            format!(
                "{} ({}, by {})",
                job.reason.message, job.reason.code, job.reason.actor
            ),
        )
        .add_some("waiting", job.waiting.as_ref().map(|why| &why.message))
        .add_some("artifact", job.storing.as_ref().map(storing))
        .add("trigger", job.trigger.as_str())
        .add_some("dispatched by", job.dispatched_by.as_ref())
        .add_some("rerun of", job.rerun_of.map(|job| job.to_string()))
        .add_some(
            "files of",
            job.source
                .as_ref()
                .map(|source| format!("{} ({})", source.commit, source.reference)),
        )
        .add_some("retry of", job.retry_of.map(|job| job.to_string()))
        .add_some("attempt", attempt(job))
        .add_some("not before", job.not_before.as_ref().map(time))
        .add_some("because of", ids(&job.causes))
        .add_some("callback", job.callback.as_ref().map(callback))
        .add_some("hops", (job.hops > 0).then(|| job.hops.to_string()))
        .add_some("retried by", job.retried_by.map(|job| job.to_string()))
        .add_some("runner", job.runner.as_ref().map(|runner| &runner.name))
        .add("created", time(&job.created_at))
        .add_some("started", job.started_at.as_ref().map(time))
        .add_some("finished", job.finished_at.as_ref().map(time))
        .add("log records", log(&job.log));
    for (key, value) in &job.inputs {
        fields = fields.add(&format!("input {key}"), shortened(&value.to_string()));
    }
    let mut text = notify::sent(fields, &job.messages).text();
    for section in [
        steps(&job.steps),
        artifacts(&job.artifacts),
        left_out(&job.artifacts),
        outputs(&job.outputs),
    ]
    .into_iter()
    .flatten()
    {
        text.push('\n');
        text.push_str(&section);
    }
    text
}

/// A long input is cut.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(limits::SHOWN_INPUT) {
        None => value.to_owned(),
        Some((end, _)) => format!(
            "{}… ({} characters; all of it with --output json)",
            &value[..end],
            value.chars().count()
        ),
    }
}

/// The progress of the artifact that is being stored.
fn storing(artifact: &ArtifactProgress) -> String {
    format!(
        "{} {}, {} of {}",
        artifact.phase.as_str(),
        artifact.name,
        bytes(artifact.bytes),
        bytes(artifact.of)
    )
}

fn attempt(job: &Job) -> Option<String> {
    let (attempt, attempts) = job.attempt.zip(job.attempts)?;
    Some(format!("{attempt} of {attempts}"))
}

/// The number of records, and whether the log was cut.
fn log(log: &LogSummary) -> String {
    match &log.cut {
        None => log.records.to_string(),
        Some(cut) => format!("{}, {}", log.records, cut_at(cut)),
    }
}

fn steps(steps: &[Step]) -> Option<String> {
    let mut table = Table::new(&["STEP", "STATUS", "EXIT", "STARTED", "FINISHED", "ERROR"]);
    for step in steps {
        // Counted from 1, as in `--step` and headings.
        let number = u64::from(step.index) + 1;
        let name = step.name.iter().map(|name| format!(" {name}"));
        table.row([
            format!("{number}{}", name.collect::<String>()),
            step.status.as_str().to_owned(),
            step.exit_code
                .map_or_else(|| "-".to_owned(), |code| code.to_string()),
            time_or_dash(step.started_at.as_ref()),
            time_or_dash(step.finished_at.as_ref()),
            step.error.clone().unwrap_or_default(),
        ]);
    }
    (!table.is_empty()).then(|| table.text())
}

fn outputs(outputs: &BTreeMap<String, String>) -> Option<String> {
    let mut table = Table::new(&["OUTPUT", "VALUE"]);
    for (key, value) in outputs {
        table.row([key.clone(), value.clone()]);
    }
    (!table.is_empty()).then(|| table.text())
}

/// When an artifact expires, or why it is gone.
fn kept_until(artifact: &Artifact) -> String {
    match &artifact.removed {
        Some(removed) => format!(
            "removed {}: {}, by {}",
            time(&removed.at),
            removed.message,
            removed.actor
        ),
        None => time_or_dash(artifact.expires_at.as_ref()),
    }
}

fn left_out(artifacts: &[Artifact]) -> Option<String> {
    let mut table = Table::new(&["LEFT OUT OF", "FILE", "WHY"]);
    for artifact in artifacts {
        let Some(left_out) = &artifact.left_out else {
            continue;
        };
        for file in &left_out.files {
            table.row([
                artifact.name.clone(),
                file.name.clone(),
                file.reason.clone(),
            ]);
        }
        if left_out.more > 0 {
            let more = format!("{} more", left_out.more);
            table.row([artifact.name.clone(), more, String::new()]);
        }
    }
    (!table.is_empty()).then(|| table.text())
}

pub(super) fn artifacts(artifacts: &[Artifact]) -> Option<String> {
    let mut table = Table::new(&["ARTIFACT", "SIZE", "CREATED", "EXPIRES", "ID"]);
    for artifact in artifacts {
        table.row([
            artifact.name.clone(),
            bytes(artifact.size),
            time(&artifact.created_at),
            kept_until(artifact),
            artifact.id.to_string(),
        ]);
    }
    (!table.is_empty()).then(|| table.text())
}
