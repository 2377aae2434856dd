//! `/v0/audit`

use model::SessionId;
use state::{AuditFilter, AuditPlace, AuditRecord};
use warp::reply::Response;
use wire::{AuditToken, Page};

use crate::failure::Failure;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// Changes that people made in any project, newest first. The scope `admin` is always for all of them.
pub(super) async fn list(me: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&load_list(me, request).await?))
}

pub(crate) async fn load_list(
    me: &Visible,
    request: &Request,
) -> Result<Page<wire::AuditRecord>, Failure> {
    let query = &request.query;
    let filter = AuditFilter {
        token: query.get("token").map(str::to_owned),
        since: query.time("since")?,
        until: query.time("until")?,
    };
    let from = query.get("cursor").map(place).transpose()?;
    let page = me.audit(&filter, from, query.limit()?).await?;
    Ok(Page {
        next_cursor: page
            .next
            .map(|AuditPlace { day, before }| format!("{day}.{before}")),
        ..Page::all(page.records.into_iter().map(shown).collect())
    })
}

fn place(cursor: &str) -> Result<AuditPlace, Failure> {
    let read = || {
        let (day, before) = cursor.split_once('.')?;
        let (day, before) = (day.parse().ok()?, before.parse().ok()?);
        Some(AuditPlace { day, before })
    };
    read().ok_or_else(|| Failure::invalid("cursor", "is not the cursor of an answer"))
}

fn shown(record: AuditRecord) -> wire::AuditRecord {
    let AuditRecord { at, entry } = record;
    wire::AuditRecord {
        at,
        token: AuditToken {
            id: entry.token.uuid(),
            name: entry.name,
        },
        session: entry.session.map(SessionId::uuid),
        address: entry.address,
        method: entry.method,
        path: entry.path,
        request_id: entry.request,
    }
}
