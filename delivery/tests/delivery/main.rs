//! Messages that go to peers: sinks of our own, a mail server in Python, a verifier of webhooks in Python, programs.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start their peers and read the clock"
)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test may fail by panic"))]

mod addresses;
mod answers;
mod chat;
mod command;
mod mail;
mod peers;
mod rebinding;
mod sink;
mod webhook;

use std::time::Duration;

use chrono::Utc;
use delivery::{Level, Message, Outcome, Settings};
use model::SecretValue;
use model::channel::Target;
use outbound::{Limits, Outbound};
use serde_json::json;
use uuid::Uuid;

/// Longer than the busiest machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

const KEY: &str = "whsec_a2V5";

fn settings(allow: &[&str], exchange: Duration) -> Settings {
    let allow = allow.iter().map(|entry| entry.parse().unwrap()).collect();
    let limits = Limits {
        connect: PATIENCE,
        exchange,
    };
    Settings {
        outbound: Outbound::new(allow, "daemon.yaml", limits),
        ..Settings::default()
    }
}

fn message() -> Message {
    Message {
        id: Uuid::from_u128(7),
        at: "2026-03-01T12:00:00Z".parse().unwrap(),
        level: Level::Problem,
        title: "`nightly` fails".to_owned(),
        text: "Step `dump` ended with code 1.\nno space left".to_owned(),
        link: Some("https://everscan.example.org/jobs/7?a=1&b=2".to_owned()),
        threads: Vec::new(),
        is_repeated: false,
        event: json!({ "what": "opened" }),
    }
}

/// Sends to a target on this machine.
async fn send(target: &Target, secret: impl Into<Option<&str>>, message: &Message) -> Outcome {
    let settings = settings(&["127.0.0.1"], PATIENCE);
    send_with(&settings, target, secret, message).await
}

async fn send_with(
    settings: &Settings,
    target: &Target,
    secret: impl Into<Option<&str>>,
    message: &Message,
) -> Outcome {
    let secret = secret.into().map(|text| SecretValue::new(text.to_owned()));
    delivery::send(settings, target, secret.as_ref(), message, Utc::now()).await
}

fn webhook(url: &str) -> Target {
    Target::Webhook {
        url: url.to_owned(),
        ca: None,
    }
}

fn delivered(reply: &str) -> Outcome {
    Outcome::Delivered {
        reply: reply.to_owned(),
    }
}

fn refused(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { reason } => reason,
        other => panic!("not refused: {other:?}"),
    }
}

fn to_repeat(outcome: Outcome) -> String {
    match outcome {
        Outcome::Retry { reason, .. } => reason,
        other => panic!("not to be repeated: {other:?}"),
    }
}
