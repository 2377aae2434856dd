//! The outbox: events that are not sent to every channel yet, and the log of what was sent.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use workflow::notify::NotifyName;

use crate::channel::Channel;
use crate::event::Event;
use crate::limits::LONGEST_RETRY;
use crate::{ChannelId, EventId, JobId, MessageId, Order, OutgoingId, ProjectId, Timestamp};

/// The events of one decision about one project. It is written with the decision, and removed when all its deliveries
/// are over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    pub id: OutgoingId,
    /// The position of the decision.
    pub order: Order,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    pub events: Vec<Event>,
    /// Events that the outbox had no room for. They are only counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Where its events go; none before the rules were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Vec<Delivery>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Some events of a record, for one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub channel: ChannelId,
    /// The rule that asked for it; none if no rule names the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<NotifyName>,
    /// The rule is the instance's, which may have the name of one of the project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rule_of_instance: bool,
    pub events: Vec<EventId>,
    pub due: Due,
    /// The position of the plan that made it.
    pub planned: Order,
}

/// When a delivery is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Due {
    At {
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<Held>,
    },
    /// When it is known that the message about the begin of the condition has arrived.
    AfterOpening,
}

impl Due {
    pub const fn at(self) -> Option<Timestamp> {
        match self {
            Self::At { at, .. } => Some(at),
            Self::AfterOpening => None,
        }
    }

    /// Whether it waits for longer than any group or quiet hours last: the clock was set back.
    pub(crate) fn is_overheld(self, now: Timestamp) -> bool {
        let Self::At { at, held } = self else {
            return false;
        };
        match held {
            None | Some(Held::Group) => at - now > LONGEST_RETRY,
            Some(Held::QuietHours) => at - now > TimeDelta::days(1),
            Some(Held::Repeat) => false,
        }
    }

    pub const fn is_repeat(self) -> bool {
        matches!(
            self,
            Self::At {
                held: Some(Held::Repeat),
                ..
            }
        )
    }
}

/// Why a delivery waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// What follows a message is sent as one message.
    Group,
    QuietHours,
    /// It was sent, and is sent again while the condition is open.
    Repeat,
}

/// What is not sent to a channel yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub events: u64,
    /// When the first of them are sent, if it is known.
    pub until: Option<Timestamp>,
    pub why: Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Their message is being sent.
    Sending,
    /// Their message could not be sent, and is tried again.
    Retry,
    Group,
    QuietHours,
    /// The channel has sent as many messages as its pace allows.
    Pace,
    /// The receiver said that it is gone for ever.
    Gone,
}

impl Delivery {
    /// True if the message that the channel is sending contains it.
    pub fn is_in(&self, channel: &Channel) -> bool {
        let sending = channel.sending.as_ref();
        sending.is_some_and(|sending| {
            self.channel == channel.id
                && self.planned <= sending.planned
                && self.due.at().is_some_and(|at| at <= sending.at)
        })
    }
}

/// A line of the delivery log: one attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    pub at: Timestamp,
    pub message: MessageId,
    pub channel: ChannelId,
    pub channel_name: NotifyName,
    /// The channel's; absent if it is the instance's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// From 1.
    pub attempt: u32,
    /// An earlier attempt may have arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
    pub result: SendResult,
    pub title: String,
    /// The first events of the message, for a later retry.
    pub events: Vec<EventId>,
    pub event_count: u64,
    /// The first jobs that the message is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobId>,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum SendResult {
    /// With what the receiver replied: a status, or the reply of a mail server.
    Delivered {
        reply: String,
    },
    /// It is tried again.
    Retry {
        reason: String,
        at: Timestamp,
    },
    Failed {
        reason: String,
    },
    /// There was nothing to say.
    Suppressed {
        reason: Suppressed,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// The artifact has no line that the success before did not have.
    NoNewLines,
    /// A person knows of the condition.
    Acknowledged,
    Silenced,
    ChannelDeleted,
}
