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
}
