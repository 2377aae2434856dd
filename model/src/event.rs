//! Events: what people may want to be told. They are made after a decision, from its changes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use workflow::notify::{EventName, NotifyName};

use crate::callback::{Announcement, CallbackId};
use crate::condition::{Ended, Problem, Subject};
use crate::{ChannelId, ConditionId, EventId, JobId, ProjectId, Timestamp};

/// One event. Its texts are made when it is shown or sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub at: Timestamp,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    pub subject: Subject,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    Opened {
        condition: ConditionId,
        problem: Problem,
    },
    /// A failing scan has failed again.
    FailedAgain {
        condition: ConditionId,
        problem: Problem,
    },
    Closed {
        condition: ConditionId,
        problem: Problem,
        since: Timestamp,
        /// The channels that have reported the condition.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        reported: BTreeSet<ChannelId>,
        #[serde(default, skip_serializing_if = "Ended::is_cured")]
        ended: Ended,
    },
    /// A slot of a schedule passed without a job.
    SlotMissed,
    WorkflowRemoved,
    /// A job succeeded with an artifact whose `notify_on` asks for a message.
    Artifact {
        job: JobId,
        artifact: String,
        /// The success before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<JobId>,
    },
    /// A callback server was used.
    Interaction {
        server: CallbackId,
        name: NotifyName,
        announcement: Box<Announcement>,
    },
}

impl What {
    /// What a rule calls it.
    pub const fn name(&self) -> EventName {
        match self {
            Self::Opened { problem, .. }
            | Self::FailedAgain { problem, .. }
            | Self::Closed { problem, .. } => problem.event(),
            Self::SlotMissed => EventName::SlotMissed,
            Self::WorkflowRemoved => EventName::WorkflowRemoved,
            Self::Artifact { .. } => EventName::Artifact,
            Self::Interaction { .. } => EventName::Interaction,
        }
    }

    /// The condition that it is about.
    pub const fn condition(&self) -> Option<ConditionId> {
        match self {
            Self::Opened { condition, .. }
            | Self::FailedAgain { condition, .. }
            | Self::Closed { condition, .. } => Some(*condition),
            Self::SlotMissed
            | Self::WorkflowRemoved
            | Self::Artifact { .. }
            | Self::Interaction { .. } => None,
        }
    }

    /// The callback server that it is about.
    pub const fn callback(&self) -> Option<&NotifyName> {
        match self {
            Self::Interaction { name, .. } => Some(name),
            Self::Opened { problem, .. }
            | Self::FailedAgain { problem, .. }
            | Self::Closed { problem, .. } => match problem {
                Problem::CallbackFull { callback } => Some(callback),
                _ => None,
            },
            Self::SlotMissed | Self::WorkflowRemoved | Self::Artifact { .. } => None,
        }
    }

    /// The job that it is about.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::Opened { problem, .. }
            | Self::FailedAgain { problem, .. }
            | Self::Closed { problem, .. } => problem.job(),
            Self::Artifact { job, .. } => Some(*job),
            Self::SlotMissed | Self::WorkflowRemoved | Self::Interaction { .. } => None,
        }
    }
}
