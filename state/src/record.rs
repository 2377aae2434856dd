//! The table of all kinds of records: the type, key and id of each, whether it is live, and the change that adds it to
//! the world.

use std::sync::Arc;

use model::retention::{Expiry, Retention};
use model::{
    Blob, BlobLink, BlobUsage, BrowserSession, Change, Clocks, Digests, Idempotency, Job,
    ProjectSecrets, ProjectVars, Registration, Repeats, RevisionRecord, Runner, ScanHead, ScanKey,
    Source, Suspension, TipRecord, Token, WorkflowRecord,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::Key;

use crate::layout::Layout;

/// The latest run of equal evaluations of a scan's triggers.
#[derive(Serialize, Deserialize)]
pub(crate) struct RepeatsRecord {
    #[serde(flatten)]
    pub(crate) scan: ScanKey,
    #[serde(flatten)]
    pub(crate) repeats: Repeats,
}

/// The properties of every kind of record.
pub(crate) trait Record: Serialize + DeserializeOwned {
    const KIND: Kind;

    /// The only valid key of the record.
    fn place(&self) -> Key;

    /// The id or name in the envelope of the record.
    fn id(&self) -> String;

    /// Whether decisions may need the record. Live records are in memory.
    fn is_live(&self) -> bool;

    /// The change that adds a live record to the world. `None` for kinds that no decision reads.
    fn into_change(self) -> Option<Change>;
}

macro_rules! records {
    ($($kind:ident($body:ty): |$it:ident| {
        place: $place:expr,
        id: $id:expr,
        live: $live:expr,
        change: $change:expr,
    })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum Kind {
            $($kind,)*
        }

        /// A record with the type of its kind.
        pub(crate) enum Typed {
            $($kind($body),)*
        }

        $(impl Record for $body {
            const KIND: Kind = Kind::$kind;

            fn place(&self) -> Key {
                let $it = self;
                $place
            }

            fn id(&self) -> String {
                let $it = self;
                $id.to_string()
            }

            fn is_live(&self) -> bool {
                let $it = self;
                $live($it)
            }

            fn into_change(self) -> Option<Change> {
                let $it = self;
                $change($it)
            }
        })*

        impl Typed {
            /// Reads the record in an envelope as this kind.
            pub(crate) fn parse(kind: Kind, envelope: &[u8]) -> Result<Self, serde_json::Error> {
                Ok(match kind {
                    $(Kind::$kind => Self::$kind(body(envelope)?),)*
                })
            }

            pub(crate) fn place(&self) -> Key {
                match self {
                    $(Self::$kind(record) => record.place(),)*
                }
            }

            pub(crate) fn id(&self) -> String {
                match self {
                    $(Self::$kind(record) => record.id(),)*
                }
            }

            pub(crate) fn is_live(&self) -> bool {
                match self {
                    $(Self::$kind(record) => record.is_live(),)*
                }
            }

            pub(crate) fn into_change(self) -> Option<Change> {
                match self {
                    $(Self::$kind(record) => record.into_change(),)*
                }
            }
        }
    };
}

fn always<R>(_: &R) -> bool {
    true
}

fn never<R>(_: &R) -> bool {
    false
}

fn none<R>(_: R) -> Option<Change> {
    None
}

/// The change of a record that the world shares.
fn shared<R>(change: impl FnOnce(Arc<R>) -> Change) -> impl FnOnce(R) -> Option<Change> {
    |record| Some(change(Arc::new(record)))
}

records! {
    Source(Source): |it| {
        place: Layout::source(&it.name),
        id: it.name,
        live: always,
        change: shared(Change::Source),
    }
    Tip(TipRecord): |it| {
        place: Layout::tip(&it.source, it.tip.number, &it.tip.commit),
        id: it.tip.commit,
        live: never,
        change: none,
    }
    Workflow(WorkflowRecord): |it| {
        place: Layout::workflow(it.id),
        id: it.id,
        live: always,
        change: shared(Change::Workflow),
    }
    Revision(RevisionRecord): |it| {
        place: Layout::revision(it.workflow.id, &it.reference),
        id: it.reference.id,
        live: never,
        change: none,
    }
    ScanHead(ScanHead): |it| {
        place: Layout::head(&it.key()),
        id: it.scan,
        live: always,
        change: shared(Change::Head),
    }
    Digests(Digests): |it| {
        place: Layout::digests(&it.key()),
        id: it.scan,
        live: always,
        change: shared(Change::Digests),
    }
    Repeats(RepeatsRecord): |it| {
        place: Layout::repeats(&it.scan),
        id: it.scan.scan,
        live: always,
        change: |it: Self| Some(Change::Repeats(it.scan, Some(it.repeats))),
    }
    Suspension(Suspension): |it| {
        place: Layout::suspension(it.workflow.id, it.scan.as_ref()),
        id: it.scan.as_ref().map_or_else(|| it.workflow.id.to_string(), ToString::to_string),
        live: always,
        change: shared(Change::Suspension),
    }
    Job(Job): |it| {
        place: Layout::job(it.id),
        id: it.id,
        live: |it: &Self| !it.state.is_terminal(),
        change: shared(Change::Job),
    }
    Runner(Runner): |it| {
        place: Layout::runner(it.id),
        id: it.id,
        live: always,
        change: shared(Change::Runner),
    }
    Registration(Registration): |it| {
        place: Layout::registration(it.id),
        id: it.id,
        live: always,
        change: shared(Change::Registration),
    }
    Token(Token): |it| {
        place: Layout::token(it.id),
        id: it.id,
        live: always,
        change: shared(Change::Token),
    }
    Session(BrowserSession): |it| {
        place: Layout::session(it.id),
        id: it.id,
        live: always,
        change: shared(Change::Session),
    }
    Vars(ProjectVars): |it| {
        place: Layout::vars(it.project),
        id: it.project,
        live: always,
        change: shared(Change::Vars),
    }
    Secrets(ProjectSecrets): |it| {
        place: Layout::secrets(it.project),
        id: it.project,
        live: always,
        change: shared(Change::Secrets),
    }
    Blob(Blob): |it| {
        place: Layout::blob_record(it.project, &it.path),
        id: it.path,
        live: |it: &Self| it.expires_at.is_some(),
        change: shared(Change::Blob),
    }
    BlobLink(BlobLink): |it| {
        place: Layout::blob_link(it.id),
        id: it.id,
        live: always,
        change: shared(Change::BlobLink),
    }
    BlobUsage(BlobUsage): |it| {
        place: Layout::blob_usage(it.project),
        id: it.project,
        live: always,
        change: shared(Change::BlobUsage),
    }
    Idempotency(Idempotency): |it| {
        place: Layout::idempotency(&it.key),
        id: it.key,
        live: always,
        change: shared(Change::Idempotency),
    }
    Retention(Retention): |it| {
        place: Layout::retention(&it.key()),
        id: it.scan,
        live: always,
        change: shared(Change::Retention),
    }
    Clock(Clocks): |_it| {
        place: Layout::clock(),
        id: "clock",
        live: always,
        change: |it| Some(Change::Clocks(Some(Arc::new(it)))),
    }
    Expiry(Expiry): |it| {
        place: Layout::expiry(it),
        id: it.job,
        live: never,
        change: none,
    }
}

pub(crate) fn body<B: DeserializeOwned>(envelope: &[u8]) -> Result<B, serde_json::Error> {
    #[derive(Deserialize)]
    struct OnlyBody<B> {
        body: B,
    }
    let OnlyBody { body } = serde_json::from_slice(envelope)?;
    Ok(body)
}
