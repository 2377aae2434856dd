//! Converts the domain's types to the wire's by hand, so that renaming a field inside cannot change the contract.

use model::blob::LinkUse;
use model::{
    Artifact, EndState, Inputs, Job, JobId, JobState, LeftOut, LeftOutFile, ProjectId, Projects,
    Reason, RevisionRecord, RevisionRef, Runner, Scope, Seen, Slots, Step, StepOutcome, StepStatus,
    SuspendedPart, Suspension, Timestamp, Token, Trigger, WorkflowRecord, WorkflowRef,
    WorkflowStatus,
};
use reconciler::{ArtifactPhase, ArtifactProgress};
use state::{DamagedLines, LogRecord};
use std::collections::BTreeMap;
use workflow::{InputValue, Severity};

use crate::convert_source;

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
        trigger: trigger(job.trigger),
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
        started_at: run.map(|run| run.started_at),
        finished_at: end.map(|end| end.at),
        runner: runner_ref(job),
        steps: steps(job),
        artifacts: run
            .map(|run| run.artifacts.iter().map(artifact).collect())
            .unwrap_or_default(),
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
        phase: match artifact.phase {
            ArtifactPhase::Packing => wire::ArtifactPhase::Packing,
            ArtifactPhase::Uploading => wire::ArtifactPhase::Uploading,
        },
        bytes: artifact.bytes,
        of: artifact.of,
    }
}

pub(crate) fn told_progress(artifact: wire::ArtifactProgress) -> ArtifactProgress {
    ArtifactProgress {
        name: artifact.name,
        phase: match artifact.phase {
            wire::ArtifactPhase::Packing => ArtifactPhase::Packing,
            wire::ArtifactPhase::Uploading => ArtifactPhase::Uploading,
        },
        bytes: artifact.bytes,
        of: artifact.of,
    }
}

fn dispatched_by(job: &Job) -> Option<String> {
    match (job.trigger, job.retry_of) {
        (Trigger::Dispatch, None) => Some(job.actor.to_string()),
        // The daemon made it. The first job of its chain says who dispatched that one.
        (Trigger::Dispatch, Some(_)) | (Trigger::Cron | Trigger::Expr, _) => None,
    }
}

/// Who brought a job into its state.
fn actor(job: &Job) -> String {
    match (job.state.end(), job.state.run()) {
        (Some(end), _) => end.actor.to_string(),
        (None, Some(run)) => format!("runner {}", run.runner.name),
        (None, None) => job.actor.to_string(),
    }
}

pub(crate) fn workflow_ref(workflow: &WorkflowRef) -> wire::WorkflowRef {
    wire::WorkflowRef {
        id: workflow.id.uuid(),
        source: workflow.source.to_string(),
        name: workflow.name.clone(),
    }
}

pub(crate) fn runner_ref(job: &Job) -> Option<wire::RunnerRef> {
    let runner = &job.state.run()?.runner;
    Some(wire::RunnerRef {
        id: runner.id.uuid(),
        name: runner.name.clone(),
    })
}

/// The steps of a job that were reported.
pub(crate) fn steps(job: &Job) -> Vec<wire::Step> {
    let run = job.state.run().into_iter();
    run.flat_map(|run| run.steps.iter().map(step)).collect()
}

pub(crate) fn damaged(damaged: Vec<DamagedLines>) -> Vec<wire::DamagedLines> {
    let damaged = damaged.into_iter();
    damaged
        .map(|DamagedLines { file, lines }| wire::DamagedLines { file, lines })
        .collect()
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
        stream: match record.stream {
            state::Stream::Stdout => wire::Stream::Stdout,
            state::Stream::Stderr => wire::Stream::Stderr,
            state::Stream::Runner => wire::Stream::Runner,
        },
        text: record.text,
    };
    wire::LogRecord { n, record }
}

/// Where the log of a job was cut, if it was.
pub(crate) fn log_cut(job: &Job) -> Option<wire::LogCut> {
    let model::LogCut { record, limit } = job.state.run()?.log_cut?;
    Some(wire::LogCut { record, limit })
}

