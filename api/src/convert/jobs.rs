//! Jobs, their steps, logs and artifacts.

use std::collections::BTreeMap;

use model::{Artifact, Inputs, Job, JobId, JobState, LeftOut, LeftOutFile, Reason, Step, Trigger};
use reconciler::ArtifactProgress;
use state::LogRecord;
use workflow::InputValue;

use super::{Convert, explanation, revision_ref, workflow_ref};

pub(crate) fn job(
    job: &Job,
    inputs: &BTreeMap<String, InputValue>,
    log_records: u64,
    waiting: Option<&Reason>,
    storing: Option<&ArtifactProgress>,
) -> wire::Job {
    let run = job.state.run();
    let end = job.state.end();
    let reason = job.reason();
    wire::Job {
        id: job.id.uuid(),
        workflow: workflow_ref(&job.workflow),
        revision: revision_ref(&job.revision),
        scan: job.scan.to_string(),
        state: state(&job.state),
        trigger: job.trigger.converted(),
        reason: wire::JobReason {
            code: reason.code().to_owned(),
            message: reason.to_string(),
            actor: actor(job),
        },
        waiting: waiting.map(explanation),
        inputs: inputs
            .iter()
            .map(|(key, value)| (key.clone(), input(value)))
            .collect(),
        created_at: job.created_at,
        dispatched_by: dispatched_by(job),
        rerun_of: job.rerun_of.map(JobId::uuid),
        source: job.source.as_ref().map(|source| wire::JobSource {
            commit: source.commit.clone(),
            reference: source.reference.clone(),
        }),
        retry_of: job.retry_of.map(|retry| retry.job.uuid()),
        retried_by: job.retried_by.map(JobId::uuid),
        attempt: job.retry_of.map(|retry| retry.attempt),
        attempts: job.retry_of.map(|retry| retry.attempts),
        not_before: job.not_before,
        causes: job.causes.iter().map(|cause| cause.uuid()).collect(),
        hops: job.hops.count,
        callback: job.callback.as_deref().map(|cause| wire::CallbackCause {
            server: cause.server.to_string(),
            name: cause.name.to_string(),
            first: cause.first,
            last: cause.last,
            count: cause.count,
            types: cause.summary().types,
            job: cause.job.map(JobId::uuid),
        }),
        started_at: run.map(|run| run.started_at),
        finished_at: end.map(|end| end.at),
        runner: runner_ref(job),
        steps: steps(job),
        artifacts: run
            .map(|run| run.artifacts.iter().map(artifact).collect())
            .unwrap_or_default(),
        messages: Vec::new(),
        storing: storing.map(progress),
        outputs: run.map(|run| run.outputs.clone()).unwrap_or_default(),
        log: wire::LogSummary {
            records: log_records,
            cut: log_cut(job),
        },
    }
}

fn progress(artifact: &ArtifactProgress) -> wire::ArtifactProgress {
    wire::ArtifactProgress {
        name: artifact.name.clone(),
        phase: artifact.phase.converted(),
        bytes: artifact.bytes,
        of: artifact.of,
    }
}

pub(crate) fn reported_progress(artifact: wire::ArtifactProgress) -> ArtifactProgress {
    ArtifactProgress {
        name: artifact.name,
        phase: artifact.phase.converted(),
        bytes: artifact.bytes,
        of: artifact.of,
    }
}

fn dispatched_by(job: &Job) -> Option<String> {
    match (job.trigger, job.retry_of) {
        (Trigger::Dispatch, None) => Some(job.actor.to_string()),
        // The daemon made the retry. The first job of the chain has the actor of the dispatch.
        (Trigger::Dispatch, Some(_)) | (Trigger::Cron | Trigger::Expr | Trigger::Callback, _) => {
            None
        }
    }
}

fn actor(job: &Job) -> String {
    match (job.state.end(), job.state.run()) {
        (Some(end), _) => end.actor.to_string(),
        (None, Some(run)) => format!("runner {}", run.runner.name),
        (None, None) => job.actor.to_string(),
    }
}

pub(crate) fn runner_ref(job: &Job) -> Option<wire::RunnerRef> {
    let runner = &job.state.run()?.runner;
    Some(wire::RunnerRef {
        id: runner.id.uuid(),
        name: runner.name.clone(),
    })
}

