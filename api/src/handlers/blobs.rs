//! `/v0/blobs`, and the routes that copy and move blobs.

use chrono::TimeDelta;
use http::StatusCode;
use http::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HeaderName, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED,
};
use model::blob::{joined, split};
use model::limits::BLOB_LIFE;
use model::{Blob, BlobCondition, BlobPath, ProjectId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reconciler::{NewBlob, Stored};
use state::blobs::{BlobEntry, BlobQuery, split_prefix};
use warp::reply::Response;
use wire::{BlobList, CONTENT_DIGEST_HEADER, CopyBlob, ErrorCode, MoveBlob};

use super::content::Content;
use super::projects;
use crate::convert;
use crate::failure::{Failure, shorten};
use crate::reply;
use crate::request::{Query, Request};
use crate::visible::{Shown, Visible};

/// All characters that are percent-encoded in file names in headers.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

const CONTENT_DIGEST: HeaderName = HeaderName::from_static(CONTENT_DIGEST_HEADER);

pub(crate) struct BlobsQuery {
    pub(crate) project: Option<String>,
    folder: Vec<String>,
    /// The beginning of the name after `folder`.
    begin: String,
    /// Whether deeper folders are listed as one item each.
    pub(crate) is_flat: bool,
    after: Option<BlobPath>,
    limit: usize,
}

impl BlobsQuery {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        let (folder, begin) = split_prefix(query.get("prefix").unwrap_or(""));
        let is_flat = match query.get("delimiter") {
            None | Some("") => false,
            Some("/") => true,
            Some(_) => return Err(Failure::invalid("delimiter", "must be `/`")),
        };
        let after = query.get("cursor").map(str::parse).transpose();
        Ok(Self {
            project: query.owned("project"),
            folder: match folder.is_empty() {
                true => folder,
                false => BlobPath::new(folder)
                    .map_err(|error| Failure::invalid("prefix", error.to_string()))?
                    .names()
                    .to_vec(),
            },
            begin,
            is_flat,
            after: after.map_err(|_| Failure::invalid("cursor", "is not from this list"))?,
            limit: query.limit()?,
        })
    }
}

pub(crate) async fn list(user: &Visible, query: BlobsQuery) -> Result<BlobList, Failure> {
    let project = project(user, query.project.as_deref())?;
    let wanted = BlobQuery {
        project: *project,
        folder: query.folder,
        begin: query.begin,
        is_flat: query.is_flat,
        after: query.after,
        limit: query.limit,
        now: user.steady(),
    };
    let page = user.list_blobs(&project, &wanted).await?;
    let next = page.entries.last().map(|last| last.path().to_string());
    let mut list = BlobList {
        items: Vec::new(),
        folders: Vec::new(),
        next_cursor: next.filter(|_| !page.is_last),
    };
    for entry in &page.entries {
        match entry {
            BlobEntry::Blob(blob) => list.items.push(convert::blob(blob)),
            BlobEntry::Folder(path) => list.folders.push(format!("{path}/")),
        }
    }
    Ok(list)
}

pub(crate) async fn download(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let (project, path) = place(user, request)?;
    content_of(user, &project, &path, request).await
}

pub(super) async fn content_of(
    user: &Visible,
    project: &Shown<ProjectId>,
    path: &BlobPath,
    request: &Request,
) -> Result<Response, Failure> {
    let (blob, stored) = user.open_blob(project, path).await?;
    demand(&condition(request)?, &blob)?;
    let mut response = content(&blob).answer(user, request, stored)?;
    describe(&mut response, &blob);
    Ok(response)
}

pub(super) async fn inspect(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let (project, path) = place(user, request)?;
    head_of(user, &project, &path, request).await
}

pub(super) async fn head_of(
    user: &Visible,
    project: &Shown<ProjectId>,
    path: &BlobPath,
    request: &Request,
) -> Result<Response, Failure> {
    let blob = user.blob(project, path).await?;
    demand(&condition(request)?, &blob)?;
    let mut response = content(&blob).head(request);
    describe(&mut response, &blob);
    Ok(response)
}