pub(crate) fn explanation(reason: &Reason) -> wire::Explanation {
    let jobs: &[JobId] = if let Reason::RunnersBusy { jobs, .. } = reason {
        jobs
    } else {
        &[]
    };
    wire::Explanation {
        code: reason.code().to_owned(),
        message: reason.to_string(),
        jobs: jobs.iter().map(|job| job.uuid()).collect(),
    }
}

pub(crate) fn revision_ref(revision: &RevisionRef) -> wire::RevisionRef {
    wire::RevisionRef {
        id: revision.id.uuid(),
        number: revision.number,
        commit: revision.commit.clone(),
    }
}

/// The inputs, if the job's record holds them and no other file need be read.
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

pub(crate) const fn end_state(state: EndState) -> wire::JobState {
    match state {
        EndState::Succeeded => wire::JobState::Succeeded,
        EndState::Failed => wire::JobState::Failed,
        EndState::Cancelled => wire::JobState::Cancelled,
        EndState::Skipped => wire::JobState::Skipped,
    }
}

pub(crate) const fn trigger(trigger: Trigger) -> wire::Trigger {
    match trigger {
        Trigger::Dispatch => wire::Trigger::Dispatch,
        Trigger::Cron => wire::Trigger::Cron,
        Trigger::Expr => wire::Trigger::Expr,
    }
}

pub(crate) const fn scope(scope: Scope) -> wire::Scope {
    match scope {
        Scope::ProjectRead => wire::Scope::ProjectRead,
        Scope::ProjectWrite => wire::Scope::ProjectWrite,
        Scope::WorkflowRead => wire::Scope::WorkflowRead,
        Scope::WorkflowWrite => wire::Scope::WorkflowWrite,
        Scope::JobRead => wire::Scope::JobRead,
        Scope::JobWrite => wire::Scope::JobWrite,
        Scope::Dispatch => wire::Scope::Dispatch,
        Scope::BlobRead => wire::Scope::BlobRead,
        Scope::BlobWrite => wire::Scope::BlobWrite,
        Scope::SecretWrite => wire::Scope::SecretWrite,
        Scope::RunnerRead => wire::Scope::RunnerRead,
        Scope::RunnerWrite => wire::Scope::RunnerWrite,
        Scope::TokenWrite => wire::Scope::TokenWrite,
        Scope::Metrics => wire::Scope::Metrics,
        Scope::Admin => wire::Scope::Admin,
    }
}

fn input(value: &InputValue) -> wire::Input {
    match value {
        InputValue::Bool(value) => wire::Input::Bool(*value),
        InputValue::Number(number) => wire::Input::Number((*number).into()),
        InputValue::Text(text) => wire::Input::Text(text.clone()),
    }
}

fn step(step: &Step) -> wire::Step {
    wire::Step {
        index: step.index,
        name: step.name.clone(),
        status: match step.status {
            StepStatus::Running => wire::StepStatus::Running,
            StepStatus::Succeeded => wire::StepStatus::Succeeded,
            StepStatus::Failed => wire::StepStatus::Failed,
            StepStatus::Cancelled => wire::StepStatus::Cancelled,
            StepStatus::Skipped => wire::StepStatus::Skipped,
        },
        outcome: step.outcome.map(|outcome| match outcome {
            StepOutcome::Succeeded => wire::StepOutcome::Succeeded,
            StepOutcome::Failed => wire::StepOutcome::Failed,
            StepOutcome::Cancelled => wire::StepOutcome::Cancelled,
            StepOutcome::Skipped => wire::StepOutcome::Skipped,
        }),
        exit_code: step.exit_code,
        error: step.error.clone(),
        started_at: step.started_at,
        finished_at: step.finished_at,
    }
}

