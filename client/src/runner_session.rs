//! What a runner says for itself, under its session token. No call is repeated here: the runner's own loop decides.

use http::Method;
use wire::{Hello, Message, Poll, RegisterRunner, RegisteredRunner};

use crate::route::Route;
use crate::{Client, Error, Secret};

/// The answer to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollAnswer {
    /// What to do; empty when nothing happened while the daemon held the poll.
    pub messages: Vec<Message>,
    /// A new session token, to be stored and used from now on; the old one ends soon.
    pub renewed_token: Option<Secret>,
}

impl Client {
    /// Registers a runner: `POST /runners/register`. The registration token in the body is all it needs.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn register(&self, runner: &RegisterRunner) -> Result<RegisteredRunner, Error> {
        self.call(Method::POST, &Route::v0("runners/register"))
            .json(runner)?
            .answer()
            .await
    }

    /// The runner's first word: `POST /runners/hello`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn hello(&self, hello: &Hello) -> Result<(), Error> {
        self.call(Method::POST, &Route::v0("runners/hello"))
            .json(hello)?
            .done()
            .await
    }

    /// The runner's last word, which gives up its jobs: `POST /runners/goodbye`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn goodbye(&self, hello: &Hello) -> Result<(), Error> {
        self.call(Method::POST, &Route::v0("runners/goodbye"))
            .json(hello)?
            .done()
            .await
    }

    /// Asks for work: `POST /messages`. The daemon holds the answer until there is some, for at most 50 s. Dropping
    /// the future abandons the poll; a new poll ends an older one.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn poll(&self, poll: &Poll) -> Result<PollAnswer, Error> {
        let (headers, messages) = self
            .call(Method::POST, &Route::v0("messages"))
            .held()
            .json(poll)?
            .answer_with_headers()
            .await?;
        let renewed_token = headers
            .get(wire::REFRESH_HEADER)
            .and_then(|value| value.to_str().ok())
            .map(Secret::new);
        Ok(PollAnswer {
            messages,
            renewed_token,
        })
    }
}
