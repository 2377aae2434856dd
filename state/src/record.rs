//! The table of all kinds of records: the type, key and id of each, whether it is live, and the change that adds it to
//! the world.

use std::sync::Arc;

use model::callback::{CallbackCertificate, Mint};
use model::channel::Channel;
use model::condition::Condition;
use model::outbox::Outgoing;
use model::retention::{Expiry, Retention};
use model::{
    Blob, BlobLink, BlobUsage, BrowserSession, Callback, CallbackToken, Change, Clocks, Digests,
    Idempotency, Job, PayloadGroup, ProjectRules, ProjectSecrets, ProjectVars, Registration,
    Repeats, RevisionRecord, Runner, ScanHead, ScanKey, Source, Suspension, TipRecord, Token, User,
    WorkflowRecord,
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
}

/// How a start brings a live record into the world.
pub(crate) enum Load {
    /// It does not: no decision reads such records.
    Nothing,
    World(Change),
    /// Into the world, if the file is still there.
    Credential(Change),
    /// Into the world, with the records next to it.
    Head(Arc<ScanHead>),
    Digests(Arc<Digests>),
    Repeats(RepeatsRecord),
}

macro_rules! records {
    ($($kind:ident($body:ty): |$it:ident| {
        place: $place:expr,
        id: $id:expr,
        live: $live:expr,
        load: $load:expr,
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

            pub(crate) fn into_load(self) -> Load {
                match self {
                    $(Self::$kind(record) => $load(record),)*
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

fn nothing<R>(_: R) -> Load {
    Load::Nothing
}

fn world<R>(change: impl FnOnce(Arc<R>) -> Change) -> impl FnOnce(R) -> Load {
    |record| Load::World(change(Arc::new(record)))
}

fn credential<R>(change: impl FnOnce(Arc<R>) -> Change) -> impl FnOnce(R) -> Load {
    |record| Load::Credential(change(Arc::new(record)))
}

records! {
    Source(Source): |it| {
        place: Layout::source(&it.name),
        id: it.name,
        live: always,
        load: world(Change::Source),
    }
    Tip(TipRecord): |it| {
        place: Layout::tip(&it.source, it.tip.number, &it.tip.commit),
        id: it.tip.commit,
        live: never,
        load: nothing,
    }
    Workflow(WorkflowRecord): |it| {
        place: Layout::workflow(it.id),
        id: it.id,
        live: always,
        load: world(Change::Workflow),
    }
    Revision(RevisionRecord): |it| {
        place: Layout::revision(it.workflow.id, &it.reference),
        id: it.reference.id,
        live: never,
        load: nothing,
    }
    ScanHead(ScanHead): |it| {
        place: Layout::head(&it.key()),
        id: it.scan,
        live: always,
        load: |it| Load::Head(Arc::new(it)),
    }
    Digests(Digests): |it| {
        place: Layout::digests(&it.key()),
        id: it.scan,
        live: always,
        load: |it| Load::Digests(Arc::new(it)),
    }
    Repeats(RepeatsRecord): |it| {
        place: Layout::repeats(&it.scan),
        id: it.scan.scan,
        live: always,
        load: Load::Repeats,
    }
    Suspension(Suspension): |it| {
        place: Layout::suspension(it.workflow.id, it.scan.as_ref()),
        id: it.scan.as_ref().map_or_else(|| it.workflow.id.to_string(), ToString::to_string),
        live: always,
        load: world(Change::Suspension),
    }
    Job(Job): |it| {
        place: Layout::job(it.id),
        id: it.id,
        live: |it: &Self| !it.state.is_terminal(),
        load: world(Change::Job),
    }
    Runner(Runner): |it| {
        place: Layout::runner(it.id),
        id: it.id,
        live: always,
        load: credential(Change::Runner),
    }
    Registration(Registration): |it| {
        place: Layout::registration(it.id),
        id: it.id,
        live: always,
        load: credential(Change::Registration),
    }
    Token(Token): |it| {
        place: Layout::token(it.id),
        id: it.id,
        live: always,
        load: credential(Change::Token),
    }
    User(User): |it| {
        place: Layout::user(it.id),
        id: it.id,
        live: always,
        load: credential(Change::User),
    }
    Session(BrowserSession): |it| {
        place: Layout::session(it.id),
        id: it.id,
        live: always,
        load: credential(Change::Session),
    }
    Vars(ProjectVars): |it| {
        place: Layout::vars(it.project),
        id: it.project,
        live: always,
        load: world(Change::Vars),
    }
    Secrets(ProjectSecrets): |it| {
        place: Layout::secrets(it.project),
        id: it.project,
        live: always,
        load: world(Change::Secrets),
    }
    Rules(ProjectRules): |it| {
        place: Layout::rules(it.project),
        id: it.project.map_or_else(|| "instance".to_owned(), |project| project.to_string()),
        live: always,
        load: world(Change::Rules),
    }
    Blob(Blob): |it| {
        place: Layout::blob_record(it.project, &it.path),
        id: it.path,
        live: |it: &Self| it.expires_at.is_some(),
        load: world(Change::Blob),
    }
    BlobLink(BlobLink): |it| {
        place: Layout::blob_link(it.id),
        id: it.id,
        live: always,
        load: credential(Change::BlobLink),
    }
    BlobUsage(BlobUsage): |it| {
        place: Layout::blob_usage(it.project),
        id: it.project,
        live: always,
        load: world(Change::BlobUsage),
    }
    Idempotency(Idempotency): |it| {
        place: Layout::idempotency(&it.key),
        id: it.key,
        live: always,
        load: world(Change::Idempotency),
    }
    Retention(Retention): |it| {
        place: Layout::retention(&it.key()),
        id: it.scan,
        live: always,
        load: world(Change::Retention),
    }
    Condition(Condition): |it| {
        place: Layout::condition(it.id),
        id: it.id,
        live: always,
        load: world(Change::Condition),
    }
    Callback(Callback): |it| {
        place: Layout::callback(it.id),
        id: it.id,
        live: always,
        load: world(Change::Callback),
    }
    CallbackToken(CallbackToken): |it| {
        place: Layout::callback_token(it.server, it.tag),
        id: it.tag,
        live: always,
        load: world(Change::CallbackToken),
    }
    PayloadGroup(PayloadGroup): |it| {
        place: Layout::payload_group(it.id),
        id: it.id,
        live: always,
        load: world(Change::PayloadGroup),
    }
    Mint(Mint): |it| {
        place: Layout::minted(it.server, it.number),
        id: it.number,
        live: never,
        load: nothing,
    }
    CallbackCertificate(CallbackCertificate): |_it| {
        place: Layout::callback_certificate(),
        id: "certificate",
        live: always,
        load: world(Change::CallbackCertificate),
    }
    Channel(Channel): |it| {
        place: Layout::channel(it.id),
        id: it.id,
        live: always,
        load: world(Change::Channel),
    }
    Outgoing(Outgoing): |it| {
        place: Layout::outgoing(it.id),
        id: it.id,
        live: always,
        load: world(Change::Outgoing),
    }
    Clock(Clocks): |_it| {
        place: Layout::clock(),
        id: "clock",
        live: always,
        load: |it| Load::World(Change::Clocks(Some(Arc::new(it)))),
    }
    Expiry(Expiry): |it| {
        place: Layout::expiry(it),
        id: it.job,
        live: never,
        load: nothing,
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
