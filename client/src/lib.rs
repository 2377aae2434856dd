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

use std::sync::Arc;

use base_url::BaseUrl;
use connector::Pool;

pub use artifact::Download;
pub use backoff::Backoff;
pub use error::{Error, Operation};
pub use job::JobFilter;
pub use log_stream::LogStream;
pub use runner_session::PollAnswer;
pub use secret::Secret;
pub use worker_session::ArtifactUpload;

/// A connection pool to one daemon, with the token that goes out with every request. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Client {
    pool: Pool,
    base: Arc<BaseUrl>,
    token: Option<Secret>,
}

impl Client {
    /// A client of the daemon at `base_url`, which is what stands before `/v0`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::BaseUrl`] for a URL that cannot be one, [`Error::Connector`] when TLS is needed and cannot be set up.
    pub fn new(base_url: &str, token: Option<Secret>) -> Result<Self, Error> {
        let base = BaseUrl::parse(base_url)?;
        let pool = connector::connect(&base)?;
        Ok(Self {
            pool,
            base: Arc::new(base),
            token,
        })
    }

    /// The same connections under another token.
    #[must_use]
    pub fn with_token(&self, token: Secret) -> Self {
        Self {
            token: Some(token),
            ..self.clone()
        }
    }
}
