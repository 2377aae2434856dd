//! `/v0/jobs/{job}/artifacts/{artifact}/entries` and `…/diff`

use std::collections::BTreeMap;

use state::{ZipEntry, ZipProblem};
use warp::reply::Response;
use wire::{ArtifactDiff, ArtifactEntry, ErrorCode, FileChange, Page};

use super::artifacts;
use crate::failure::Failure;
use crate::limits::ENTRIES_PAGE;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{ShownJob, Visible};

/// The files in an artifact by name.
pub(super) async fn list(me: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&load_list(me, request).await?))
}

pub(crate) async fn load_list(
    me: &Visible,
    request: &Request,
) -> Result<Page<ArtifactEntry>, Failure> {
    let window = Window::up_to(&request.query, ENTRIES_PAGE)?;
    let job = me.job_named(request.parameter(0)).await?;
    let entries = entries(me, &job, request.parameter(1)).await?.entries;
    Ok(window.cut(
        entries.iter(),
        |(name, _)| (*name).clone(),
        |(_, entry)| ArtifactEntry {
            name: entry.name.clone(),
            size: entry.size,
            packed_size: entry.packed,
            crc32: format!("{:08x}", entry.crc32),
        },
    ))
}

/// How an artifact differs from the one of the same name that another job has.
pub(super) async fn diff(me: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&load_diff(me, request).await?))
}

pub(crate) async fn load_diff(me: &Visible, request: &Request) -> Result<ArtifactDiff, Failure> {
    let window = Window::up_to(&request.query, ENTRIES_PAGE)?;
    let job = me.job_named(request.parameter(0)).await?;
    let against = request.query.get("against").ok_or_else(|| {
        Failure::invalid("against", "is missing; it names the job to compare with")
    })?;
    let after = entries(me, &job, request.parameter(1)).await?;
    let other = me.job_named(against).await?;
    let before = entries(me, &other, &after.name).await?;
    let mut names: Vec<&String> = before.entries.keys().chain(after.entries.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let (mut added, mut removed, mut changed, mut unchanged) = (0, 0, 0, 0);
    let mut files: Vec<FileChange> = Vec::new();
    for name in names {
        let (from, to) = (before.entries.get(name), after.entries.get(name));
        match (from, to) {
            (Some(from), Some(to)) if (from.size, from.crc32) == (to.size, to.crc32) => {
                unchanged += 1;
                continue;
            }
            (Some(_), Some(_)) => changed += 1,
            (Some(_), None) => removed += 1,
            (None, Some(_) | None) => added += 1,
        }
        files.push(FileChange {
            name: name.clone(),
            from_size: from.map(|from| from.size),
            to_size: to.map(|to| to.size),
        });
    }
    let page = window.cut(
        files.into_iter(),
        |file| file.name.clone(),
        FileChange::clone,
    );
    Ok(ArtifactDiff {
        same: before.content_digest == after.content_digest,
        artifact: after.name,
        from: other.id.uuid(),
        to: job.id.uuid(),
        added,
        removed,
        changed,
        unchanged,
        files: page.items,
        next_cursor: page.next_cursor,
    })
}

/// The files of an artifact by name.
struct Entries {
    name: String,
    content_digest: String,
    entries: BTreeMap<String, ZipEntry>,
}

async fn entries(me: &Visible, job: &ShownJob, artifact: &str) -> Result<Entries, Failure> {
    let artifact = artifacts::find(job, artifact)?;
    if let Some(gone) = artifacts::gone(artifact, me.steady()) {
        return Err(gone);
    }
    let name = artifact.name.clone();
    let entries = me.artifact_entries(job, &name).await?;
    let entries = entries.ok_or_else(|| artifacts::missing(&name))?;
    let entries = entries.map_err(|problem| {
        let text = format!(
            "the artifact `{name}` of job {} cannot be listed: {problem}",
            job.id
        );
        let failure = Failure::new(ErrorCode::ArtifactUnreadable, text);
        match problem {
            ZipProblem::Damaged | ZipProblem::TooMany(_) => {
                failure.hint("`everscan job artifact download` fetches it as it is")
            }
        }
    })?;
    let entries = entries.into_iter();
    Ok(Entries {
        name,
        content_digest: artifact.content_digest.clone(),
        entries: entries.map(|entry| (entry.name.clone(), entry)).collect(),
    })
}
