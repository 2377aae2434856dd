//! Blobs: files of users in a project. Without a project, the daemon takes the only project of the token.

use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use uuid::Uuid;
use wire::{Blob, BlobLink, BlobList, CopyBlob, CreateBlobLink, CreatedBlobLink, MoveBlob};

use crate::artifact::Download;
use crate::route::Route;
use crate::upload::pieces;
use crate::{Client, Error, limits};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static(wire::CONTENT_DIGEST_HEADER);

#[derive(Debug)]
pub struct BlobUpload<'a> {
    /// The file is read from its start.
    pub file: std::fs::File,
    /// The length of the file in bytes, if it has one.
    pub size: Option<u64>,
    /// The expected SHA-256, hexadecimal. The daemon refuses other content.
    pub sha256: Option<&'a str>,
    /// How long the blob is kept, such as `1h`.
    pub expires_in: Option<&'a str>,
    pub replaces: Replaces<'a>,
}

/// Which blob at the path an upload may replace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replaces<'a> {
    #[default]
    Any,
    None,
    /// Only the blob with this SHA-256, hexadecimal.
    Content(&'a str),
}

impl Client {
    /// All blobs whose paths begin with `prefix`: `GET /blobs`. With `is_flat`, the content of deeper folders is left out, and
    /// the folders themselves are listed.
    pub async fn blobs(
        &self,
        project: Option<&str>,
        prefix: &str,
        is_flat: bool,
    ) -> Result<BlobList, Error> {
        let mut pages = Pages::of(project, prefix, is_flat);
        let mut all = BlobList {
            items: Vec::new(),
            folders: Vec::new(),
            next_cursor: None,
        };
        while let Some(page) = pages.next(self).await? {
            all.items.extend(page.items);
            all.folders.extend(page.folders);
        }
        Ok(all)
    }

    /// The record of the blob at `path`, whose parts are `names`. A missing blob is refused with [`wire::ErrorCode::NotFound`].
    pub async fn blob(
        &self,
        project: Option<&str>,
        path: &str,
        names: &[String],
    ) -> Result<Blob, Error> {
        let mut pages = Pages::of(project, path, true);
        // The blob is nearly always the first with this prefix.
        while let Some(page) = pages.next(self).await? {
            let found = page.items.into_iter().find(|blob| blob.path == path);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        // The daemon's error best describes a missing blob.
        let call = self.get(&blob_route(project, names)?);
        Err(Error::Protocol {
            operation: call.open().await?.operation().clone(),
            reason: "this blob is in no list".to_owned(),
        })
    }

    pub async fn download_blob(
        &self,
        project: Option<&str>,
        path: &[String],
    ) -> Result<Download, Error> {
        Download::with_digest(self.get(&blob_route(project, path)?).open().await?)
    }

    pub async fn upload_blob(
        &self,
        project: Option<&str>,
        path: &[String],
        upload: BlobUpload<'_>,
    ) -> Result<Blob, Error> {
        let route = blob_route(project, path)?.with_some("expires_in", upload.expires_in);
        let mut call = self
            .call(Method::PUT, &route)
            .limit(limits::upload(upload.size.unwrap_or(limits::UNKNOWN_SIZE)))
            .header(CONTENT_TYPE, "application/octet-stream")?;
        if let Some(sha256) = upload.sha256 {
            call = call.header(CONTENT_DIGEST, &format!("sha256:{sha256}"))?;
        }
        call = match upload.replaces {
            Replaces::Any => call,
            Replaces::None => call.header(IF_NONE_MATCH, "*")?,
            Replaces::Content(sha256) => call.header(IF_MATCH, &format!("\"{sha256}\""))?,
        };
        if let Some(size) = upload.size {
            // The daemon decides by the length whether it accepts the body.
            call = call.header(CONTENT_LENGTH, &size.to_string())?;
        }
        let body = pieces(upload.file, upload.size);
        call.answer_to_streamed(body).await
    }

    pub async fn delete_blob(&self, project: Option<&str>, path: &[String]) -> Result<(), Error> {
        let route = blob_route(project, path)?;
        self.call(Method::DELETE, &route).done().await
    }

    pub async fn copy_blob(&self, project: Option<&str>, copy: &CopyBlob) -> Result<Blob, Error> {
        let route = Route::v0("blob-copies").with_some("project", project);
        self.call(Method::POST, &route).json(copy)?.answer().await
    }

    pub async fn blob_links(&self, project: Option<&str>) -> Result<Vec<BlobLink>, Error> {
        let route = Route::v0("blob-links").with_some("project", project);
        self.all(&route).await
    }

    pub async fn create_blob_link(
        &self,
        project: Option<&str>,
        create: &CreateBlobLink,
    ) -> Result<CreatedBlobLink, Error> {
        let route = Route::v0("blob-links").with_some("project", project);
        self.call(Method::POST, &route).json(create)?.answer().await
    }

    pub async fn revoke_blob_link(&self, link: Uuid) -> Result<(), Error> {
        let route = Route::v0("blob-links").id(link);
        self.call(Method::DELETE, &route).done().await
    }

    /// The full URL of a path of the daemon.
    pub fn url_of(&self, path: &str) -> String {
        self.base.join(&Route::outside(path))
    }

    pub async fn move_blob(&self, project: Option<&str>, rename: &MoveBlob) -> Result<Blob, Error> {
        let route = Route::v0("blob-moves").with_some("project", project);
        self.call(Method::POST, &route).json(rename)?.answer().await
    }
}

struct Pages {
    route: Route,
    next: Option<Route>,
}

impl Pages {
    fn of(project: Option<&str>, prefix: &str, is_flat: bool) -> Self {
        let route = Route::v0("blobs")
            .with_some("project", project)
            .with("prefix", prefix)
            .with_some("delimiter", is_flat.then_some("/"))
            .with("limit", limits::BLOBS);
        Self {
            next: Some(route.clone()),
            route,
        }
    }

    async fn next(&mut self, client: &Client) -> Result<Option<BlobList>, Error> {
        let Some(next) = self.next.take() else {
            return Ok(None);
        };
        let page: BlobList = client.get(&next).answer().await?;
        let cursor = page.next_cursor.clone();
        self.next = cursor.map(|cursor| self.route.clone().with("cursor", cursor));
        Ok(Some(page))
    }
}

fn blob_route(project: Option<&str>, path: &[String]) -> Result<Route, Error> {
    let mut route = Route::v0("blobs");
    for name in path {
        route = route.name(name)?;
    }
    Ok(route.with_some("project", project))
}