/// Converts a worker's report on a step.
pub(crate) fn reported_step(report: wire::Step) -> Step {
    Step {
        index: report.index,
        // The definition says it.
        name: None,
        status: match report.status {
            wire::StepStatus::Running => StepStatus::Running,
            wire::StepStatus::Succeeded => StepStatus::Succeeded,
            wire::StepStatus::Failed => StepStatus::Failed,
            wire::StepStatus::Cancelled => StepStatus::Cancelled,
            wire::StepStatus::Skipped => StepStatus::Skipped,
        },
        outcome: report.outcome.map(|outcome| match outcome {
            wire::StepOutcome::Succeeded => StepOutcome::Succeeded,
            wire::StepOutcome::Failed => StepOutcome::Failed,
            wire::StepOutcome::Cancelled => StepOutcome::Cancelled,
            wire::StepOutcome::Skipped => StepOutcome::Skipped,
        }),
        exit_code: report.exit_code,
        error: report.error,
        started_at: report.started_at,
        finished_at: report.finished_at,
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

pub(crate) fn diagnostic(diagnostic: &workflow::Diagnostic) -> wire::Diagnostic {
    wire::Diagnostic {
        file: diagnostic.file.clone(),
        line: diagnostic.line,
        column: diagnostic.column,
        end_line: diagnostic.end_line,
        end_column: diagnostic.end_column,
        severity: match diagnostic.severity {
            Severity::Error => wire::Severity::Error,
            Severity::Warning => wire::Severity::Warning,
        },
        code: diagnostic.code.name().to_owned(),
        message: diagnostic.message.clone(),
        hint: diagnostic.hint.clone(),
    }
}

/// A workflow. Its scans are unknown if its revision could not be read.
pub(crate) fn workflow(seen: Seen<'_>, record: &WorkflowRecord) -> wire::Workflow {
    let WorkflowRecord {
        id,
        source,
        name,
        status,
        ..
    } = record;
    let newest = seen.revision(record);
    let definition = newest.map(|newest| &newest.definition);
    let stale = seen.stale_file(record);
    let own = seen.latest_suspension(*id, None).map(|latest| &**latest);
    let state = match (status, definition) {
        (WorkflowStatus::Retired { .. }, _) => "retired",
        (WorkflowStatus::Active, Some(_)) => "active",
        (WorkflowStatus::Active, None) => "unreadable",
    };
    wire::Workflow {
        id: id.uuid(),
        source: source.to_string(),
        name: name.clone(),
        title: definition.and_then(|definition| definition.name.clone()),
        description: definition.and_then(|definition| definition.description.clone()),
        state: state.to_owned(),
        retired: seen.retirement(record).as_ref().map(explanation),
        suspended: own.and_then(suspension),
        resumed: own.and_then(resumption),
        suspended_scans: definition
            .into_iter()
            .flat_map(|definition| definition.scans())
            .filter(|scan| {
                let latest = seen.latest_suspension(*id, Some(&scan.name));
                latest.is_some_and(|latest| latest.is_in_force())
            })
            .map(|scan| scan.name.to_string())
            .collect(),
        revision: revision(&record.revision, newest.map(|newest| &newest.record)),
        scans: definition
            .into_iter()
            .flat_map(|definition| definition.scans().map(|it| scan(definition, it)))
            .collect(),
        warnings: newest
            .into_iter()
            .flat_map(|newest| newest.warnings.iter().map(diagnostic))
            .collect(),
        stale: stale.map(|stale| convert_source::stale_file(seen, stale)),
    }
}

/// A suspension, while it is in force.
pub(crate) fn suspension(latest: &Suspension) -> Option<wire::Suspension> {
    latest.is_in_force().then(|| wire::Suspension {
        part: match latest.part() {
            SuspendedPart::Workflow => wire::SuspendedPart::Workflow,
            SuspendedPart::Scan => wire::SuspendedPart::Scan,
        },
        since: latest.since,
        by: latest.by.to_string(),
        reason: latest.reason.clone(),
    })
}

/// The end of a suspension, once there is one.
pub(crate) fn resumption(latest: &Suspension) -> Option<wire::Resumption> {
    let resumed = latest.resumed.as_ref()?;
    Some(wire::Resumption {
        at: resumed.at,
        by: resumed.by.to_string(),
        reason: resumed.reason.clone(),
    })
}

pub(crate) fn revision(reference: &RevisionRef, record: Option<&RevisionRecord>) -> wire::Revision {
    wire::Revision {
        id: reference.id.uuid(),
        number: reference.number,
        commit: reference.commit.clone(),
        activated_at: record.map(|record| record.activated_at),
        sha256: record.map(|record| record.text.sha256.clone()),
    }
}

pub(crate) fn scan(workflow: &workflow::Workflow, scan: &workflow::Scan) -> wire::Scan {
    let reads = workflow.reads(scan).into_iter();
    wire::Scan {
        name: scan.name.to_string(),
        reads: reads.map(reading).collect(),
        cron: scan.on.cron.as_ref().map(|cron| cron.source().to_owned()),
        timezone: scan
            .on
            .cron
            .as_ref()
            .map(|_| scan.on.timezone.name().to_owned()),
        expr: scan.on.expr.as_ref().map(|expr| expr.source().to_owned()),
        inputs: scan
            .on
            .dispatch
            .as_ref()
            .map(|dispatch| dispatch.inputs.iter().map(scan_input).collect()),
        artifacts: scan
            .artifacts
            .iter()
            .map(|artifact| artifact.name.clone())
            .collect(),
        steps: u32::try_from(scan.steps.len()).unwrap_or(u32::MAX),
        runs_on: scan.runs_on.clone(),
        checkout: scan.checkout.as_ref().map(workflow::Checkout::shown),
        retry: scan.retry.map(|retry| wire::ScanRetry {
            attempts: retry.attempts,
            backoff: workflow::format_duration(retry.backoff),
        }),
    }
}

fn reading(reading: workflow::Reading) -> wire::Reading {
    wire::Reading {
        scan: reading.scan.to_string(),
        how: match reading.how {
            workflow::How::Starts => wire::How::Starts,
            workflow::How::Reads => wire::How::Reads,
        },
    }
}

fn scan_input(declared: &workflow::Input) -> wire::ScanInput {
    wire::ScanInput {
        key: declared.key.clone(),
        kind: declared.kind.name().to_owned(),
        options: declared.options.clone(),
        required: declared.required,
        default: declared.default.to_string(),
    }
}

pub(crate) fn token(seen: Seen<'_>, token: &Token, now: Timestamp) -> wire::Token {
    let name = |project: &ProjectId| match seen.source_of(*project) {
        Some(source) => source.name.to_string(),
        None => project.to_string(),
    };
    wire::Token {
        id: token.id.uuid(),
        name: token.name.clone(),
        scopes: token
            .scopes
            .iter()
            .map(|scope| scope.name().to_owned())
            .collect(),
        projects: match &token.projects {
            Projects::All => None,
            Projects::Only(projects) => Some(projects.iter().map(name).collect()),
        },
        created_at: token.created_at,
        expires_at: token.expires_at,
        expires_soon: token.expires_soon(now),
        former_expires_at: token.former.as_ref().map(|former| former.expires_at),
        last_used: token.last_used,
    }
}

/// A runner, with its slots without those jobs that are over.
pub(crate) fn runner(
    seen: Seen<'_>,
    runner: &Runner,
    slots: &Slots,
    heard_at: Option<Timestamp>,
    connected: bool,
) -> wire::Runner {
    wire::Runner {
        id: runner.id.uuid(),
        name: runner.name.clone(),
        labels: runner.labels.clone(),
        exclusive: runner.exclusive,
        capacity: runner.capacity,
        version: runner.version.clone(),
        capabilities: runner.capabilities.clone(),
        registered_at: runner.registered_at,
        heard_at,
        connected,
        running: seen
            .running_on(runner.id)
            .map(|job| job.id.uuid())
            .collect(),
        taken: slots.taken(),
        jobs: seen
            .running_on(runner.id)
            .map(|job| runner_job(job))
            .collect(),
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

pub(crate) fn blob(blob: &model::Blob) -> wire::Blob {
    wire::Blob {
        path: blob.path.to_string(),
        size: blob.size,
        sha256: blob.sha256.clone(),
        modified_at: blob.modified_at,
        modified_by: blob.by.to_string(),
        expires_at: blob.expires_at,
    }
}

pub(crate) fn blob_link(link: &model::BlobLink) -> wire::BlobLink {
    wire::BlobLink {
        id: link.id.uuid(),
        path: link.path.to_string(),
        use_for: match link.use_for {
            LinkUse::Get => wire::BlobLinkUse::Get,
            LinkUse::Put => wire::BlobLinkUse::Put,
        },
        created_at: link.created_at,
        expires_at: link.expires_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_the_same_names_and_order_on_the_wire() {
        let named = Scope::ALL.iter().map(|it| (scope(*it), it.name()));
        let expected = wire::Scope::ALL.iter().map(|it| (*it, it.as_str()));
        assert!(named.eq(expected));
    }
}
