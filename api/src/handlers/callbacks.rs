//! `/v0/callbacks`

use chrono::TimeDelta;
use http::StatusCode;
use model::callback::{CallbackTag, Interaction, RequestType};
use model::decide::{self, NewMint};
use model::limits::{CALLBACK_TOKEN_LIFE, INTERACTION_DAYS};
use model::payload::PayloadGroup;
use model::{JobId, Scope};
use state::{InteractionFilter, InteractionPlace, MintedLines};
use tokio::time::Instant;
use warp::reply::Response;
use wire::{ErrorCode, Page};
use workflow::notify::NotifyName;

use super::projects;
use crate::convert;
use crate::failure::Failure;
use crate::limits::{INTERACTIONS_PAGE, SEARCHED_CHARS, WAIT};
use crate::page::Window;
use crate::reply;
use crate::request::{Query, Request};
use crate::visible::{Visible, callbacks::ShownCallback};

pub(crate) fn list(
    user: &Visible,
    project: Option<&str>,
    window: &Window,
) -> Result<Page<wire::Callback>, Failure> {
    let zones = user.callback_zones().unwrap_or_default();
    user.read(|seen| {
        let project = project
            .map(|named| projects::find(seen, named))
            .transpose()?;
        let project = project.map(|source| source.project);
        let callbacks = seen.callbacks();
        let callbacks = callbacks.filter(|it| project.is_none_or(|project| it.project == project));
        Ok(window.cut(
            callbacks,
            |callback| convert::callbacks::key(seen, callback),
            |callback| convert::callbacks::callback(seen, callback, zones),
        ))
    })
}

/// The callback server with this id.
pub(crate) fn find(user: &Visible, named: &str) -> Result<ShownCallback, Failure> {
    let found = user.find(|seen| {
        let missing = || {
            Failure::not_found("callback server", named)
                .hint("`everscan callback list` shows the callback servers")
        };
        let id = named.parse().map_err(|_| missing())?;
        Ok(seen.callback(id).ok_or_else(missing)?.clone())
    });
    found.map_err(|missing| {
        let id = named.parse().ok();
        user.without_role(|seen| Some(seen.callback(id?)?.project))
            .unwrap_or(missing)
    })
}

pub(crate) fn show(user: &Visible, named: &str) -> Result<wire::Callback, Failure> {
    let callback = find(user, named)?;
    let zones = user.callback_zones().unwrap_or_default();
    Ok(user.read(|seen| convert::callbacks::callback(seen, &callback, zones)))
}

pub(super) async fn create(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let asked: wire::CreateCallback = request.body.json(&request.headers).await?;
    let created = make(user, asked).await?;
    Ok(reply::json(StatusCode::CREATED, &created))
}

/// Creates a callback server.
pub(crate) async fn make(
    user: &Visible,
    asked: wire::CreateCallback,
) -> Result<wire::Callback, Failure> {
    let zones = on(user)?;
    let name =
        NotifyName::new(asked.name).map_err(|error| Failure::invalid("name", error.to_string()))?;
    let keep_days = match (asked.keep_days, asked.keep_forever) {
        (None, true) => None,
        (days, false) => Some(days.unwrap_or(INTERACTION_DAYS)),
        (Some(_), true) => {
            let problem = "cannot be given together with `keep_forever`";
            return Err(Failure::invalid("keep_days", problem));
        }
    };
    let project = user.find(|seen| Ok(projects::find(seen, &asked.project)?.project))?;
    let create = project.map(|project| decide::CreateCallback {
        project: *project,
        name,
        keep_days,
        actor: user.actor(),
    });
    let callback = user.submit(create).await?;
    Ok(user.read(|seen| convert::callbacks::callback(seen, &callback, zones)))
}

/// The zones, if callbacks are on.
fn on(user: &Visible) -> Result<&[String], Failure> {
    user.callback_zones().ok_or_else(off)
}

