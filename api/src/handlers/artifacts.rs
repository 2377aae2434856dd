//! `/v0/jobs/{job}/artifacts`

use std::ops::Range;

use chrono::SecondsFormat;
use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, IF_RANGE,
    RANGE,
};
use model::Removed;
use model::{Artifact, Job, Timestamp};
use reconciler::{Handle, Worker};
use state::{Download, ReadError};
use warp::reply::Response;
use wire::{CONTENT_DIGEST_HEADER, ErrorCode};

use crate::convert;
use crate::failure::Failure;
use crate::limits::ARTIFACT_PIECE;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// The artifacts of a job in the order in which they were stored.
pub(super) async fn list(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    let job = me.job_named(request.parameter(0)).await?;
    let artifacts = job.state.run().into_iter().flat_map(|run| &run.artifacts);
    Ok(reply::ok(&window.cut(
        artifacts.enumerate(),
        // One that was removed keeps its place.
        |(place, _)| format!("{place:04}"),
        |(_, artifact)| convert::artifact(artifact),
    )))
}

/// The zip of an artifact, by id or name: the whole, or one range.
pub(super) async fn download(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let job = me.job_named(request.parameter(0)).await?;
    let artifact = find(&job, request.parameter(1))?;
    if let Some(gone) = gone(artifact, me.steady()) {
        return Err(gone);
    }
    let opened = me.open_artifact(&job, &artifact.name).await?;
    let Some(stored) = opened else {
        return Err(missing(&artifact.name));
    };
    // If the file is shorter than the promised length, the download breaks off.
    let size = artifact.size;
    let etag = format!("\"{}\"", artifact.sha256);
    if request.has_already(&etag) {
        return Ok(reply::not_modified(&etag));
    }
    // With another tag, a range belongs to other content, and the reader must not join the two.
    let is_same = request.header(IF_RANGE).is_none_or(|tag| tag == etag);
    let range = match request
        .header(RANGE)
        .filter(|_| is_same)
        .map(|range| wanted_range(range, size))
    {
        None | Some(Wanted::All) => None,
        Some(Wanted::Part(range)) => Some(range),
        Some(Wanted::Outside) => {
            let text = format!("the artifact has {size} bytes");
            return Err(Failure::new(ErrorCode::RangeNotSatisfiable, text)
                .header(CONTENT_RANGE, format!("bytes */{size}")));
        }
    };
    Ok(answer(me.clone(), artifact, &etag, stored, range))
}

/// Finds an artifact of the job by id or name.
pub(super) fn find<'a>(job: &'a Job, wanted: &str) -> Result<&'a Artifact, Failure> {
    let artifacts = job
        .state
        .run()
        .map(|run| run.artifacts.as_slice())
        .unwrap_or_default();
    let by_id = artifacts
        .iter()
        .find(|artifact| artifact.id.to_string() == wanted);
    let found = by_id.or_else(|| artifacts.iter().find(|artifact| artifact.name == wanted));
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
        Failure::not_found("artifact", wanted).hint(hint)
    })
}

/// Why an artifact cannot be downloaded any more. An expired artifact is gone even if its file is still there.
pub(super) fn gone(artifact: &Artifact, now: Timestamp) -> Option<Failure> {
    let name = &artifact.name;
    let text = match (&artifact.removed, artifact.expires_at) {
        (Some(Removed { at, reason, actor }), _) => {
            let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            format!("the artifact `{name}` was removed at {at} by {actor}: {reason}")
        }
        (None, Some(expired)) if expired <= now => {
            let at = expired.to_rfc3339_opts(SecondsFormat::Secs, true);
            format!("the time of the artifact `{name}` was over at {at}")
        }
        (None, _) => return None,
    };
    Some(Failure::new(ErrorCode::Gone, text))
}

/// The answer to a read of an artifact whose file somebody removed from the state folder.
pub(super) fn missing(name: &str) -> Failure {
    let text = format!("the file of the artifact `{name}` is missing");
    Failure::new(ErrorCode::Gone, text)
}

/// Removes the file of an artifact of a job that is over. Repeating this is harmless.
pub(super) async fn delete(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let job = me.job_named(request.parameter(0)).await?;
    let name = find(&job, request.parameter(1))?.name.clone();
    me.delete_artifact(&job, &name).await?;
    Ok(reply::empty())
}