pub(crate) async fn upload(user: &Visible, request: Request) -> Result<Response, Failure> {
    let project = project(user, request.query.get("project"))?;
    let expires_in = life(request.query.get("expires_in"))?;
    let new = new_blob(user, &project, path(&request)?, &request)?;
    let new = new.map(|new| NewBlob {
        expires_in,
        ..new.clone()
    });
    let stored = receive(user, &new, request).await?;
    Ok(answer(&stored))
}

pub(super) fn new_blob(
    user: &Visible,
    project: &Shown<ProjectId>,
    path: BlobPath,
    request: &Request,
) -> Result<Shown<NewBlob>, Failure> {
    let condition = replacement(request)?;
    Ok(project.map(|project| NewBlob {
        project: *project,
        path,
        expires_in: None,
        condition,
        actor: user.actor(),
    }))
}

/// Receives a blob. It is streamed to disk, hashed on the way and made durable before it appears at its path.
pub(super) async fn receive(
    user: &Visible,
    new: &Shown<NewBlob>,
    mut request: Request,
) -> Result<Stored, Failure> {
    let digest = request.header(CONTENT_DIGEST).map(|digest| {
        let is_digest = super::artifacts::is_digest(digest);
        let hex = digest.strip_prefix("sha256:").filter(|_| is_digest);
        hex.map(str::to_owned).ok_or_else(|| {
            Failure::invalid(
                CONTENT_DIGEST_HEADER,
                "must be `sha256:` and 64 lower-case hexadecimal digits",
            )
        })
    });
    let digest = digest.transpose()?;
    let announced = request
        .header(CONTENT_LENGTH)
        .and_then(|length| length.parse().ok());
    let mut upload = user.begin_blob(new, announced).await?;
    while let Some(piece) = request.body.next().await? {
        upload = upload.write(piece).await?;
    }
    user.finish_blob(upload, digest.as_deref()).await
}

pub(super) async fn delete(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let (project, path) = place(user, request)?;
    user.delete_blob(&project, path, replacement(request)?)
        .await?;
    Ok(reply::empty())
}

pub(super) async fn copy(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(user, request.query.get("project"))?;
    let condition = replacement(&request)?;
    let asked: CopyBlob = request.body.json(&request.headers).await?;
    let (from, to) = (member("from", &asked.from)?, member("to", &asked.to)?);
    let expires_in = life(asked.expires_in.as_deref())?;
    let new = project.map(|project| NewBlob {
        project: *project,
        path: to,
        expires_in,
        condition,
        actor: user.actor(),
    });
    let stored = user.copy_blob(from, &new).await?;
    Ok(answer(&stored))
}

pub(super) async fn rename(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(user, request.query.get("project"))?;
    let condition = replacement(&request)?;
    let asked: MoveBlob = request.body.json(&request.headers).await?;
    let (from, to) = (member("from", &asked.from)?, member("to", &asked.to)?);
    let stored = user.move_blob(&project, from, to, condition).await?;
    Ok(answer(&stored))
}

fn place(user: &Visible, request: &Request) -> Result<(Shown<ProjectId>, BlobPath), Failure> {
    Ok((project(user, request.query.get("project"))?, path(request)?))
}

/// The project of this name, or the only project that the token sees.
pub(crate) fn project(user: &Visible, named: Option<&str>) -> Result<Shown<ProjectId>, Failure> {
    user.find(|seen| {
        if let Some(name) = named {
            return projects::find(seen, name).map(|source| source.project);
        }
        let mut sources = seen.sources();
        match (sources.next(), sources.next()) {
            (Some(only), None) => Ok(only.project),
            (Some(_), Some(_)) | (None, _) => Err(Failure::invalid(
                "project",
                "must be named, since this token does not see exactly one project",
            )),
        }
    })
}

pub(super) fn path(request: &Request) -> Result<BlobPath, Failure> {
    let names = match request.parameters.as_slice() {
        // A leading slash is ignored.
        [empty, names @ ..] if empty.is_empty() && !names.is_empty() => names,
        names => names,
    };
    // Pages have the text of the path in their addresses.
    let names = match request.arrival.path.starts_with(wire::VERSION_PREFIX) {
        true => names.to_vec(),
        false => split(&names.join("/")),
    };
    BlobPath::new(names.clone()).map_err(|error| {
        let text = format!(
            "`{}` is no path of a blob: it {error}",
            shorten(&joined(&names))
        );
        Failure::new(ErrorCode::InvalidRequest, text)
    })
}

