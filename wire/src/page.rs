//! Lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One page of a list, newest first unless the route says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The `cursor` of the next page; absent on the last page. Opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Lines that are missing because they are unreadable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedLines>,
}

impl<T> Page<T> {
    /// A complete list on one page.
    pub const fn all(items: Vec<T>) -> Self {
        Self {
            items,
            next_cursor: None,
            damaged: Vec::new(),
        }
    }
}

/// Unreadable lines of a state file, which are missing in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DamagedLines {
    /// Path below the state folder.
    pub file: String,
    pub lines: u64,
}
