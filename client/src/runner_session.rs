//! The calls of a runner, with its session token. They are not repeated here: the runner's own loop decides about repeats.

use http::Method;
use wire::{Hello, Message, Poll, RegisterRunner, RegisteredRunner};

use crate::route::Route;
use crate::{Client, Error, Secret};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollAnswer {
    /// The messages; empty if nothing happened while the daemon held the poll.
    pub messages: Vec<Message>,
    /// A new session token. Store it and use it from now on; the old token expires soon.
    pub renewed_token: Option<Secret>,
}

impl Client {
    /// Registers a runner: `POST /runners/register`. The body contains the registration token, so the request needs no other
    /// token.
    pub async fn register(&self, runner: &RegisterRunner) -> Result<RegisteredRunner, Error> {
        self.call(Method::POST, &Route::v0("runners/register"))
            .json(runner)?
            .answer()
            .await
    }

    pub async fn hello(&self, hello: &Hello) -> Result<(), Error> {
        self.call(Method::POST, &Route::v0("runners/hello"))
            .json(hello)?
            .done()
            .await
    }

    pub async fn goodbye(&self, hello: &Hello) -> Result<(), Error> {
        self.call(Method::POST, &Route::v0("runners/goodbye"))
            .json(hello)?
            .done()
            .await
    }

    /// Polls for jobs: `POST /messages`. The daemon holds the answer until it has a message, for at most 50 s. Dropping the
    /// future abandons the poll; a new poll ends an older poll.
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
