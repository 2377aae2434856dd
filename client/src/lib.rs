//! Typed HTTP client of `/v0`, for users, runners and workers.
//!
//! Every method calls one route of the contract in `wire`. It returns the route's type or an [`Error`] that names the request.
//! Calls that read, and calls with an idempotency key, are repeated a few times if the daemon cannot be reached. All other calls
//! are sent at most once; the caller decides whether to repeat them. This package does not depend on the daemon's storage.

mod artifact;
mod audit;
mod backoff;
mod base_url;
mod blob;
mod call;
mod callback;
mod channel;
mod client;
mod condition;
mod connector;
mod error;
mod job;
mod json_lines;
pub mod limits;
mod log_stream;
mod payload;
mod project;
mod repetition;
mod route;
mod rule;
mod runner;
mod runner_session;
mod scan;
mod secret;
mod session;
pub mod settings;
mod source;
mod token;
mod upload;
mod user;
mod worker_session;
mod workflow;

pub use artifact::Download;
pub use audit::AuditFilter;
pub use backoff::Backoff;
pub use blob::{BlobUpload, Replaces};
pub use callback::InteractionFilter;
pub use channel::DeliveryFilter;
pub use client::Client;
pub use error::{Error, Operation};
pub use job::JobFilter;
pub use log_stream::{LogFilter, LogQuery, LogStream};
pub use payload::Rendered;
pub use project::Expected;
pub use runner_session::PollAnswer;
pub use secret::Secret;
pub use worker_session::ArtifactUpload;
