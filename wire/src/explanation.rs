//! A reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A reason that names no actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Stable name.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// The jobs that the message names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Uuid>,
}
