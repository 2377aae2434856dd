//! An error with its causes on one line, for the edges where errors become text.

use std::error::Error;

/// The error and every cause, from the outside inwards.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
