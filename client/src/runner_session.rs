//! The calls of a runner, with its session token. None is repeated here: the runner's own loop decides.

use http::Method;
use wire::{Hello, Message, Poll, RegisterRunner, RegisteredRunner};

use crate::route::Route;
use crate::{Client, Error, Secret};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollAnswer {
    /// What to do; empty if nothing happened while the daemon held the poll.
    pub messages: Vec<Message>,
    /// A new session token. Store it and use it from now on; the old one ends soon.
    pub renewed_token: Option<Secret>,
}

impl Client {
    /// Registers a runner: `POST /runners/register`. The body holds the registration token, so no other token is
    /// needed.
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

    /// Asks for work: `POST /messages`. The daemon holds the answer until there is work, for at most 50 s. Dropping the
    /// future abandons the poll; a new poll ends an older one.
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
