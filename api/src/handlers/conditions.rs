//! `/v0/conditions`

use std::sync::Arc;

use model::condition::Condition;
use model::{ConditionId, Scope, Seen, decide};
use warp::reply::Response;
use wire::{Acknowledge, OpenCondition, Page, Silence};

use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

/// The open conditions, oldest first.
pub(crate) fn list(user: &Visible, window: &Window) -> Page<OpenCondition> {
    let now = user.now();
    user.read(|seen| {
        window.cut(
            seen.conditions(),
            |open| format!("{} {}", open.since.timestamp_micros(), open.id),
            |open| convert::conditions::condition(seen, open, now),
        )
    })
}

pub(super) async fn acknowledge(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let id = changeable(user, request.parameter(0))?;
    let asked = request.body.json_or_default(&request.headers).await?;
    Ok(reply::ok(&note(user, id, asked).await?))
}

/// Notes that the caller knows of a condition.
pub(crate) async fn note(
    user: &Visible,
    id: Shown<ConditionId>,
    Acknowledge { note }: Acknowledge,
) -> Result<OpenCondition, Failure> {
    let acknowledge = id.map(|id| decide::Acknowledge {
        condition: *id,
        note,
        actor: user.actor(),
    });
    let condition = user.submit(acknowledge).await?;
    Ok(user.read(|seen| convert::conditions::condition(seen, &condition, user.now())))
}

pub(super) async fn silence(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let id = changeable(user, request.parameter(0))?;
    let asked = request.body.json_or_default(&request.headers).await?;
    Ok(reply::ok(&hush(user, id, asked).await?))
}

/// Folds a condition away for a while.
pub(crate) async fn hush(
    user: &Visible,
    id: Shown<ConditionId>,
    Silence { seconds }: Silence,
) -> Result<OpenCondition, Failure> {
    let silence = id.map(|id| decide::Silence {
        condition: *id,
        seconds,
    });
    let condition = user.submit(silence).await?;
    Ok(user.read(|seen| convert::conditions::condition(seen, &condition, user.now())))
}

/// A condition that the caller may acknowledge and silence. Those of the instance need `admin`.
pub(crate) fn changeable(user: &Visible, text: &str) -> Result<Shown<ConditionId>, Failure> {
    let is_admin = user.rights().scopes.allow(Scope::Admin);
    user.find(|seen| {
        let open = find(seen, text)?;
        match open.project {
            None if !is_admin => Err(Failure::without_scope(Scope::Admin)),
            None | Some(_) => Ok(open.id),
        }
    })
}

/// A condition by its id, or by the beginning of its id.
fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w Arc<Condition>, Failure> {
    const SHORTEST: usize = 4;
    let unknown = || {
        Failure::not_found("open condition", text)
            .hint("`everscan condition list` shows the open conditions")
    };
    if text.len() < SHORTEST {
        return Err(unknown());
    }
    let begins = |open: &&Arc<Condition>| open.id.to_string().starts_with(text);
    let mut found = seen.conditions().filter(begins);
    match (found.next(), found.next()) {
        (Some(open), None) => Ok(open),
        (None, _) => Err(unknown()),
        (Some(_), Some(_)) => Err(Failure::invalid(
            "condition",
            "several open conditions begin with this id; write more digits",
        )),
    }
}