pub(crate) fn off() -> Failure {
    let text = "this daemon has no zone for callback servers";
    Failure::new(ErrorCode::CallbacksOff, text)
        .hint("the operator configures `callback` with a zone in everscand's file")
}

pub(crate) async fn delete(user: &Visible, named: &str) -> Result<(), Failure> {
    let callback = find(user, named)?;
    user.delete_callback(&callback).await
}

pub(crate) fn rules(user: &Visible, named: &str) -> Result<wire::CallbackRules, Failure> {
    Ok(convert::callback_rules::shown(&find(user, named)?.rules))
}

pub(super) async fn set_rules(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let callback = find(user, request.parameter(0))?;
    let asked: wire::CallbackRules = request.body.json(&request.headers).await?;
    set_rules_to(user, &callback, asked).await?;
    Ok(reply::json(
        StatusCode::OK,
        &rules(user, request.parameter(0))?,
    ))
}

pub(crate) async fn set_rules_to(
    user: &Visible,
    callback: &ShownCallback,
    asked: wire::CallbackRules,
) -> Result<(), Failure> {
    let rules = convert::callback_rules::asked(asked)?;
    let set = callback.map(|callback| decide::SetCallbackRules {
        server: callback.id,
        rules,
    });
    user.submit(set).await
}

pub(crate) fn tokens(
    user: &Visible,
    named: &str,
    window: &Window,
) -> Result<Page<wire::CallbackToken>, Failure> {
    let callback = find(user, named)?;
    let zones = user.callback_zones().unwrap_or_default();
    Ok(user.read(|seen| {
        window.cut(
            seen.callback_tokens(&callback),
            |token| format!("{} {}", token.created_at.timestamp_micros(), token.tag),
            |token| convert::callbacks::token(&callback, token, zones),
        )
    }))
}

pub(super) async fn create_token(
    user: &Visible,
    mut request: Request,
) -> Result<Response, Failure> {
    let callback = find(user, request.parameter(0))?;
    let asked: wire::CreateCallbackToken = request.body.json(&request.headers).await?;
    let token = make_token(user, &callback, asked).await?;
    Ok(reply::json(StatusCode::CREATED, &token))
}

/// Makes a name of a callback server.
pub(crate) async fn make_token(
    user: &Visible,
    callback: &ShownCallback,
    asked: wire::CreateCallbackToken,
) -> Result<wire::CallbackToken, Failure> {
    let zones = on(user)?;
    let life = life_of(&asked)?;
    // The names of jobs are many, and known by the job: they have no live record.
    if let Some(job) = user.principal().job() {
        let mint = callback.map(|callback| decide::MintTags {
            server: callback.id,
            lines: 1,
            note: asked.note,
            life,
            job: Some(job),
            group: None,
            actor: user.actor(),
        });
        let minted = user.submit(mint).await?;
        let minted = convert::callbacks::minted(callback, &minted, zones);
        return minted.ok_or_else(Failure::defect);
    }
    let create = callback.map(|callback| decide::CreateCallbackToken {
        server: callback.id,
        note: asked.note,
        life,
        actor: user.actor(),
    });
    let token = user.submit(create).await?;
    Ok(convert::callbacks::token(callback, &token, zones))
}

/// How long names are answered. None is for ever.
fn life_of(asked: &wire::CreateCallbackToken) -> Result<Option<TimeDelta>, Failure> {
    match (asked.expires_in_seconds, asked.never_expires) {
        (None, true) => Ok(None),
        (None, false) => Ok(Some(CALLBACK_TOKEN_LIFE)),
        (Some(seconds), false) => life(seconds).map(Some),
        (Some(_), true) => {
            let problem = "cannot be given together with `never_expires`";
            Err(Failure::invalid("expires_in_seconds", problem))
        }
    }
}

