//! The blobs of a project, folder by folder.

use model::BlobCondition;
use ui::links;
use ui::pages;
use warp::reply::Response;
use wire::BlobList;

use super::frame::Frame;
use super::html::see_other;
use crate::failure::Failure;
use crate::handlers::blobs::{self, BlobsQuery};
use crate::handlers::projects;
use crate::limits::PAGE;
use crate::page::Window;

pub(super) async fn folder(frame: &Frame<'_>) -> Result<Response, Failure> {
    // Names of projects are in the addresses of blobs, so the page needs no other scope to list them.
    let projects = projects::list(frame.user, &Window::first(PAGE)).items;
    let project = match frame.query("project") {
        "" => projects.first().map(|project| project.name.as_str()),
        named => Some(named),
    };
    let list = match project {
        None => BlobList {
            items: Vec::new(),
            folders: Vec::new(),
            next_cursor: None,
        },
        Some(project) => {
            let mut query = BlobsQuery::of(&frame.request.query)?;
            query.project = Some(project.to_owned());
            query.is_flat = true;
            blobs::list(frame.user, query).await?
        }
    };
    let page = pages::Blobs {
        projects: &projects,
        project,
        prefix: frame.query("prefix"),
        blobs: &list,
    };
    Ok(frame.page(pages::blobs(&frame.visit, &page)))
}

/// The script shows only the sentence of a problem, so the sentence must name the field of the form.
pub(super) fn in_words(failure: Failure) -> Failure {
    let mut errors = failure.errors().iter();
    match errors.find(|error| error.field == "expires_in") {
        Some(error) => {
            let text = format!(
                "“Kept for”: {}. Write it as in 12h, 30d or 2w.",
                error.message
            );
            Failure::new(failure.code, text)
        }
        None => failure,
    }
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (project, path) = (frame.query("project"), frame.query("path"));
    let found = blobs::project(frame.user, frame.request.query.get("project"))?;
    let blob = blobs::member("path", path)?;
    frame
        .user
        .delete_blob(&found, blob, BlobCondition::None)
        .await?;
    let folder = path.rfind('/').and_then(|end| path.get(..=end));
    Ok(see_other(&links::blob_folder(
        project,
        folder.unwrap_or(""),
    )))
}
