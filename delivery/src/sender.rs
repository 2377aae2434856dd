//! Sends what the outbox holds.
//!
//! The plan of what is sent where and when is a decision of the model. This task asks for it whenever the world changes
//! or its time comes, makes each attempt, and records its result.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::FutureExt;
use model::channel::Channel;
use model::decide::{EndAttempt, PlanDeliveries};
use model::outbox::{DeliveryRecord, SendResult, Suppressed};
use model::{SecretValue, Timestamp};
use outbound::{Limits, Outbound};
use reconciler::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use crate::compose::{Composed, compose};
use crate::{Message, Outcome, send};

/// The pause before a result is recorded again, and the longest one.
const RECORD_REST: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(30)];

/// A program that channels may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub timeout: Duration,
}

/// What the sender needs of the daemon's configuration.
#[derive(Debug)]
pub struct Settings {
    pub outbound: Outbound,
    /// The programs that channels may name.
    pub commands: BTreeMap<String, Program>,
    /// The address of the web interface, without a slash at its end. Without it messages have no links.
    pub url: Option<String>,
}

impl Default for Settings {
    /// No address of this machine or of a private network is allowed.
    fn default() -> Self {
        Self {
            outbound: Outbound::new(Vec::new(), "the daemon's configuration", Limits::default()),
            commands: BTreeMap::new(),
            url: None,
        }
    }
}

/// Sends until the daemon stops.
pub async fn send_all(handle: Handle, settings: Arc<Settings>) {
    let mut changes = handle.state().changed();
    let mut plan = PlanDeliveries { at_start: true };
    let mut attempts = JoinSet::new();
    loop {
        let (now, due) = handle.state().read(|world| {
            let now = handle.now();
            (now, plan.due(world, now))
        });
        if plan.at_start && due.is_none() {
            plan.at_start = false;
            continue;
        }
        let mut rest = due.map(|due| wait(now, due));
        if due.is_some_and(|due| due <= now) {
            match handle.state().submit(plan.clone()).await {
                Ok(begun) => {
                    for channel in begun {
                        attempts.spawn(attempt(handle.clone(), settings.clone(), channel));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "messages cannot be planned; this is retried");
                }
            }
            // What the plan has changed ends this at once.
            rest = Some(Instant::now() + RECORD_REST[1]);
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            Some(_) = attempts.join_next() => {}
            () = sleep_until(rest.unwrap_or_else(Instant::now)), if rest.is_some() => {}
        }
    }
}

fn wait(now: Timestamp, due: Timestamp) -> Instant {
    Instant::now() + (due - now).to_std().unwrap_or_default()
}

/// Makes one attempt and records its result.
async fn attempt(handle: Handle, settings: Arc<Settings>, channel: Arc<Channel>) {
    let Some(sending) = &channel.sending else {
        return;
    };
    let sent = AssertUnwindSafe(sent(&handle, &settings, &channel)).catch_unwind();
    let (composed, outcome) = match sent.await {
        Ok((composed, outcome)) => (Some(composed), outcome),
        // The panic is logged. Without a result the channel would send nothing until the next start.
        Err(_) => {
            let reason = "a defect of Everscan; the daemon's log says more";
            (None, Ok(Outcome::retry(reason)))
        }
    };
    let (mut after, mut is_gone) = (None, false);
    let result = match outcome {
        Err(reason) => SendResult::Suppressed { reason },
        Ok(Outcome::Delivered { reply }) => SendResult::Delivered { reply },
        Ok(Outcome::Retry {
            reason,
            after: asked,
        }) => {
            after = asked.and_then(|asked| TimeDelta::from_std(asked).ok());
            // The decision sets the time.
            SendResult::Retry {
                reason,
                at: handle.now(),
            }
        }
        Ok(Outcome::Refused { reason }) => SendResult::Failed { reason },
        Ok(Outcome::Gone { reason }) => {
            is_gone = true;
            SendResult::Failed { reason }
        }
    };
    let (title, events, event_count, jobs) = composed
        .map(|it| (it.message.title, it.events, it.event_count, it.jobs))
        .unwrap_or_default();
    let end = EndAttempt {
        record: DeliveryRecord {
            at: handle.now(),
            message: sending.message,
            channel: channel.id,
            channel_name: channel.name.clone(),
            project: channel.project,
            attempt: sending.attempt,
            is_repeated: sending.is_repeated,
            result,
            title,
            events,
            event_count,
            jobs,
        },
        after,
        is_gone,
        spread: Uuid::new_v4().as_u128() as f64 / u128::MAX as f64,
    };
    let mut rest = RECORD_REST[0];
    while let Err(error) = handle.state().submit(end.clone()).await {
        tracing::warn!(channel = %channel.name, %error, "the result of a message cannot be recorded; this is retried");
        sleep(rest).await;
        rest = RECORD_REST[1].min(rest * 2);
    }
}

/// Composes the message of a channel and sends it, unless there is nothing to say.
async fn sent(
    handle: &Handle,
    settings: &Settings,
    channel: &Channel,
) -> (Composed, Result<Outcome, Suppressed>) {
    let composed = compose(handle, settings, channel).await;
    let outcome = match composed.suppressed {
        Some(reason) => Err(reason),
        None => Ok(deliver(handle, settings, channel, &composed.message).await),
    };
    (composed, outcome)
}

/// Sends a message to a channel.
async fn deliver(
    handle: &Handle,
    settings: &Settings,
    channel: &Channel,
    message: &Message,
) -> Outcome {
    let secret = match secret(handle, channel) {
        Ok(secret) => secret,
        Err(reason) => return Outcome::retry(reason),
    };
    let now = handle.now();
    send(settings, &channel.target, secret.as_ref(), message, now).await
}

/// Sends a message of a test, and returns what came of it.
pub async fn send_test(handle: &Handle, settings: &Settings, channel: &Channel) -> Outcome {
    let message = crate::compose::test_message(channel, handle.now(), settings);
    deliver(handle, settings, channel, &message).await
}

fn secret(handle: &Handle, channel: &Channel) -> Result<Option<SecretValue>, String> {
    if channel.secret.is_none() {
        return Ok(None);
    }
    let Some(keys) = handle.settings().sealing_keys() else {
        return Err("the daemon has no key for secrets".to_owned());
    };
    match channel.open(keys) {
        Some(Ok(secret)) => Ok(Some(secret)),
        Some(Err(error)) => Err(format!("the secret of the channel cannot be read: {error}")),
        None => Ok(None),
    }
}