/// Makes a name for each line of a render.
pub(crate) async fn mint(
    user: &Visible,
    callback: &ShownCallback,
    asked: wire::CreateCallbackToken,
    group: &PayloadGroup,
    lines: &MintedLines,
) -> Result<NewMint, Failure> {
    on(user)?;
    // The names of a job end by themselves, and their hits count as caused by it.
    let (rights, is_job) = (user.all_rights(), user.principal().job().is_some());
    let scope = match is_job {
        true => Scope::CallbackOwn,
        false => Scope::CallbackWrite,
    };
    if !rights.may(scope, callback.project) {
        return Err(match user.principal().token() {
            _ if is_job => Failure::without_permission(scope),
            Some(_) if !rights.scopes.allow(scope) => Failure::without_scope(scope),
            _ => Failure::without_role(scope),
        });
    }
    if group.project != callback.project {
        let problem = "must be of the project of the payload group";
        return Err(Failure::invalid("callback", problem));
    }
    let life = life_of(&asked)?;
    let count = lines.payloads.len() * lines.targets.len().max(1);
    let mint = callback.map(|callback| decide::MintTags {
        server: callback.id,
        lines: u32::try_from(count).unwrap_or(u32::MAX),
        note: asked.note,
        life,
        job: user.principal().job(),
        group: Some(group.name.to_string()),
        actor: user.actor(),
    });
    user.mint_lines(mint, lines).await
}

fn life(seconds: u64) -> Result<TimeDelta, Failure> {
    let life = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
    let life = life.filter(|life| *life > TimeDelta::zero() && life.num_days() <= 36_500);
    life.ok_or_else(|| Failure::invalid("expires_in_seconds", "must be 1 s to 100 years"))
}

pub(crate) async fn end_token(user: &Visible, named: &str, tag: &str) -> Result<(), Failure> {
    let callback = find(user, named)?;
    let tag: CallbackTag = tag
        .parse()
        .map_err(|_| Failure::not_found("name of this callback server", tag))?;
    let end = callback.map(|callback| decide::EndCallbackToken {
        server: callback.id,
        tag,
    });
    user.submit(end).await
}

/// Which interactions to list.
pub(crate) struct InteractionsQuery {
    filter: InteractionFilter,
    from: InteractionPlace,
    waits: bool,
    has_raw: bool,
    limit: usize,
}

impl InteractionsQuery {
    /// The newest interactions.
    pub(crate) fn newest() -> Self {
        Self {
            filter: InteractionFilter::default(),
            from: InteractionPlace::Before(None),
            waits: false,
            has_raw: false,
            limit: INTERACTIONS_PAGE,
        }
    }

    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        let number = |name: &str| -> Result<Option<u64>, Failure> {
            let parsed = query.get(name).map(str::parse).transpose();
            parsed.map_err(|_| Failure::invalid(name, "must be a number"))
        };
        let tag = query.get("tag").map(|tag| {
            let tag = tag.parse::<CallbackTag>();
            tag.map_err(|error| Failure::invalid("tag", error.to_string()))
        });
        let kind = query.get("type").map(|name| {
            let kind = RequestType::ALL.into_iter().find(|it| it.name() == name);
            kind.ok_or_else(|| Failure::invalid("type", "must be dns or http"))
        });
        let address = query.get("address").map(|text| {
            let address = text.parse();
            address.map_err(|_| Failure::invalid("address", "must be an IP address"))
        });
        let payload = query.get("payload").map(|text| match text.split_once('/') {
            Some((group, name)) => (group.to_owned(), Some(name.to_owned())),
            None => (text.to_owned(), None),
        });
        let job = query.get("job").map(|job| {
            let job = job.parse::<JobId>();
            job.map_err(|_| Failure::invalid("job", "must be the id of a job"))
        });
        let text = query.owned("text");
        let is_short = |text: &String| !text.is_empty() && text.chars().count() <= SEARCHED_CHARS;
        if text.as_ref().is_some_and(|text| !is_short(text)) {
            let problem = format!("must have 1 to {SEARCHED_CHARS} characters");
            return Err(Failure::invalid("text", problem));
        }
        let from = match (number("after")?, query.get("cursor")) {
            (Some(after), None) => InteractionPlace::After(after),
            (None, _) => InteractionPlace::Before(number("cursor")?),
            (Some(_), Some(_)) => {
                let problem = "cannot be given together with `cursor`";
                return Err(Failure::invalid("after", problem));
            }
        };
        Ok(Self {
            filter: InteractionFilter {
                tag: tag.transpose()?,
                kind: kind.transpose()?,
                address: address.transpose()?,
                payload,
                text,
                job: job.transpose()?,
                ..InteractionFilter::default()
            },
            from,
            waits: query.flag("wait")?,
            has_raw: query.flag("raw")?,
            limit: query.limit_of(INTERACTIONS_PAGE)?,
        })
    }
}

