//! Values of vars and secrets from outside the command line. One line end at the end of a value is not part of it: files
//! and pipes have one that nobody means.

use std::path::Path;

use crate::error::Error;
use crate::limits;
use crate::reading::read_given;

/// The value in a file, or in standard input when the file is `-`.
pub(crate) fn from_file(path: &Path) -> Result<String, Error> {
    read_given(path, limits::VALUE_FILE).map(without_line_end)
}

/// The text without one line end at its end.
pub(crate) fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_cut_and_no_more() {
        for (given, kept) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            ("\n", ""),
            ("", ""),
            (" a \n", " a "),
        ] {
            assert_eq!(without_line_end(given.to_owned()), kept, "{given:?}");
        }
    }
}
