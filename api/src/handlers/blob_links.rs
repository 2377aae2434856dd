//! `/v0/blob-links`, and the blobs behind links.

use http::StatusCode;
use http::header::{CACHE_CONTROL, REFERRER_POLICY};
use model::blob::LinkUse;
use model::decide::{self, Once, RevokeBlobLink};
use model::{BlobLink, BlobLinkId, ProjectId};
use warp::reply::Response;
use wire::{BlobLinkUse, CreateBlobLink, CreatedBlobLink, ErrorCode, Page};

use super::blobs::{self, project};
use crate::access::{LINKED_BLOBS, Linked};
use crate::body;
use crate::convert;
use crate::failure::{Failure, no_such_link};
use crate::idempotency::Attempt;
use crate::page::Window;
use crate::reply;
use crate::request::{Query, Request};
use crate::routes::LinkRoute;
use crate::visible::{Shown, Visible};

pub(super) fn list(user: &Visible, query: &Query) -> Result<Page<wire::BlobLink>, Failure> {
    let (window, now) = (Window::of(query)?, user.steady());
    let project = project(user, query.get("project"))?;
    Ok(user.read(|seen| {
        window.cut(
            seen.blob_links(*project, now),
            |link| link.id.to_string(),
            |link| convert::blob_link(link),
        )
    }))
}

/// Makes a link. A repeat with the same `Idempotency-Key` is refused, because the link's address is shown only once.
pub(super) async fn create(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(user, request.query.get("project"))?;
    body::is_json(&request.headers)?;
    let attempt = Attempt::of(&mut request).await?;
    let asked: CreateBlobLink = body::parse(&attempt.body)?;
    let key = attempt.key(user, &format!("create blob link\0{}", *project))?;
    let path = blobs::member("path", &asked.path)?;
    let use_for = match asked.use_for {
        BlobLinkUse::Get => LinkUse::Get,
        BlobLinkUse::Put => LinkUse::Put,
    };
    if use_for == LinkUse::Put && user.principal().job().is_some() {
        let message = "the token of a job makes no links for uploads";
        return Err(Failure::new(ErrorCode::Forbidden, message)
            .hint("a person can make one; the job itself can upload with its token"));
    }
    if !user.rights().may(use_for.scope(), *project) {
        return Err(match user.principal().token() {
            Some(_) if !user.rights().scopes.allow(use_for.scope()) => {
                Failure::without_scope(use_for.scope())
            }
            _ => Failure::without_role(use_for.scope()),
        });
    }
    let life = workflow::parse_duration(&asked.expires_in)
        .map_err(|error| Failure::invalid("expires_in", error.to_string()))?;
    if use_for == LinkUse::Get {
        // Refuse a link to a blob that does not exist: the path is probably mistyped.
        user.blob(&project, &path).await?;
    }
    let create = project.map(|project| Once {
        command: decide::CreateBlobLink {
            project: *project,
            path,
            use_for,
            life,
            token: user.principal().token(),
            user: user.principal().user(),
        },
        key,
    });
    let made = user.submit(create).await?;
    let body = CreatedBlobLink {
        link: convert::blob_link(&made.link),
        url_path: format!("{LINKED_BLOBS}{}", made.secret.reveal()),
    };
    Ok(reply::json(StatusCode::CREATED, &body))
}

/// Revokes a link. Running downloads continue.
pub(super) async fn revoke(user: &Visible, named: &str) -> Result<(), Failure> {
    let missing = || Failure::not_found("link", named);
    let id: BlobLinkId = named.parse().map_err(|_| missing())?;
    let link = user.find(|seen| Ok(seen.blob_link(id).ok_or_else(missing)?.id))?;
    user.submit(link.map(|link| RevokeBlobLink { link: *link }))
        .await
}

pub(crate) async fn follow(
    linked: &Linked,
    route: LinkRoute,
    request: Request,
) -> Result<Response, Failure> {
    let Linked { user, link } = linked;
    let project: Shown<ProjectId> = user.find(|seen| {
        let source = seen.source_of(link.project);
        source.map(|source| source.project).ok_or_else(no_such_link)
    })?;
    let path = BlobLink::clone(link).path;
    let mut response = match route {
        LinkRoute::Download => blobs::content_of(user, &project, &path, &request).await?,
        LinkRoute::Inspect => blobs::head_of(user, &project, &path, &request).await?,
        LinkRoute::Upload => {
            let new = blobs::new_blob(user, &project, path, &request)?;
            blobs::answer_to_link(&blobs::receive(user, &new, request).await?)
        }
    };
    reply::set(&mut response, CACHE_CONTROL, "private, no-store");
    reply::set(&mut response, REFERRER_POLICY, "no-referrer");
    Ok(response)
}
