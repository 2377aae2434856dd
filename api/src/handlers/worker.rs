//! The routes of a worker: resolve, source, timeline, logs, complete.

use model::decide::Failure as JobFailure;
use model::{Job, PlainToken};
use reconciler::{ClaimRequest, Handle, Piece, Resolved, Worker, WorkerError};
use state::{EncodedRecord, NewLogRecord};
use warp::reply::Response;
use wire::{Assignment, CompleteJob, Completed, LogReceipt, ScanArtifact, ScanStep, Timeline};
use workflow::{Context, Scan, Step, Variable};

use crate::access::{bearer, entry};
use crate::body;
use crate::convert::{self, Convert};
use crate::failure::{Failure, unauthorized};
use crate::reply;
use crate::request::Request;

/// Claims the job and returns everything that its execution needs. A repeat gets the same answer.
pub(super) async fn resolve(
    handle: &Handle,
    worker: &Worker,
    request: Request,
) -> Result<Response, Failure> {
    let token = PlainToken::parse_session(bearer(&request.headers)?);
    let token = token.map_err(|_| unauthorized())?.of_job();
    let claim = ClaimRequest {
        job_token: token.hash(),
        audited: entry(&request.arrival, ""),
    };
    let resolved = handle.resolve(worker, Some(claim)).await?;
    assignment(handle, &resolved, &token).map(|assignment| reply::ok(&assignment))
}

/// Everything that the execution of a job needs, with the token for its steps if its claim has stored that.
fn assignment(
    handle: &Handle,
    resolved: &Resolved,
    token: &PlainToken,
) -> Result<Assignment, Failure> {
    let Resolved {
        job,
        revision,
        inputs,
        values,
        next_log_record,
    } = resolved;
    let scan = revision.definition.scan(job.scan.as_str());
    let (Some(scan), Some(run)) = (scan, job.state.run()) else {
        return Err(Failure::new(
            wire::ErrorCode::Internal,
            "the revision of the claimed job does not contain its scan",
        ));
    };
    let references = scan.references();
    let context = Context {
        inputs: inputs.clone(),
        ..run.context.clone()
    }
    .narrowed(&references);
    Ok(Assignment {
        job_id: job.id.uuid(),
        project_id: job.project.uuid(),
        workflow_id: job.workflow.id.uuid(),
        revision_id: job.revision.id.uuid(),
        scan: job.scan.to_string(),
        env: scan
            .inherited_env
            .iter()
            .chain(&scan.env)
            .map(variable)
            .collect(),
        job_token: run
            .job_token
            .as_ref()
            .filter(|stored| stored.hash == token.hash())
            .map(|_| token.reveal().to_owned()),
        callback: run
            .callback
            .and_then(|callback| convert::callbacks::planted(handle, callback)),
        pass_env: scan.pass_env.clone(),
        steps: scan.steps.iter().map(step).collect(),
        checkout: checkout(scan, job),
        artifacts: artifacts(scan),
        context: serde_json::to_value(context).map_err(|error| Failure::internal(&error))?,
        secrets: values
            .secrets
            .iter()
            .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
            .collect(),
        missing: values.missing.clone(),
        retries: job.next_attempt(scan).is_some(),
        now: handle.now(),
        expires_at: handle.by_the_clock(run.expires_at),
        deadline: run.deadline.map(|deadline| handle.by_the_clock(deadline)),
        next_log_record: *next_log_record,
    })
}

fn variable(variable: &Variable) -> (String, String) {
    (variable.name.clone(), variable.value.source().to_owned())
}

fn step(step: &Step) -> ScanStep {
    ScanStep {
        name: step.name.clone(),
        run: step.run.source().to_owned(),
        shell: step.shell.clone(),
        condition: step
            .condition
            .as_ref()
            .map(|condition| condition.source().to_owned()),
        allow_failure: step.allow_failure,
        timeout_seconds: step
            .timeout
            .map(|timeout| u64::try_from(timeout.num_seconds()).unwrap_or(0)),
    }
}

fn checkout(scan: &Scan, job: &Job) -> Option<wire::Checkout> {
    let (checkout, source) = (scan.checkout.as_ref()?, job.source.as_ref()?);
    Some(wire::Checkout {
        commit: source.commit.clone(),
        reference: source.reference.clone(),
        paths: checkout.paths().to_vec(),
    })
}

