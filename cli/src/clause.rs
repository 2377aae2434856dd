//! What a part of an expression said.

use serde_json::Value;

use crate::untrusted::clean;

/// A part on a line of its own, with what is told beside it; deeper parts stand further in.
pub(crate) fn line(depth: usize, text: &str, said: &str, beside: &str) -> String {
    let line = clean(&format!("{text} = {said}{beside}"));
    format!("{}{line}\n", "    ".repeat(depth))
}

/// The value of a part, or why it has none.
pub(crate) fn said(value: Option<&Value>, error: Option<&String>) -> String {
    match (value, error) {
        (Some(value), _) => value.to_string(),
        (None, Some(error)) => format!("error: {error}"),
        (None, None) => "nothing".to_owned(),
    }
}
