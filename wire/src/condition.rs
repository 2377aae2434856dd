//! What needs a person.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::WorkflowRef;

/// An open condition: something that needs a person. It closes by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenCondition {
    pub id: Uuid,
    /// What is wrong, as a stable name, such as `failing` or `overdue`.
    pub code: String,
    /// What is wrong, as a sentence.
    pub message: String,
    pub since: DateTime<Utc>,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What it is about. At most one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowRef>,
    /// The scan of this workflow; absent if it is about the whole workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<ConditionSubject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<ConditionSubject>,
    /// The job that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
    /// It is folded away until this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_until: Option<DateTime<Utc>>,
}

/// A runner or token with a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionSubject {
    pub id: Uuid,
    pub name: String,
}

/// A person knows of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledgement {
    /// Who did it, as `token NAME`.
    pub by: String,
    pub at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The body of an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledge {
    /// A note for others; up to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub note: Option<String>,
}

/// The body of a silence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// For this long it is folded away; at most 30 days. Absent: the silence ends now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_592_000))]
    pub seconds: Option<u64>,
}
