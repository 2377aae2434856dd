//! `/v0/payload-groups`

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG};
use model::decide;
use model::decide::Precondition;
use model::payload::{PayloadGroup, PayloadName};
use reconciler::NewPayload;
use warp::reply::Response;
use wire::Page;
use workflow::notify::NotifyName;

use super::projects;
use crate::convert::payloads as convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::precondition::{etag, precondition};
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;
use crate::visible::payloads::ShownGroup;

/// What a payload is without another word. Nobody should guess from its bytes.
const TEXT: &str = "text/plain; charset=utf-8";

pub(crate) fn list(
    user: &Visible,
    project: Option<&str>,
    window: &Window,
) -> Result<Page<wire::PayloadGroup>, Failure> {
    user.read(|seen| {
        let project = project
            .map(|named| projects::find(seen, named))
            .transpose()?;
        let project = project.map(|source| source.project);
        let groups = seen.payload_groups();
        let groups = groups.filter(|it| project.is_none_or(|project| it.project == project));
        Ok(window.cut(
            groups,
            |group| convert::key(seen, group),
            |group| convert::group(seen, group),
        ))
    })
}

/// The payload group with this id.
pub(crate) fn find(user: &Visible, named: &str) -> Result<ShownGroup, Failure> {
    let found = user.find(|seen| {
        let missing = || {
            Failure::not_found("payload group", named)
                .hint("`everscan payload group list` shows the payload groups")
        };
        let id = named.parse().map_err(|_| missing())?;
        Ok(seen.payload_group(id).ok_or_else(missing)?.clone())
    });
    found.map_err(|missing| {
        let id = named.parse().ok();
        user.without_role(|seen| Some(seen.payload_group(id?)?.project))
            .unwrap_or(missing)
    })
}

pub(crate) fn show(user: &Visible, named: &str) -> Result<wire::PayloadGroupDetail, Failure> {
    let group = find(user, named)?;
    let payloads = group.payloads.iter();
    Ok(wire::PayloadGroupDetail {
        group: user.read(|seen| convert::group(seen, &group)),
        payloads: payloads
            .map(|(name, it)| convert::payload(name, it))
            .collect(),
    })
}

pub(super) async fn create(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let asked: wire::CreatePayloadGroup = request.body.json(&request.headers).await?;
    let name =
        NotifyName::new(asked.name).map_err(|error| Failure::invalid("name", error.to_string()))?;
    let project = user.find(|seen| Ok(projects::find(seen, &asked.project)?.project))?;
    let create = project.map(|project| decide::CreatePayloadGroup {
        project: *project,
        name,
        variables: asked
            .variables
            .into_iter()
            .map(convert::to_variable)
            .collect(),
        serve: asked.serve,
        actor: user.actor(),
    });
    let group = user.submit(create).await?;
    let group = user.read(|seen| convert::group(seen, &group));
    Ok(reply::json(StatusCode::CREATED, &group))
}

pub(super) async fn change(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let group = find(user, request.parameter(0))?;
    let asked: wire::ChangePayloadGroup = request.body.json(&request.headers).await?;
    let variables = asked.variables;
    let change = group.map(|group| decide::ChangePayloadGroup {
        group: group.id,
        variables: variables.map(|all| all.into_iter().map(convert::to_variable).collect()),
        serve: asked.serve,
    });
    let group = user.submit(change).await?;
    Ok(reply::ok(&user.read(|seen| convert::group(seen, &group))))
}

pub(crate) async fn delete(user: &Visible, named: &str) -> Result<(), Failure> {
    let group = find(user, named)?;
    user.delete_payload_group(&group).await
}

/// A version with its body.
pub(crate) struct Body {
    pub(crate) name: PayloadName,
    pub(crate) version: u64,
    pub(crate) bytes: Bytes,
}

