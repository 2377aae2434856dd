//! Channels: where notifications go.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use workflow::notify::NotifyName;

use crate::limits::PACE_KEPT;
use crate::project::Edit;
use crate::sealing::{KeyId, Place, Sealed, SealingError, SecretValue};
use crate::sealing_keys::SealingKeys;
use crate::{ChannelId, MessageId, Order, ProjectId, Timestamp};

/// A channel of a project, or of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    pub id: ChannelId,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    pub name: NotifyName,
    /// The projects that may use a channel of the instance.
    #[serde(default)]
    pub offered: Offered,
    pub target: Target,
    /// The password, the token, the signing keys, or the address that is itself a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Sealed>,
    pub edit: Edit,
    /// When its latest messages were attempted, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Timestamp>,
    /// When its latest message arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Timestamp>,
    /// The message that is being sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<Sending>,
    /// The state is a backup that was restored after this decision: what waited then may have been sent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Order>,
    /// Its latest messages could not be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<ChannelFailure>,
}

/// The projects that may use a channel of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offered {
    All,
    To(BTreeSet<ProjectId>),
}

impl Default for Offered {
    fn default() -> Self {
        Self::To(BTreeSet::new())
    }
}

/// A message on its way. It contains all deliveries of the channel that were due at `at` and planned up to `planned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    pub message: MessageId,
    pub at: Timestamp,
    pub planned: Order,
    /// From 1.
    pub attempt: u32,
    /// An earlier attempt may have arrived: the daemon stopped while it was sent, or the state is a restored backup.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
    pub step: SendingStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum SendingStep {
    /// The sender has it.
    Now,
    /// The attempt failed.
    RetryAt { at: Timestamp },
    /// It is over; its deliveries are being removed from the outbox.
    Over { delivered: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelFailure {
    pub since: Timestamp,
    pub reason: String,
    /// The receiver said that it is gone for ever. Nothing is sent until somebody changes the channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
}

/// The receiver of a channel. What is secret is in [`Channel::secret`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// The secret is the password of the account.
    Email(Email),
    /// The secret holds [signing keys](signing_keys).
    Webhook {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca: Option<String>,
    },
    /// The secret is the address.
    Slack,
    /// The secret is the address.
    Discord,
    /// The secret is an access token, if the topic needs one.
    Ntfy {
        server: String,
        topic: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca: Option<String>,
    },
    /// A program that the daemon's configuration names.
    Command { command: String },
}

/// Mail by a server for submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Email {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub from: String,
    pub to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Certificates (PEM) that are trusted instead of the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// How mail is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    /// Required: a server without STARTTLS gets nothing.
    #[serde(rename = "starttls")]
    StartTls,
    Tls,
    /// Without a password, too: it is only sent over TLS.
    None,
}

/// The prefix of a signing key, which is written in base64.
pub(crate) const SIGNING_KEY_PREFIX: &str = "whsec_";

/// The keys in the secret of a webhook: one, or more while they are rotated, with spaces between them. None if one of them is
/// malformed.
pub fn signing_keys(secret: &SecretValue) -> Option<Vec<Vec<u8>>> {
    let keys = secret.reveal().split_whitespace().map(|key| {
        let key = STANDARD.decode(key.strip_prefix(SIGNING_KEY_PREFIX)?).ok();
        key.filter(|key| !key.is_empty())
    });
    let keys: Option<Vec<_>> = keys.collect();
    keys.filter(|keys| !keys.is_empty())
}

impl Target {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Email(_) => "email",
            Self::Webhook { .. } => "webhook",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Ntfy { .. } => "ntfy",
            Self::Command { .. } => "command",
        }
    }

    /// At most so many messages in so many seconds.
    const fn pace(&self) -> &'static [(usize, i64)] {
        match self {
            Self::Email(_) => &[(30, 3600)],
            Self::Slack => &[(1, 1)],
            Self::Discord => &[(5, 2), (30, 60)],
            // The public server allows a request each 5 s in the long run.
            Self::Ntfy { .. } => &[(12, 60)],
            Self::Webhook { .. } | Self::Command { .. } => &[(10, 1)],
        }
    }
}

impl Channel {
    /// True if events of this project may be sent there.
    pub fn serves(&self, project: Option<ProjectId>) -> bool {
        match (self.project, project, &self.offered) {
            (Some(own), of, _) => of == Some(own),
            (None, None, _) | (None, Some(_), Offered::All) => true,
            (None, Some(project), Offered::To(projects)) => projects.contains(&project),
        }
    }

    /// When the pace of the channel allows the next message.
    pub fn free_at(&self, now: Timestamp) -> Option<Timestamp> {
        // Later times belong to a clock that was set back.
        let sent = &self.sent[..self.sent.partition_point(|at| *at <= now)];
        let pace = self.target.pace().iter();
        let times = pace.filter_map(|(count, seconds)| {
            let first = sent.len().checked_sub(*count)?;
            Some(*sent.get(first)? + TimeDelta::seconds(*seconds))
        });
        times.max()
    }

    /// The receiver said that it is gone for ever.
    pub(crate) fn is_gone(&self) -> bool {
        self.failing.as_ref().is_some_and(|failing| failing.is_gone)
    }

    /// When the latest message was begun.
    pub fn begun(&self) -> Option<Timestamp> {
        let now = self.sending.as_ref().map(|sending| sending.at);
        now.or_else(|| self.sent.last().copied())
    }

    pub(crate) fn note_sent(&mut self, at: Timestamp) {
        // A clock that was set back must not hold the channel for long.
        self.sent.retain(|before| *before <= at);
        self.sent.push(at);
        let old = self.sent.len().saturating_sub(PACE_KEPT);
        self.sent.drain(..old);
    }

    /// The key that its secret is sealed with.
    pub fn sealed_with(&self) -> Option<&KeyId> {
        self.secret.as_ref().map(|secret| &secret.key)
    }

    /// Decrypts its secret. None if it has none.
    pub fn open(&self, keys: &SealingKeys) -> Option<Result<SecretValue, SealingError>> {
        let secret = self.secret.as_ref()?;
        Some(keys.open(secret, place(self.id)))
    }
}

/// The place of a channel's secret.
pub(crate) const fn place(channel: ChannelId) -> Place<'static> {
    Place {
        project: ProjectId::from_uuid(channel.uuid()),
        name: "channel",
        version: 0,
    }
}
