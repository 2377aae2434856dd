//! `/v0/audit`

use model::{AuditAction, AuditKind, JobId, Scopes, SessionId};
use state::{AuditFilter, AuditRecord, DayPlace};
use wire::{AuditRunner, AuditToken, Page};

use crate::failure::Failure;
use crate::request::Query;
use crate::visible::Visible;

pub(crate) struct AuditQuery {
    filter: AuditFilter,
    from: Option<DayPlace>,
    limit: usize,
}

impl AuditQuery {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        Ok(Self {
            filter: AuditFilter {
                actor: query.owned("actor"),
                kind: query.get("kind").map(kind).transpose()?,
                since: query.time("since")?,
                until: query.time("until")?,
            },
            from: query.get("cursor").map(place).transpose()?,
            limit: query.limit()?,
        })
    }
}

/// What people did in any project, newest first. The scope `admin` always covers all projects.
pub(crate) async fn list(
    user: &Visible,
    query: &AuditQuery,
) -> Result<Page<wire::AuditRecord>, Failure> {
    let page = user.audit(&query.filter, query.from, query.limit).await?;
    Ok(Page {
        next_cursor: page.next.map(cursor),
        ..Page::all(page.records.into_iter().map(shown).collect())
    })
}

fn kind(name: &str) -> Result<AuditKind, Failure> {
    AuditKind::named(name).ok_or_else(|| {
        let known = AuditKind::NAMES.join(", ");
        Failure::invalid("kind", format!("is not one of {known}"))
    })
}

/// The cursor of a place in a ledger of days.
pub(crate) fn cursor(DayPlace { day, before }: DayPlace) -> String {
    format!("{day}.{before}")
}

pub(crate) fn place(cursor: &str) -> Result<DayPlace, Failure> {
    let read = || {
        let (day, before) = cursor.split_once('.')?;
        let (day, before) = (day.parse().ok()?, before.parse().ok()?);
        Some(DayPlace { day, before })
    };
    read().ok_or_else(|| Failure::invalid("cursor", "is not from this list"))
}

fn shown(record: AuditRecord) -> wire::AuditRecord {
    let AuditRecord {
        at,
        entry,
        actions,
        more_actions,
    } = record;
    let actor = entry.actor.unwrap_or_default();
    wire::AuditRecord {
        at,
        user: actor.user.clone(),
        token: actor.token.map(|token| AuditToken {
            id: token.uuid(),
            name: actor.name.clone(),
        }),
        job: actor.job.map(JobId::uuid),
        runner: actor.runner.map(|runner| AuditRunner {
            id: runner.uuid(),
            name: actor.name.clone(),
        }),
        session: actor.session.map(SessionId::uuid),
        address: entry.address,
        method: entry.method,
        path: entry.path,
        request_id: entry.request,
        actions: actions.into_iter().map(action).collect(),
        more_actions,
    }
}

fn action(action: AuditAction) -> wire::AuditAction {
    let scopes = action.scopes.iter().flat_map(Scopes::iter);
    wire::AuditAction {
        kind: action.kind.name().to_owned(),
        id: action.id,
        name: action.name,
        project: action.project,
        workflow: action.workflow,
        scan: action.scan,
        job: action.job.map(JobId::uuid),
        version: action.version,
        scopes: scopes.map(|scope| scope.name().to_owned()).collect(),
        expires_at: action.expires_at,
        reason: action.reason,
        count: action.count,
    }
}
