//! Values of vars and secrets from outside the command line. One line end at the end of a value is not part of it: files
//! and pipes have one that nobody means.

use std::io;
use std::path::Path;

use crate::connection::{read_all, read_text};
use crate::error::Error;
use crate::limits;

/// Stands for standard input.
const STDIN: &str = "-";

/// The value in a file, or in standard input when the file is `-`.
pub(crate) fn from_file(path: &Path) -> Result<String, Error> {
    let text = if path.as_os_str() == STDIN {
        let name = Path::new("standard input");
        read_all(io::stdin().lock(), name, limits::VALUE_FILE)?
    } else {
        read_text(path, limits::VALUE_FILE)?
    };
    Ok(without_line_end(text))
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
