//! Sends messages of notifications. Who gets a message, when, and whether it is sent again are decisions of the model; the
//! sender carries them out, and [`send`] makes one attempt.
//!
//! Texts may come from anybody. Each target gets them within its limits and without a meaning of their own: no headers, no
//! mentions. Outcomes name no secret and show no body of an answer.

mod chat;
mod check;
mod command;
mod compose;
mod item;
mod job_facts;
mod link;
mod mail;
mod new_lines;
mod sender;
mod smtp;
mod text;
mod webhook;
mod words;

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use model::SecretValue;
use model::channel::Target;
use outbound::Answer;
use uuid::Uuid;

pub use check::check;
pub use sender::{Program, Settings, send_all, send_test};

/// What somebody is told.
#[derive(Debug, Clone)]
pub struct Message {
    /// The same for each attempt.
    pub id: Uuid,
    /// When it happened.
    pub at: DateTime<Utc>,
    pub level: Level,
    pub title: String,
    pub text: String,
    pub link: Option<String>,
    /// The conversations to which it belongs. It may be the first mail of the first one.
    pub threads: Vec<Thread>,
    /// An earlier attempt was interrupted and may have arrived.
    pub is_repeated: bool,
    /// The facts, for programs.
    pub event: serde_json::Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Problem,
    Recovered,
    Information,
}

/// Mails about one problem are one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Identifies the first mail of the conversation.
    pub first: Uuid,
    /// This message is the first mail.
    pub is_first: bool,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Delivered {
        /// The status, or the line of the mail server.
        reply: String,
    },
    Retry {
        reason: String,
        /// What the server asked for, at most an hour.
        after: Option<Duration>,
    },
    /// Another attempt is useless.
    Refused { reason: String },
    /// The target does not exist any more: the channel is to be disabled.
    Gone { reason: String },
}

/// Makes one attempt. `secret` is the one of the channel, opened.
pub async fn send(
    settings: &Settings,
    target: &Target,
    secret: Option<&SecretValue>,
    message: &Message,
    now: DateTime<Utc>,
) -> Outcome {
    let outbound = &settings.outbound;
    let needed = || secret.ok_or_else(|| "the channel has no secret; set it again".to_owned());
    let request = match target {
        Target::Email(email) => return mail::send(outbound, email, secret, message, now).await,
        Target::Command { command } => {
            return match command::find(settings, command) {
                Ok(program) => command::run(program, message).await,
                Err(reason) => Outcome::refused(reason),
            };
        }
        Target::Webhook { url, ca } => needed()
            .and_then(|keys| webhook::post(keys, message, now))
            .map(|post| (url.as_str(), ca, post)),
        Target::Slack => needed().map(|url| (url.reveal(), &None, chat::slack(message))),
        Target::Discord => needed().map(|url| (url.reveal(), &None, chat::discord(message))),
        Target::Ntfy { server, topic, ca } => {
            chat::ntfy(topic, secret, message).map(|post| (server.as_str(), ca, post))
        }
    };
    let (url, ca, mut post) = match request {
        Ok(request) => request,
        Err(reason) => return Outcome::refused(reason),
    };
    let json = HeaderValue::from_static("application/json");
    post.headers.insert(CONTENT_TYPE, json);
    match outbound
        .post(url, post.headers, post.body, ca.as_deref(), now)
        .await
    {
        Ok(answer) => answer.into(),
        Err(error) => error.into(),
    }
}

/// An HTTP request as its target wants it.
#[derive(Debug)]
struct Post {
    headers: HeaderMap,
    /// JSON.
    body: String,
}

impl Outcome {
    fn refused(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Refused { reason }
    }

    fn retry(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Retry {
            reason,
            after: None,
        }
    }
}

impl From<outbound::Error> for Outcome {
    fn from(error: outbound::Error) -> Self {
        if error.is_permanent() {
            Self::refused(error.to_string())
        } else {
            Self::retry(error.to_string())
        }
    }
}

impl From<Answer> for Outcome {
    fn from(
        Answer {
            status,
            retry_after,
        }: Answer,
    ) -> Self {
        let reason = status.to_string();
        if status.is_success() {
            Self::Delivered {
                reply: status.as_str().to_owned(),
            }
        } else if status.is_redirection() {
            Self::refused(format!("{reason}: redirects are not followed"))
        } else if status == StatusCode::GONE {
            Self::Gone { reason }
        } else if status.is_client_error() && !REPEATABLE.contains(&status) {
            Self::refused(reason)
        } else {
            Self::Retry {
                reason,
                after: retry_after,
            }
        }
    }
}

/// Errors of a client that may be over at the next attempt.
const REPEATABLE: [StatusCode; 3] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
];
