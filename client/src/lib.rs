//! Typed HTTP client of `/v0`, for users, runners and workers.
//!
//! Every method is one route of the contract in `wire`; an answer is either the route's type or an [`Error`] that names
//! the request. Reading calls, and calls that carry an idempotency key, are repeated a few times when the daemon cannot
//! be reached; all others go out at most once, and when to repeat them is the caller's decision. Nothing here knows how
//! the daemon keeps its state.

mod artifact;
mod backoff;
mod base_url;
mod call;
mod client;
mod connector;
mod error;
mod job;
mod json_lines;
pub mod limits;
mod log_stream;
mod project;
mod repetition;
mod route;
mod runner;
mod runner_session;
mod secret;
pub mod settings;
mod source;
mod token;
mod worker_session;
mod workflow;

pub use artifact::Download;
pub use backoff::Backoff;
pub use client::Client;
pub use error::{Error, Operation};
pub use job::JobFilter;
pub use log_stream::LogStream;
pub use runner_session::PollAnswer;
pub use secret::Secret;
pub use worker_session::ArtifactUpload;
