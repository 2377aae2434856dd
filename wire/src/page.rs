//! Lists.

use serde::{Deserialize, Serialize};

/// One page of a list, newest first unless the route says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Give this as `cursor` to read on; absent on the last page. Opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// What is missing because it cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedLines>,
}

impl<T> Page<T> {
    /// A whole list on one page, of which nothing is missing.
    pub const fn all(items: Vec<T>) -> Self {
        Self {
            items,
            next_cursor: None,
            damaged: Vec::new(),
        }
    }
}

/// Lines of a file of the state that an answer lacks, because they cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedLines {
    /// The file, below the state folder.
    pub file: String,
    /// How many.
    pub lines: u64,
}