/// Reads a version of a payload; the newest without a version.
pub(crate) async fn body(
    user: &Visible,
    group: &ShownGroup,
    named: &str,
    version: Option<u64>,
) -> Result<Body, Failure> {
    let (name, newest) = named_in(group, named)?;
    let version = version.unwrap_or(newest);
    match user.payload_body(group, &name, version).await? {
        Some(bytes) => Ok(Body {
            name,
            version,
            bytes,
        }),
        None => Err(Failure::not_found("payload", &format!("{named}@{version}"))),
    }
}

/// The name of a payload of the group, and its newest version.
fn named_in(group: &PayloadGroup, named: &str) -> Result<(PayloadName, u64), Failure> {
    let found = named.parse().ok().and_then(|name: PayloadName| {
        let version = group.payloads.get(&name)?.edit.version;
        Some((name, version))
    });
    found.ok_or_else(|| {
        Failure::not_found("payload", named).hint(format!(
            "`everscan payload list {}` shows the payloads of the group",
            group.name
        ))
    })
}

/// Answers a body as a text to save, which no browser shows or runs.
pub(super) async fn read(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let group = find(user, request.parameter(0))?;
    let version = request.query.count("version")?;
    let found = body(user, &group, request.parameter(1), version).await?;
    let mut response = warp::Reply::into_response(found.bytes.to_vec());
    reply::set_static(&mut response, CONTENT_TYPE, TEXT);
    let name = format!("attachment; filename=\"{}\"", found.name);
    reply::set(&mut response, CONTENT_DISPOSITION, &name);
    let policy = "default-src 'none'; sandbox";
    reply::set_static(&mut response, CONTENT_SECURITY_POLICY, policy);
    reply::set(&mut response, ETAG, &etag(found.version));
    Ok(response)
}

pub(super) async fn store(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let group = find(user, request.parameter(0))?;
    let media_type = request.header(CONTENT_TYPE).unwrap_or(TEXT).to_owned();
    let expects = precondition(&request.headers)?;
    let new = new(
        user,
        &group,
        request.parameter(1),
        Some(media_type),
        expects,
    )?;
    let mut upload = user.begin_payload().await?;
    while let Some(piece) = request.body.next().await? {
        upload = upload.write(piece).await?;
    }
    let name = new.name.clone();
    let (payload, is_new) = user.store_payload(new, upload).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let mut response = reply::json(status, &convert::payload(&name, &payload));
    reply::set(&mut response, ETAG, &etag(payload.edit.version));
    Ok(response)
}

/// A new version. Without a media type it keeps that of the payload.
pub(crate) fn new(
    user: &Visible,
    group: &ShownGroup,
    name: &str,
    media_type: Option<String>,
    expects: Precondition,
) -> Result<crate::visible::Shown<NewPayload>, Failure> {
    let name: PayloadName = name
        .parse()
        .map_err(|error: model::payload::PayloadNameError| {
            Failure::invalid("payload", error.to_string())
        })?;
    let known = group.payloads.get(&name);
    let media_type = media_type.or_else(|| Some(known?.media_type.clone()));
    Ok(group.map(|group: &Arc<PayloadGroup>| NewPayload {
        group: group.id,
        name,
        media_type: media_type.unwrap_or_else(|| TEXT.to_owned()),
        expects,
        actor: user.actor(),
    }))
}

pub(crate) async fn delete_payload(
    user: &Visible,
    group: &ShownGroup,
    named: &str,
    expects: Precondition,
) -> Result<(), Failure> {
    let (name, _) = named_in(group, named)?;
    let delete = || {
        group.map(|group| decide::DeletePayload {
            group: group.id,
            name: name.clone(),
            expects: expects.clone(),
        })
    };
    while user.submit(delete()).await? {}
    Ok(())
}

pub(super) async fn remove(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let group = find(user, request.parameter(0))?;
    let expects = precondition(&request.headers)?;
    delete_payload(user, &group, request.parameter(1), expects).await?;
    Ok(reply::empty())
}
