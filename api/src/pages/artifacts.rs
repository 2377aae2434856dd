//! Artifacts: the newest artifacts, the files of an artifact, and the difference between two artifacts.

use ui::links;
use ui::pages::{self, ArtifactEntries};
use warp::reply::Response;
use wire::{ErrorCode, Page};

use super::frame::Frame;
use super::html::see_other;
use crate::failure::Failure;
use crate::handlers::entries::{self, DiffQuery};
use crate::handlers::{artifacts, jobs, scans};

pub(super) async fn newest(frame: &Frame<'_>) -> Result<Response, Failure> {
    let found = scans::list(frame.user, None, &frame.window()?).await?;
    Ok(frame.page(pages::artifacts(&frame.visit, &found)))
}

pub(super) async fn entries(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (job, name) = (frame.parameter(0), frame.parameter(1));
    let shown = frame.user.job_named(job).await?;
    let found = artifacts::find(&shown, name)?;
    let artifact = crate::convert::artifact(found);
    let listed = match entries::list(frame.user, &shown, name, &frame.window()?).await {
        Ok(listed) => listed,
        // The page says when and why the artifact was removed.
        Err(failure) if failure.code == ErrorCode::Gone => Page::all(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let page = ArtifactEntries {
        job: &jobs::wire_job(frame.user, &shown).await?,
        artifact: &artifact,
        entries: &listed,
    };
    Ok(frame.page(pages::artifact_entries(&frame.visit, &page)))
}

pub(super) async fn diff(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = frame.user.job_named(frame.parameter(0)).await?;
    let query = DiffQuery::of(&frame.request.query.trimmed())?;
    let diff = entries::diff(frame.user, &job, frame.parameter(1), &query).await?;
    Ok(frame.page(pages::artifact_diff(&frame.visit, &diff)))
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = frame.user.job_named(frame.parameter(0)).await?;
    artifacts::delete(frame.user, frame.parameter(0), frame.parameter(1)).await?;
    Ok(see_other(&links::job(job.id.uuid())))
}
