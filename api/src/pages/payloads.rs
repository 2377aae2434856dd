//! Payload groups, payloads and their editor.

use std::collections::BTreeSet;

use http::StatusCode;
use maud::Markup;
use model::decide::Precondition;
use model::limits::CALLBACKS;
use model::payload::{CALLBACK_VARIABLE, Piece, TARGET_VARIABLE, Template};
use ui::form::Refused;
use ui::pages::{Draft, PayloadPage, Previewed};
use ui::{links, pages};
use warp::reply::Response;

use super::frame::Frame;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{callbacks, payloads};
use crate::page::Window;
use crate::visible::payloads::ShownGroup;

const FIELDS: [&str; 3] = ["payload", "text", "version"];

pub(super) fn group(frame: &Frame<'_>) -> Result<Response, Failure> {
    let detail = payloads::show(frame.user, frame.parameter(0))?;
    let callbacks = callbacks(frame, &detail.group.project)?;
    let page = pages::payload_group(&frame.visit, &detail, &callbacks);
    Ok(frame.page(page))
}

/// The callback servers that may have hits of payloads of the project.
fn callbacks(frame: &Frame<'_>, project: &str) -> Result<Vec<wire::Callback>, Failure> {
    let found = callbacks::list(frame.user, Some(project), &Window::first(CALLBACKS))?;
    Ok(found.items)
}

pub(super) async fn payload(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (named, name) = (frame.parameter(0), frame.parameter(1));
    let group = payloads::find(frame.user, named)?;
    let version = frame.request.query.count("version")?;
    let body = payloads::body(frame.user, &group, name, version).await?;
    let detail = payloads::show(frame.user, named)?;
    let Some(payload) = detail.payloads.iter().find(|it| it.name == name) else {
        return Err(Failure::not_found("payload", name));
    };
    let page = PayloadPage {
        group: &detail.group,
        payload,
        version: body.version,
        body: &body.bytes,
        callbacks: &callbacks(frame, &detail.group.project)?,
    };
    Ok(frame.page(pages::payload(&frame.visit, &page)))
}

/// Stores the text of the editor, or shows what becomes of it.
pub(super) async fn store(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let group = payloads::find(frame.user, frame.parameter(0))?;
    if typed.get("preview").is_some() {
        let kept = FIELDS.iter();
        let kept = kept.map(|field| ((*field).to_owned(), typed.text(field).to_owned()));
        let refused = Refused {
            typed: kept.collect(),
            problem: None,
        };
        let preview = preview(&group, typed.text("text"));
        let page = again(frame, &group, typed, &preview, refused)?;
        return Ok(frame.html(StatusCode::OK, page));
    }
    match save(frame, &group, typed).await {
        Ok(()) => {
            let name = typed.text("payload").trim();
            let page = links::payload(group.id.uuid(), name, None);
            Ok(frame.done(model::Scope::PayloadRead, &page))
        }
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &FIELDS)?;
            let page = again(frame, &group, typed, &[], refused)?;
            Ok(frame.html(status, page))
        }
    }
}

async fn save(frame: &Frame<'_>, group: &ShownGroup, typed: &Typed) -> Result<(), Failure> {
    // Who edits a version replaces only that one.
    let expects = match typed.text("version").parse() {
        Ok(version) => Precondition::OneOf(BTreeSet::from([version])),
        Err(_) => Precondition::Absent,
    };
    let text = typed.text("text");
    if text.len() as u64 > pages::EDITED_BYTES {
        let problem = format!(
            "must be at most {} bytes; `everscan payload create` takes larger files",
            pages::EDITED_BYTES
        );
        return Err(Failure::invalid("text", problem));
    }
    let new = payloads::new(
        frame.user,
        group,
        typed.text("payload").trim(),
        None,
        expects,
    )?;
    let upload = frame.user.begin_payload().await?;
    let upload = upload
        .write(bytes::Bytes::copy_from_slice(text.as_bytes()))
        .await?;
    frame.user.store_payload(new, upload).await?;
    Ok(())
}

fn again(
    frame: &Frame<'_>,
    group: &ShownGroup,
    typed: &Typed,
    preview: &[Previewed],
    refused: Refused,
) -> Result<Markup, Failure> {
    let detail = payloads::show(frame.user, &group.id.to_string())?;
    let is_new = typed.text("version").is_empty();
    let mut known = detail.payloads.iter();
    let payload = known.find(|it| !is_new && it.name == typed.text("payload"));
    let draft = Draft {
        text: typed.text("text"),
        preview,
        refused,
    };
    Ok(pages::edited_payload(
        &frame.visit,
        &detail.group,
        payload,
        &draft,
    ))
}

/// The text with the defaults of its variables, and with examples of a name and of a target.
fn preview(group: &ShownGroup, text: &str) -> Vec<Previewed> {
    let template = Template::new(text.as_bytes(), &group.variables);
    let example = |name: &str| match name {
        CALLBACK_VARIABLE => Some("name.callback.example"),
        TARGET_VARIABLE => Some("target.example"),
        _ => None,
    };
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pieces = template.pieces().iter().map(|piece| match piece {
        Piece::Text(text) => Previewed::Text(lossy(text)),
        Piece::Placeholder { written, .. } => match piece.render(example) {
            Ok(value) => Previewed::Filled(lossy(&value)),
            Err(_) => Previewed::Open(lossy(written)),
        },
    });
    pieces.collect()
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (named, name) = (frame.parameter(0), frame.parameter(1));
    let group = payloads::find(frame.user, named)?;
    payloads::delete_payload(frame.user, &group, name, Precondition::Anything).await?;
    let page = links::payload_group(group.id.uuid());
    Ok(frame.done(model::Scope::PayloadRead, &page))
}
