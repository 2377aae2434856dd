//! Renders payloads: each payload for each target, as JSON lines.

use std::collections::BTreeMap;
use std::panic::resume_unwind;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use model::decide::NewMint;
use model::limits::RENDERED_LINES;
use model::payload::{
    CALLBACK_VARIABLE, PayloadGroup, RenderError, TARGET_VARIABLE, Template, name_and_version,
};
use state::MintedLines;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use warp::reply::Response;
use wire::{RenderPayloads, RenderedPayload};

use super::callbacks;
use super::payloads::{self, Body};
use crate::failure::{Failure, shorten};
use crate::limits::{RENDERED, RENDERED_BODIES, RENDERED_BYTES, RENDERED_LINE, RENDERED_PIECE};
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;
use crate::visible::payloads::ShownGroup;

/// What to render.
struct Render {
    group: ShownGroup,
    bodies: Vec<Body>,
    values: BTreeMap<String, String>,
    /// None renders each payload once.
    targets: Vec<Option<String>>,
    minted: Option<Minted>,
}

/// The names of the lines.
struct Minted {
    tags: NewMint,
    zone: String,
}

impl Minted {
    /// The tag of a line, and the name with it.
    fn name(&self, line: u32) -> Option<(String, String)> {
        let tag = self.tags.tag(line)?;
        let name = format!("{}-{tag}.{}", self.tags.mint.server, self.zone);
        Some((tag.to_string(), name))
    }
}

pub(super) async fn render(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let group = payloads::find(user, request.parameter(0))?;
    let asked: RenderPayloads = request.body.json(&request.headers).await?;
    check_names(&group, &asked)?;
    let callback = asked.callback.as_deref();
    let callback = callback.map(|named| callbacks::find(user, named));
    let callback = callback.transpose()?;
    let zones = user.callback_zones().unwrap_or_default();
    let zone = zones.first().cloned().unwrap_or_default();
    let mut values = asked.values;
    if let Some(callback) = callback.as_ref().filter(|_| !zones.is_empty()) {
        let name = format!("{}.{zone}", callback.id);
        values.insert(CALLBACK_VARIABLE.to_owned(), name);
    }
    let wanted = wanted(&group, asked.payload.as_deref(), asked.targets.len().max(1))?;
    let turn = user.render_turn().await;
    let mut bodies = Vec::with_capacity(wanted.len());
    for (name, version) in wanted {
        bodies.push(payloads::body(user, &group, &name, Some(version)).await?);
    }
    let lines = asked.mint.as_ref().map(|_| MintedLines {
        payloads: bodies
            .iter()
            .map(|it| (it.name.clone(), it.version))
            .collect(),
        targets: asked.targets.clone(),
    });
    let targets = match asked.targets.is_empty() {
        true => vec![None],
        false => asked.targets.into_iter().map(Some).collect(),
    };
    let render = Render {
        group,
        bodies,
        values,
        targets,
        minted: None,
    };
    // Names are minted once nothing else can be refused.
    let mut render = computed(move || render.check_values().map(|()| render)).await?;
    if let (Some(asked), Some(lines)) = (asked.mint, &lines) {
        let Some(callback) = &callback else {
            return Err(Failure::invalid(
                "callback",
                "must be given, to mint names of it",
            ));
        };
        let tags = callbacks::mint(user, callback, asked, &render.group, lines).await?;
        render.minted = Some(Minted { tags, zone });
    }
    let user = user.clone();
    Ok(reply::streamed(wire::NDJSON_MEDIA_TYPE, move |pieces| {
        let runtime = Handle::current();
        computed(move || {
            let _turn = turn;
            runtime.block_on(async {
                tokio::select! {
                    () = render.send(&pieces) => {}
                    _ = user.rights_lost() => pieces.cut_off(),
                }
            });
        })
    }))
}

/// Does what takes long on a thread of its own, so that nobody else waits for it.
async fn computed<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is at its end, and so is whoever waits.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Refuses values that no payload of the group can use.
fn check_names(group: &PayloadGroup, asked: &RenderPayloads) -> Result<(), Failure> {
    let is_unknown = |name: &&String| group.variable(name).is_none();
    if let Some(name) = asked.values.keys().find(is_unknown) {
        return Err(Failure::unfit_value(
            &shorten(name),
            "is no variable of the group",
        ));
    }
    if asked.callback.is_some() && group.variable(CALLBACK_VARIABLE).is_none() {
        return Err(Failure::unfit_value(
            CALLBACK_VARIABLE,
            "must be a variable of the group, to take the name to plant",
        ));
    }
    Ok(())
}