/// Streams the files of the repository that the job needs. The answer breaks off if they cannot be read completely.
pub(super) async fn source(handle: &Handle, worker: &Worker) -> Result<Response, Failure> {
    let mut files = handle.source_files(worker).await?.read();
    let job = worker.job().id;
    Ok(reply::streamed("application/x-tar", async move |pieces| {
        loop {
            match files.recv().await {
                Some(Piece::Bytes(bytes)) => {
                    if pieces.send(bytes).await.is_err() {
                        return;
                    }
                }
                Some(Piece::End) => return,
                Some(Piece::Broken(error)) => {
                    tracing::warn!(%job, error, "files of a repository cannot be read; the response is cut off");
                    pieces.cut_off();
                    return;
                }
                None => {
                    tracing::debug!(%job, "the client stopped reading the files of a repository; the response is cut off");
                    pieces.cut_off();
                    return;
                }
            }
        }
    }))
}

fn artifacts(scan: &Scan) -> Vec<ScanArtifact> {
    scan.artifacts
        .iter()
        .map(|artifact| ScanArtifact {
            name: artifact.name.clone(),
            paths: artifact.paths.clone(),
            condition: artifact
                .condition
                .as_ref()
                .map(|condition| condition.source().to_owned()),
            upload_on: match artifact.upload_on {
                workflow::UploadOn::Success => wire::UploadOn::Success,
                workflow::UploadOn::Failure => wire::UploadOn::Failure,
                workflow::UploadOn::Always => wire::UploadOn::Always,
            },
            strict: artifact.strict,
        })
        .collect()
}

pub(super) async fn timeline(
    handle: &Handle,
    worker: &Worker,
    mut request: Request,
) -> Result<Response, Failure> {
    let report: Timeline = request.body.json(&request.headers).await?;
    let steps = report
        .steps
        .into_iter()
        .map(convert::reported_step)
        .collect();
    let artifact = report.artifact.map(convert::reported_progress);
    handle.report_steps(worker, steps, artifact).await?;
    Ok(reply::empty())
}

/// Appends records. Records that are sent again must be unchanged.
pub(super) async fn append_log(
    handle: &Handle,
    worker: &Worker,
    mut request: Request,
) -> Result<Response, Failure> {
    let from = request
        .query
        .number("from")?
        .ok_or_else(|| Failure::invalid("from", "is needed"))?;
    body::is_json(&request.headers)?;
    let body = request.body.bytes().await?;
    let records = match EncodedRecord::all_canonical(&body) {
        Some(records) => records,
        None => {
            let records: Vec<wire::NewLogRecord> = body::parse_any(&body)?;
            let records: Vec<_> = records.into_iter().map(record).collect();
            EncodedRecord::all(from, &records).map_err(WorkerError::from)?
        }
    };
    let receipt = handle.append_log(worker, from, records).await?;
    Ok(reply::ok(&LogReceipt {
        received: receipt.received,
        durable: receipt.durable,
        full: receipt.cut.is_some(),
    }))
}

pub(super) fn record(record: wire::NewLogRecord) -> NewLogRecord {
    NewLogRecord {
        at: record.at,
        step: record.step,
        stream: record.stream.converted(),
        text: record.text,
    }
}

/// Ends the job. A repeat, or a completion of a job that has already ended, returns how the job ended.
pub(super) async fn complete(
    handle: &Handle,
    worker: &Worker,
    mut request: Request,
) -> Result<Response, Failure> {
    let report: CompleteJob = request.body.json(&request.headers).await?;
    let steps = report
        .steps
        .into_iter()
        .map(convert::reported_step)
        .collect();
    let failure = report.failure.map(|failure| match failure {
        wire::JobFailure::ArtifactFailed(message) => JobFailure::Artifact(message),
        wire::JobFailure::EnvFailed(message) => JobFailure::Env(message),
        wire::JobFailure::CheckoutFailed(message) => JobFailure::Checkout(message),
        wire::JobFailure::SetupFailed(message) => JobFailure::Setup(message),
        wire::JobFailure::RunnerStopped(message) => JobFailure::RunnerStopped(message),
        wire::JobFailure::TimedOut => JobFailure::TimedOut,
    });
    let left_out = report
        .left_out
        .into_iter()
        .map(|(artifact, left_out)| (artifact, convert::reported_left_out(left_out)))
        .collect();
    let (outputs, log_records) = (report.outputs, report.log_records);
    let job = handle
        .complete(worker, steps, outputs, left_out, log_records, failure)
        .await?;
    Ok(reply::ok(&Completed {
        state: convert::state(&job.state),
    }))
}
