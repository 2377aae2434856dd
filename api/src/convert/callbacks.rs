//! Converts callback servers and interactions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::callback::{CallbackToken, Interaction, Request};
use model::decide::NewMint;
use model::{Callback, CallbackTag, RunCallback, Scope, Seen};
use reconciler::Handle;
use wire::InteractionRequest;

pub(crate) fn callback(seen: Seen<'_>, callback: &Callback, zones: &[String]) -> wire::Callback {
    let source = seen.source_of(callback.project);
    wire::Callback {
        id: callback.id.to_string(),
        project: source.map_or_else(String::new, |source| source.name.to_string()),
        name: callback.name.to_string(),
        names: match seen.may(Scope::CallbackRead, callback.project) {
            true => names(callback, None, zones),
            false => Vec::new(),
        },
        created_at: callback.created_at,
        created_by: callback.created_by.to_string(),
        keep_days: callback.keep_days,
        tokens: seen.callback_tokens(callback).count() as u64,
        interactions: callback.interactions.count,
        bytes: callback.interactions.bytes,
        left_out: callback.interactions.left_out,
        unknown_tags: callback.interactions.unknown_tags,
        full: callback.is_full(),
    }
}

/// The position of a callback server in lists: by project and name.
pub(crate) fn key(seen: Seen<'_>, callback: &Callback) -> String {
    let source = seen.source_of(callback.project);
    let project = source.map_or_else(String::new, |source| source.name.to_string());
    format!("{project}/{}", callback.name)
}

pub(crate) fn token(
    callback: &Callback,
    token: &CallbackToken,
    zones: &[String],
) -> wire::CallbackToken {
    wire::CallbackToken {
        tag: token.tag.to_string(),
        names: names(callback, Some(token.tag), zones),
        note: token.note.clone(),
        created_at: token.created_at,
        created_by: token.created_by.to_string(),
        expires_at: token.expires_at,
    }
}

/// The only tag of a mint.
pub(crate) fn minted(
    callback: &Callback,
    minted: &NewMint,
    zones: &[String],
) -> Option<wire::CallbackToken> {
    let (tag, mint) = (minted.tag(0)?, &minted.mint);
    Some(wire::CallbackToken {
        tag: tag.to_string(),
        names: names(callback, Some(tag), zones),
        note: mint.note.clone(),
        created_at: mint.created_at,
        created_by: mint.created_by.to_string(),
        expires_at: mint.expires_at,
    })
}

/// The name of a job. None if callbacks are off.
pub(crate) fn planted(handle: &Handle, callback: RunCallback) -> Option<String> {
    let RunCallback { server, tag, .. } = callback;
    let zone = handle.callbacks()?.zones.first()?;
    Some(format!("{server}-{tag}.{zone}"))
}

fn names(callback: &Callback, tag: Option<CallbackTag>, zones: &[String]) -> Vec<String> {
    let id = callback.id;
    let name = |zone: &String| match tag {
        Some(tag) => format!("{id}-{tag}.{zone}"),
        None => format!("{id}.{zone}"),
    };
    zones.iter().map(name).collect()
}

pub(crate) fn interaction(it: &Interaction, raw: Option<&[u8]>) -> wire::Interaction {
    wire::Interaction {
        number: it.number,
        at: it.heard.at,
        peer: it.heard.peer.to_string(),
        tag: it.heard.tag.map(|tag| tag.to_string()),
        note: it.planted.note.clone(),
        payload: it
            .planted
            .payload
            .as_ref()
            .map(|planted| wire::PlantedPayload {
                group: planted.group.clone(),
                name: planted.payload.to_string(),
                version: planted.version,
                target: it.planted.target.clone(),
            }),
        job: it.planted.job.as_ref().map(|job| wire::PlantingJob {
            id: job.id.uuid(),
            scan: job.scan.scan.to_string(),
        }),
        request: request(&it.heard.request),
        answer: it.heard.answer.clone(),
        rule: it.heard.rule.clone(),
        left_out: it.left_out,
        repeats: it.repeats,
        raw_bytes: it.raw_bytes,
        raw: raw.map(|raw| STANDARD.encode(raw)),
    }
}

fn request(request: &Request) -> InteractionRequest {
    match request.clone() {
        Request::Dns {
            transport,
            name,
            qtype,
            client_subnet,
        } => InteractionRequest::Dns {
            transport,
            name,
            qtype,
            client_subnet,
        },
        Request::Http {
            method,
            target,
            host,
            head_bytes,
            truncated,
            malformed,
            tls,
            sni,
        } => InteractionRequest::Http {
            method,
            target,
            host,
            head_bytes,
            truncated,
            malformed,
            tls,
            sni,
        },
    }
}