/// The wanted payloads with their versions, if they are not too many.
fn wanted(
    group: &PayloadGroup,
    payload: Option<&str>,
    targets: usize,
) -> Result<Vec<(String, u64)>, Failure> {
    let (wanted, bytes) = match payload {
        None => {
            let all = group.payloads.iter();
            let wanted: Vec<_> = all
                .map(|(name, it)| (name.to_string(), it.edit.version))
                .collect();
            let bytes = group.payloads.values().map(|it| it.size).sum();
            (wanted, bytes)
        }
        Some(text) => {
            let found = name_and_version(text).and_then(|(name, version)| {
                let payload = group.payloads.get(&name)?;
                let version = version.unwrap_or(payload.edit.version);
                Some((vec![(name.to_string(), version)], payload.size))
            });
            found.ok_or_else(|| Failure::not_found("payload", text))?
        }
    };
    if wanted.len() * targets > RENDERED_LINES as usize {
        let problem = format!(
            "must be fewer: {} payloads for {targets} targets are more than {RENDERED_LINES} lines",
            wanted.len()
        );
        return Err(Failure::invalid("targets", problem));
    }
    if bytes > RENDERED_BODIES || bytes * targets as u64 > RENDERED_BYTES {
        let problem = format!(
            "must be fewer or smaller: {bytes} bytes for {targets} targets; at most {RENDERED_BODIES} bytes of payloads, and \
             {RENDERED_BYTES} of payloads times targets, are rendered at once"
        );
        return Err(Failure::invalid("payload", problem));
    }
    Ok(wanted)
}

impl Render {
    fn value<'v>(
        &'v self,
        target: Option<&'v str>,
        minted: Option<&'v str>,
    ) -> impl Fn(&str) -> Option<&'v str> {
        move |name| match name {
            TARGET_VARIABLE if target.is_some() => target,
            CALLBACK_VARIABLE if minted.is_some() => minted,
            _ => self.values.get(name).map(String::as_str),
        }
    }

    /// Fails if a value is missing, or if too much would come out. The longest target stands for all.
    fn check_values(&self) -> Result<(), Failure> {
        let targets = self.targets.iter().map(Option::as_deref);
        let longest = targets.max_by_key(|target| target.map_or(0, str::len));
        let mut bytes = 0;
        for body in &self.bodies {
            let template = Template::new(&body.bytes, &self.group.variables);
            let value = self.value(longest.flatten(), None);
            match template.render(RENDERED_LINE, value) {
                Ok(line) => bytes += line.len() * self.targets.len(),
                Err(RenderError::Missing(missing)) => {
                    let problem = format!(
                        "has no value and no default, and payload `{}` uses it",
                        body.name
                    );
                    return Err(Failure::unfit_value(&missing.name, &problem));
                }
                Err(RenderError::TooLong) => {
                    let problem = format!(
                        "must be shorter: payload `{}` has more than {RENDERED_LINE} bytes with them",
                        body.name
                    );
                    return Err(Failure::invalid("values", problem));
                }
            }
        }
        if bytes > RENDERED {
            let problem = format!(
                "must be fewer or shorter: {bytes} bytes would come out, more than {RENDERED}"
            );
            return Err(Failure::invalid("targets", problem));
        }
        Ok(())
    }

    /// Sends all lines. A slow reader occupies the memory of the bodies and of one piece.
    async fn send(&self, pieces: &reply::Pieces) {
        let mut piece = Vec::new();
        let mut lines = 0..;
        for body in &self.bodies {
            let template = Template::new(&body.bytes, &self.group.variables);
            for target in &self.targets {
                let line = lines.next().unwrap_or(u32::MAX);
                let minted = self.minted.as_ref().and_then(|minted| minted.name(line));
                let (tag, name) = minted.unzip();
                let value = self.value(target.as_deref(), name.as_deref());
                let Ok(rendered) = template.render(RENDERED_LINE, value) else {
                    return pieces.cut_off();
                };
                let (text, base64) = match String::from_utf8(rendered) {
                    Ok(text) => (Some(text), None),
                    Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
                };
                let line = RenderedPayload {
                    payload: body.name.to_string(),
                    version: body.version,
                    tag,
                    target: target.clone(),
                    text,
                    base64,
                };
                if serde_json::to_writer(&mut piece, &line).is_err() {
                    return pieces.cut_off();
                }
                piece.push(b'\n');
                if piece.len() >= RENDERED_PIECE
                    && pieces
                        .send(Bytes::from(std::mem::take(&mut piece)))
                        .await
                        .is_err()
                {
                    return;
                }
            }
        }
        // Whoever has gone needs no end.
        drop(pieces.send(Bytes::from(piece)).await);
    }
}
