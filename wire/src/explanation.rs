//! Why something is as it is.

use serde::{Deserialize, Serialize};

/// A reason without anyone to whom it could be put down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Stable name.
    pub code: String,
    /// The same for a person.
    pub message: String,
}