/// The interactions after a number, oldest first, or before the cursor, newest first. With `after`, the cursor of the answer is a
/// number to list after.
pub(crate) async fn interactions(
    user: &Visible,
    callback: &ShownCallback,
    wanted: &InteractionsQuery,
) -> Result<Page<wire::Interaction>, Failure> {
    let held_until = Instant::now() + WAIT;
    let mut from = wanted.from;
    loop {
        let mut changes = user.changed();
        changes.mark_unchanged();
        let next = user.next_interaction(callback);
        // Whoever searches or asks for raw requests takes turns with others.
        let is_costly = wanted.has_raw || wanted.filter.text.is_some();
        let turn = match is_costly {
            true => Some(user.list_turn().await),
            false => None,
        };
        let page = user.interactions(callback, &wanted.filter, from, wanted.limit);
        let page = page.await?;
        let is_over = page.interactions.is_empty() && page.next.is_none();
        let is_held = wanted.waits && is_over && next.is_some();
        let (InteractionPlace::After(after), true) = (from, is_held) else {
            let next_cursor = page.next.map(|next| next.to_string());
            let mut items = Vec::with_capacity(page.interactions.len());
            for interaction in &page.interactions {
                items.push(shown(user, callback, interaction, wanted.has_raw).await?);
            }
            return Ok(Page {
                next_cursor,
                ..Page::all(items)
            });
        };
        drop(turn);
        // What was searched without a match is not searched again.
        let searched = next.map_or(after, |next| next.saturating_sub(1));
        from = InteractionPlace::After(searched.max(after));
        while user.next_interaction(callback) == next {
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(held_until) => return Ok(nothing(from)),
                () = user.stopping() => return Ok(nothing(from)),
                failure = user.rights_lost() => return Err(failure),
            }
        }
    }
}

/// An empty page whose cursor goes on after what was searched.
fn nothing(from: InteractionPlace) -> Page<wire::Interaction> {
    let next_cursor = match from {
        InteractionPlace::After(after) => Some(after.to_string()),
        InteractionPlace::Before(_) => None,
    };
    Page {
        next_cursor,
        ..Page::all(Vec::new())
    }
}

async fn shown(
    user: &Visible,
    callback: &ShownCallback,
    interaction: &Interaction,
    has_raw: bool,
) -> Result<wire::Interaction, Failure> {
    let raw = match has_raw {
        true => Some(user.raw_request(callback, interaction).await?),
        false => None,
    };
    Ok(convert::callbacks::interaction(interaction, raw.as_deref()))
}

pub(crate) async fn interaction(
    user: &Visible,
    named: &str,
    number: &str,
) -> Result<wire::Interaction, Failure> {
    let callback = find(user, named)?;
    let missing = || Failure::not_found("interaction", number);
    let parsed = number.parse().map_err(|_| missing())?;
    let found = user.interaction(&callback, parsed).await?;
    let (found, raw) = found.ok_or_else(missing)?;
    Ok(convert::callbacks::interaction(&found, Some(&raw)))
}
