//! The audit log.

use chrono::{DateTime, Utc};
use wire::{AuditRecord, Page};

use crate::job::rfc3339;
use crate::route::Route;
use crate::{Client, Error};

/// Selects lines of the audit log. A field that is `None` does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Lines of the token with this id or name.
    pub actor: Option<String>,
    /// Lines with an action of this kind, as in `token_created`.
    pub kind: Option<String>,
    /// Lines at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Lines at this time or earlier.
    pub until: Option<DateTime<Utc>>,
}

impl Client {
    /// One page of the actions of people, newest first: `GET /audit`. `cursor` is the `next_cursor` of the previous page.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<AuditRecord>, Error> {
        let route = Route::v0("audit")
            .with_some("actor", filter.actor.as_ref())
            .with_some("kind", filter.kind.as_ref())
            .with_some("since", filter.since.as_ref().map(rfc3339))
            .with_some("until", filter.until.as_ref().map(rfc3339))
            .with_some("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }
}