pub(crate) fn steps(job: &Job) -> Vec<wire::Step> {
    let run = job.state.run().into_iter();
    run.flat_map(|run| run.steps.iter().map(step)).collect()
}

fn step(step: &Step) -> wire::Step {
    wire::Step {
        index: step.index,
        name: step.name.clone(),
        status: step.status.converted(),
        outcome: step.outcome.map(Convert::converted),
        exit_code: step.exit_code,
        error: step.error.clone(),
        started_at: step.started_at,
        finished_at: step.finished_at,
    }
}

pub(crate) fn reported_step(report: wire::Step) -> Step {
    Step {
        index: report.index,
        // The definition has the name.
        name: None,
        status: report.status.converted(),
        outcome: report.outcome.map(Convert::converted),
        exit_code: report.exit_code,
        error: report.error,
        started_at: report.started_at,
        finished_at: report.finished_at,
    }
}

pub(crate) fn log_matches(found: state::LogMatches) -> wire::LogMatches {
    let matches = found.matches.into_iter();
    wire::LogMatches {
        total: found.total,
        matches: matches.map(log_record).collect(),
        next_cursor: found.next.map(|next| next.to_string()),
        records: found.records,
    }
}

fn log_record(LogRecord { n, record }: LogRecord) -> wire::LogRecord {
    let record = wire::NewLogRecord {
        at: record.at,
        step: record.step,
        stream: record.stream.converted(),
        text: record.text,
    };
    wire::LogRecord { n, record }
}

pub(crate) fn log_cut(job: &Job) -> Option<wire::LogCut> {
    let model::LogCut { record, limit } = job.state.run()?.log_cut?;
    Some(wire::LogCut { record, limit })
}

/// The inputs, if they are stored in the job's record.
pub(crate) fn inline_inputs(job: &Job) -> Option<&BTreeMap<String, InputValue>> {
    match &job.inputs {
        Inputs::Inline(inputs) => Some(inputs),
        Inputs::Object { .. } | Inputs::Defaults => None,
    }
}

pub(crate) const fn state(state: &JobState) -> wire::JobState {
    match state {
        JobState::Scheduled => wire::JobState::Scheduled,
        JobState::Running { .. } => wire::JobState::Running,
        JobState::Succeeded { .. } => wire::JobState::Succeeded,
        JobState::Failed { .. } => wire::JobState::Failed,
        JobState::Cancelled { .. } => wire::JobState::Cancelled,
        JobState::Skipped { .. } => wire::JobState::Skipped,
    }
}

fn input(value: &InputValue) -> wire::Input {
    match value {
        InputValue::Bool(value) => wire::Input::Bool(*value),
        InputValue::Number(number) => wire::Input::Number((*number).into()),
        InputValue::Text(text) => wire::Input::Text(text.clone()),
    }
}

pub(crate) fn artifact(artifact: &Artifact) -> wire::Artifact {
    wire::Artifact {
        id: artifact.id.uuid(),
        name: artifact.name.clone(),
        size: artifact.size,
        sha256: artifact.sha256.clone(),
        content_digest: artifact.content_digest.clone(),
        created_at: artifact.created_at,
        expires_at: artifact.expires_at,
        removed: artifact.removed.as_ref().map(|removed| wire::Removed {
            at: removed.at,
            code: removed.reason.code().to_owned(),
            message: removed.reason.to_string(),
            actor: removed.actor.to_string(),
        }),
        left_out: artifact.left_out.as_ref().map(|left_out| wire::LeftOut {
            files: left_out
                .files
                .iter()
                .map(|file| wire::LeftOutFile {
                    name: file.name.clone(),
                    reason: file.reason.clone(),
                })
                .collect(),
            more: left_out.more,
        }),
    }
}

pub(crate) fn reported_left_out(report: wire::LeftOut) -> LeftOut {
    LeftOut {
        files: report
            .files
            .into_iter()
            .map(|file| LeftOutFile {
                name: file.name,
                reason: file.reason,
            })
            .collect(),
        more: report.more,
    }
}

pub(crate) fn runner_job(job: &Job) -> wire::RunnerJob {
    wire::RunnerJob {
        id: job.id.uuid(),
        workflow: workflow_ref(&job.workflow),
        scan: job.scan.to_string(),
        state: state(&job.state),
        started_at: job.state.run().map(|run| run.started_at),
    }
}