fn answer(
    me: Visible,
    artifact: &Artifact,
    etag: &str,
    stored: Download,
    range: Option<Range<u64>>,
) -> Response {
    let size = artifact.size;
    let part = range.clone().unwrap_or(0..size);
    let stored = if part == (0..size) {
        stored.checked(&artifact.sha256, size)
    } else {
        stored
    };
    let length = part.end - part.start;
    let mut response = reply::streamed("application/zip", move |pieces| async move {
        tokio::select! {
            sent = send(stored, part, &pieces) => {
                if let Err(error) = sent {
                    tracing::warn!(%error, "an artifact cannot be read; its download is broken off");
                    pieces.cut_off();
                }
            }
            () = me.token_ended() => pieces.cut_off(),
        }
    });
    if let Some(range) = range {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        reply::set(
            &mut response,
            CONTENT_RANGE,
            &format!("bytes {}-{}/{size}", range.start, range.end - 1),
        );
    }
    reply::set(&mut response, CONTENT_LENGTH, &length.to_string());
    reply::set(&mut response, ACCEPT_RANGES, "bytes");
    reply::set(&mut response, ETAG, etag);
    let file_name = artifact.name.strip_suffix(".zip").unwrap_or(&artifact.name);
    reply::set(
        &mut response,
        CONTENT_DISPOSITION,
        &format!("attachment; filename=\"{file_name}.zip\""),
    );
    response
}

/// Sends a part of the artifact piece by piece, until the reader goes away. A slow reader costs one piece of memory and
/// no thread.
async fn send(
    mut stored: Download,
    part: Range<u64>,
    pieces: &reply::Pieces,
) -> Result<(), ReadError> {
    let mut at = part.start;
    while at < part.end {
        let wanted = usize::try_from(part.end - at)
            .unwrap_or(usize::MAX)
            .min(ARTIFACT_PIECE);
        let piece;
        (stored, piece) = stored.read(at, wanted).await?;
        at += wanted as u64;
        if pieces.send(piece).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

enum Wanted {
    All,
    Part(Range<u64>),
    Outside,
}

/// Reads a `Range` header. Several ranges, and units other than bytes, are answered with the whole.
fn wanted_range(header: &str, size: u64) -> Wanted {
    let Some(range) = header
        .strip_prefix("bytes=")
        .filter(|range| !range.contains(','))
    else {
        return Wanted::All;
    };
    let Some((first, last)) = range.split_once('-') else {
        return Wanted::All;
    };
    let range = match (first.trim().parse::<u64>(), last.trim()) {
        (Ok(first), "") => first..size,
        (Ok(first), last) => match last.parse::<u64>() {
            Ok(last) if last >= first => first..last.saturating_add(1).min(size),
            Ok(_) | Err(_) => return Wanted::All,
        },
        (Err(_), last) if first.trim().is_empty() => match last.parse::<u64>() {
            Ok(length) => size.saturating_sub(length)..size,
            Err(_) => return Wanted::All,
        },
        (Err(_), _) => return Wanted::All,
    };
    if range.start < range.end {
        Wanted::Part(range)
    } else {
        Wanted::Outside
    }
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

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        let part = |header| match wanted_range(header, 100) {
            Wanted::All => "all".to_owned(),
            Wanted::Part(range) => format!("{}..{}", range.start, range.end),
            Wanted::Outside => "outside".to_owned(),
        };
        for (header, wanted) in [
            ("bytes=0-9", "0..10"),
            ("bytes=90-", "90..100"),
            ("bytes=-10", "90..100"),
            ("bytes=-1000", "0..100"),
            ("bytes=50-1000", "50..100"),
            ("bytes=100-", "outside"),
            ("bytes=-0", "outside"),
            ("bytes=9-0", "all"),
            ("bytes=0-1,5-6", "all"),
            ("lines=1-2", "all"),
            ("bytes=x-y", "all"),
            ("bytes=18446744073709551615-18446744073709551615", "outside"),
        ] {
            assert_eq!(part(header), wanted, "{header}");
        }
    }
}