pub(crate) fn member(field: &str, text: &str) -> Result<BlobPath, Failure> {
    text.parse()
        .map_err(|error: model::BlobPathError| Failure::invalid(field, error.to_string()))
}

pub(super) fn life(text: Option<&str>) -> Result<Option<TimeDelta>, Failure> {
    text.map(|text| {
        let life = workflow::parse_duration(text)
            .map_err(|error| Failure::invalid("expires_in", error.to_string()))?;
        if life > BLOB_LIFE {
            let most = BLOB_LIFE.num_days();
            return Err(Failure::invalid(
                "expires_in",
                format!("must be at most {most}d; without it the blob is kept until it is removed"),
            ));
        }
        Ok(life)
    })
    .transpose()
}

pub(super) fn replacement(request: &Request) -> Result<BlobCondition, Failure> {
    let condition = condition(request)?;
    match (request.header(IF_NONE_MATCH).map(str::trim), condition) {
        (None, condition) => Ok(condition),
        (Some("*"), BlobCondition::None) => Ok(BlobCondition::Absent),
        (Some(_), _) => Err(Failure::invalid(
            "If-None-Match",
            "takes `*` here, and not together with If-Match",
        )),
    }
}

fn condition(request: &Request) -> Result<BlobCondition, Failure> {
    let Some(tags) = request.header(IF_MATCH).map(str::trim) else {
        return Ok(BlobCondition::None);
    };
    if tags == "*" {
        return Ok(BlobCondition::Exists);
    }
    // Blobs have no weak tags, so a weak tag matches nothing.
    let digest = |tag: &str| {
        let tag = tag.trim();
        let strong = tag.strip_prefix("W/").unwrap_or(tag);
        let quoted = strong.strip_prefix('"')?.strip_suffix('"')?;
        Some((strong == tag).then(|| quoted.to_owned()))
    };
    let digests: Option<Vec<Option<String>>> = tags.split(',').map(digest).collect();
    digests
        .map(|digests| BlobCondition::Sha256(digests.into_iter().flatten().collect()))
        .ok_or_else(|| Failure::invalid("If-Match", "must be `*` or ETags in quotes"))
}

fn demand(condition: &BlobCondition, blob: &Blob) -> Result<(), Failure> {
    if condition.holds(Some(blob)) {
        return Ok(());
    }
    let text = format!("the blob `{}` has another ETag", blob.path);
    Err(Failure::new(ErrorCode::PreconditionFailed, text))
}

fn content(blob: &Blob) -> Content<'_> {
    let name = blob.path.name();
    let encoded = utf8_percent_encode(name, ENCODED);
    // A fallback for programs that only understand plain ASCII names.
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "._- ".contains(character);
    let plain: String = name
        .chars()
        .map(|it| if is_plain(it) { it } else { '_' })
        .collect();
    Content {
        media_type: "application/octet-stream",
        size: blob.size,
        sha256: &blob.sha256,
        disposition: format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"),
        // The digest is in a header, and hashing would halve the speed of a large download.
        is_checked: false,
    }
}

fn describe(response: &mut Response, blob: &Blob) {
    let digest = format!("sha256:{}", blob.sha256);
    reply::set(response, CONTENT_DIGEST, &digest);
    let modified = blob.modified_at.format("%a, %d %b %Y %H:%M:%S GMT");
    reply::set(response, LAST_MODIFIED, &modified.to_string());
    reply::set(response, CONTENT_SECURITY_POLICY, "sandbox");
}

fn answer(stored: &Stored) -> Response {
    answer_with(stored, &convert::blob(&stored.blob))
}

/// The answer to the user of a link, who does not learn whose link it is.
pub(super) fn answer_to_link(stored: &Stored) -> Response {
    let blob = wire::Blob {
        modified_by: "a link".to_owned(),
        ..convert::blob(&stored.blob)
    };
    answer_with(stored, &blob)
}

fn answer_with(stored: &Stored, shown: &wire::Blob) -> Response {
    let status = match stored.is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let blob = &stored.blob;
    let mut response = reply::json(status, shown);
    let etag = format!("\"{}\"", blob.sha256);
    reply::set(&mut response, http::header::ETAG, &etag);
    response
}
