//! The blobs of a project, folder by folder.

use model::BlobCondition;
use ui::links;
use ui::pages;
use warp::reply::Response;
use wire::{BlobList, Project};

use super::frame::{Frame, see_other};
use crate::failure::Failure;
use crate::handlers::{blobs, projects};

/// Projects that the page offers.
const PROJECTS: &str = "200";

pub(super) async fn folder(frame: &Frame<'_>) -> Result<Response, Failure> {
    let projects = projects(frame)?;
    let project = match frame.query("project") {
        "" => projects.first().map(|project| project.name.as_str()),
        named => Some(named),
    };
    let prefix = frame.query("prefix");
    let list = match project {
        None => BlobList {
            items: Vec::new(),
            folders: Vec::new(),
            next_cursor: None,
        },
        Some(project) => {
            let query = [
                ("project", project),
                ("prefix", prefix),
                ("delimiter", "/"),
                ("cursor", frame.query("cursor")),
            ];
            blobs::load_list(frame.me, &frame.request.asking(&[], &query)).await?
        }
    };
    let page = pages::Blobs {
        projects: &projects,
        project,
        prefix,
        blobs: &list,
    };
    Ok(frame.page(pages::blobs(&frame.visit, &page)))
}

/// The projects whose blobs the reader may see. Their names are in the addresses of blobs, so no other scope is asked for.
fn projects(frame: &Frame<'_>) -> Result<Vec<Project>, Failure> {
    let request = frame.request.asking(&[], &[("limit", PROJECTS)]);
    Ok(projects::load_list(frame.me, &request)?.items)
}

/// A script shows the sentence of a problem alone, so that names the field of the form.
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
    let found = blobs::project(frame.me, &frame.request.query)?;
    let blob = blobs::member("path", path)?;
    frame
        .me
        .delete_blob(&found, blob, BlobCondition::None)
        .await?;
    let folder = path.rfind('/').and_then(|end| path.get(..=end));
    Ok(see_other(&links::blob_folder(
        project,
        folder.unwrap_or(""),
    )))
}
