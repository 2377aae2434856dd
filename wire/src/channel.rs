//! Channels of notifications, and what was sent to them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A channel. Its secret is never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    pub name: String,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub target: ChannelTarget,
    pub has_secret: bool,
    /// The projects that may use a channel of the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered_to: Vec<String>,
    /// All projects may use it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offered_to_all: bool,
    pub version: u64,
    pub changed_at: DateTime<Utc>,
    pub changed_by: String,
    /// When its latest message arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<DateTime<Utc>>,
    /// What is not sent yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Why its latest messages did not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<ChannelFailure>,
    /// The new key of a webhook, if the daemon made it. It is shown only now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_key: Option<String>,
}

/// Events that wait until they are sent to a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    pub events: u64,
    /// When the first of them are sent, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    pub reason: WaitReason,
}

names! {
    pub enum WaitReason {
        /// Their message is being sent.
        Sending = "sending",
        /// Their message could not be sent, and is tried again.
        Retry = "retry",
        /// What follows a message is sent as one message.
        Group = "group",
        QuietHours = "quiet_hours",
        /// The channel has sent as many messages as it may for now.
        Pace = "pace",
        /// The receiver is gone for ever.
        Gone = "gone",
    }
}

impl WaitReason {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sending => "they are being sent",
            Self::Retry => "the last attempt failed",
            Self::Group => "they are put into one message",
            Self::QuietHours => "quiet hours",
            Self::Pace => "the channel sends no faster",
            Self::Gone => "the receiver is gone",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelFailure {
    pub since: DateTime<Utc>,
    pub reason: String,
    /// The receiver said that it is gone for ever. Nothing is sent until the channel changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// Where a channel sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChannelTarget {
    /// The secret is the password of the account.
    Email {
        host: String,
        /// 587 for `starttls`, 465 for `tls` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        #[serde(default)]
        security: MailSecurity,
        from: String,
        to: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        username: Option<String>,
        /// Certificates (PEM) that are trusted instead of the machine's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca: Option<String>,
    },
    /// Signed as Standard Webhooks says. The secret is a key, or two keys while they are rotated.
    Webhook {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca: Option<String>,
    },
    /// The secret is the address.
    Slack,
    /// The secret is the address.
    Discord,
    /// The secret is a token, if the topic needs one.
    Ntfy {
        server: String,
        topic: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca: Option<String>,
    },
    /// A program that the daemon's configuration names.
    Command { command: String },
}

names! {
    /// How mail is encrypted.
    #[derive(Default)]
    pub enum MailSecurity {
        #[default]
        Starttls = "starttls",
        Tls = "tls",
        /// Only without a password.
        None = "none",
    }
}

/// A new channel, or the new settings of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetChannel {
    pub target: ChannelTarget,
    /// Absent: the secret stays, if the target stays. A new webhook gets a new key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The projects that may use a channel of the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered_to: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offered_to_all: bool,
}

/// The result of an attempt to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendResult {
    pub result: DeliveryResult,
    /// What the receiver replied, or why nothing arrived.
    pub reply: String,
}

names! {
    pub enum DeliveryResult {
        Delivered = "delivered",
        /// It is tried again.
        Retry = "retry",
        Failed = "failed",
        /// There was nothing to say.
        Suppressed = "suppressed",
    }
}

/// An attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    pub at: DateTime<Utc>,
    /// The same for all attempts.
    pub message: Uuid,
    pub channel: String,
    /// The project of the channel; absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// From 1.
    pub attempt: u32,
    /// The attempt before may have arrived, because the daemon stopped while it was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    #[serde(flatten)]
    pub result: SendResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
    pub title: String,
    pub events: u64,
    /// The first jobs that the message is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Uuid>,
}

/// What to send again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryChannel {
    /// A failed message. Absent: what waits for the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Uuid>,
}
