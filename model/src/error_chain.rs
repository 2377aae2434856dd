//! Errors as text, for logs, records and the terminal.

use std::error::Error;

/// The causes of an error, the nearest cause first.
pub fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// An error and its causes, in one line.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the page")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn causes_are_listed_after_the_error() {
        let inner = "x".parse::<u32>().unwrap_err();
        let line = format!("cannot read the page: {inner}");
        assert_eq!(error_chain(&Outer(inner)), line);
    }
}
