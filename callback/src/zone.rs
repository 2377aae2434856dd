//! The names for which we answer.

use thiserror::Error;

/// A domain that the operator has delegated to this daemon, in lower case and without the last dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no domain such as callback.example.com: {problem}")]
pub struct ZoneError {
    text: String,
    problem: &'static str,
}
