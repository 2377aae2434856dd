//! `/v0/jobs/{job}/artifacts`

use chrono::SecondsFormat;
use http::header::HeaderName;
use model::Removed;
use model::{Artifact, Job, Scope, Timestamp};
use reconciler::{Handle, Worker};
use warp::reply::Response;
use wire::{CONTENT_DIGEST_HEADER, ErrorCode, Page};

use super::content::Content;
use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{ShownJob, Visible};

pub(super) fn list(job: &ShownJob, window: &Window) -> Page<wire::Artifact> {
    let artifacts = job.state.run().into_iter().flat_map(|run| &run.artifacts);
    window.cut(
        artifacts.enumerate(),
        // The index counts removed artifacts, too, so it does not change.
        |(place, _)| format!("{place:04}"),
        |(_, artifact)| convert::artifact(artifact),
    )
}

pub(crate) async fn download(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let job = user.job_named(request.parameter(0)).await?;
    let artifact = find(&job, request.parameter(1))?;
    if let Some(gone) = gone(artifact, user.steady()) {
        return Err(gone);
    }
    let opened = user.open_artifact(&job, &artifact.name).await?;
    let Some(stored) = opened else {
        return Err(missing(&artifact.name));
    };
    let file_name = artifact.name.strip_suffix(".zip").unwrap_or(&artifact.name);
    let content = Content {
        media_type: "application/zip",
        size: artifact.size,
        sha256: &artifact.sha256,
        disposition: format!("attachment; filename=\"{file_name}.zip\""),
        is_checked: true,
    };
    content.answer(user, request, stored)
}

/// The artifact with this id or name. A name may lack its `.zip` if no other artifact has the shorter name.
pub(crate) fn find<'a>(job: &'a Job, wanted: &str) -> Result<&'a Artifact, Failure> {
    let artifacts = job
        .state
        .run()
        .map(|run| run.artifacts.as_slice())
        .unwrap_or_default();
    let by_id = artifacts
        .iter()
        .find(|artifact| artifact.id.to_string() == wanted);
    let by_name = |name: &str| artifacts.iter().find(|artifact| artifact.name == name);
    let found = by_id
        .or_else(|| by_name(wanted))
        .or_else(|| by_name(&format!("{wanted}.zip")));
    found.ok_or_else(|| {
        let names: Vec<&str> = artifacts
            .iter()
            .map(|artifact| artifact.name.as_str())
            .collect();
        let hint = if names.is_empty() {
            format!("job {} has none; it is {}", job.id, job.state.name())
        } else {
            format!("there are: {}", names.join(", "))
        };
        Failure::not_found("artifact", wanted).names(Scope::JobRead, hint)
    })
}

/// Why an artifact can no longer be downloaded. An expired artifact is gone even if its file still exists.
pub(super) fn gone(artifact: &Artifact, now: Timestamp) -> Option<Failure> {
    let name = &artifact.name;
    let text = match (&artifact.removed, artifact.expires_at) {
        (Some(Removed { at, reason, actor }), _) => {
            let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            format!("the artifact `{name}` was removed at {at} by {actor}: {reason}")
        }
        (None, Some(expired)) if expired <= now => {
            let at = expired.to_rfc3339_opts(SecondsFormat::Secs, true);
            format!("the artifact `{name}` expired at {at}")
        }
        (None, _) => return None,
    };
    Some(Failure::new(ErrorCode::Gone, text))
}

/// The answer for an artifact whose file somebody removed from the state folder.
pub(super) fn missing(name: &str) -> Failure {
    let text = format!("the file of the artifact `{name}` is missing");
    Failure::new(ErrorCode::Gone, text)
}

/// Removes the file of an artifact of a finished job. A repeat is harmless.
pub(crate) async fn delete(user: &Visible, job: &str, named: &str) -> Result<(), Failure> {
    let job = user.job_named(job).await?;
    let name = find(&job, named)?.name.clone();
    user.delete_artifact(&job, &name).await
}

/// Stores an artifact that the job's worker uploads. It is streamed to disk, hashed on the way and made durable; then
/// it is recorded.
pub(super) async fn upload(
    handle: &Handle,
    worker: &Worker,
    mut request: Request,
) -> Result<Response, Failure> {
    handle.may_store_artifact(worker, request.parameter(1))?;
    let name = request.parameter(1).to_owned();
    let digest = request.header(HeaderName::from_static(CONTENT_DIGEST_HEADER));
    let digest = digest.filter(|digest| is_digest(digest)).ok_or_else(|| {
        Failure::invalid(
            CONTENT_DIGEST_HEADER,
            "must be `sha256:` and 64 lower-case hexadecimal digits",
        )
    })?;
    let digest = digest.to_owned();
    let mut upload = handle.state().begin_upload().await?;
    while let Some(piece) = request.body.next().await? {
        upload = upload.write(piece).await?;
    }
    let artifact = handle.store_artifact(worker, name, upload, digest).await?;
    Ok(reply::ok(&convert::artifact(&artifact)))
}

pub(super) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}
