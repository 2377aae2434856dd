//! The JSON contract of `/v0`: requests and responses as they are on the wire.
//!
//! The types are plain data. `api` converts them from the domain by hand, so that renaming a field inside the daemon
//! cannot change the contract. Times are RFC 3339 in UTC, ids are UUIDs, names are in snake_case. Clients ignore
//! unknown members of answers, so an old client works with a newer daemon.

#[macro_use]
mod macros;

mod artifact;
mod audit;
mod blob;
mod callback;
mod callback_rules;
mod channel;
mod condition;
mod event;
mod health;
mod job;
mod log;
mod page;
mod payload;
mod problem;
mod project;
mod prune;
mod revision;
mod rule;
mod runner;
mod scan;
mod scope;
mod session;
mod source;
mod suspension;
mod token;
mod user;
mod why;
mod worker;
mod workflow;

pub use artifact::*;
pub use audit::*;
pub use blob::*;
pub use callback::*;
pub use callback_rules::*;
pub use channel::*;
pub use condition::*;
pub use event::*;
pub use health::*;
pub use job::*;
pub use log::*;
pub use page::*;
pub use payload::*;
pub use problem::*;
pub use project::*;
pub use prune::*;
pub use revision::*;
pub use rule::*;
pub use runner::*;
pub use scan::*;
pub use scope::*;
pub use session::*;
pub use source::*;
pub use suspension::*;
pub use token::*;
pub use user::*;
pub use why::*;
pub use worker::*;
pub use workflow::*;

/// The path prefix of this contract.
pub const VERSION_PREFIX: &str = "/v0";

/// The response header with a renewed runner session token. The old token stays valid for ten more minutes.
pub const REFRESH_HEADER: &str = "x-authorization-refresh";

/// The header with the digest of an upload or download: over entry names and contents for an artifact, over the bytes
/// for a blob.
pub const CONTENT_DIGEST_HEADER: &str = "x-content-digest";

/// The media type of every error body (RFC 9457).
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// The media type of log records as JSON lines.
pub const NDJSON_MEDIA_TYPE: &str = "application/x-ndjson";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
