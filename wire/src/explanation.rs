//! A reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason that names no actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Stable name.
    pub code: String,
    /// The same for a person.
    pub message: String,
}
