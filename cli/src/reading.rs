//! Reads files as text, up to a limit.

use std::io::{self, Read};
use std::path::Path;

use crate::error::Error;
use crate::limits;

const STDIN: &str = "-";

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// Reads a file, or standard input if the path is `-`.
pub(crate) fn read_given(path: &Path, limit: u64) -> Result<String, Error> {
    if is_stdin(path) {
        read_all(io::stdin().lock(), Path::new("standard input"), limit)
    } else {
        read_text(path, limit)
    }
}

/// Reads a file as it is, or standard input if the path is `-`.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    if is_stdin(path) {
        return read_up_to(io::stdin().lock(), Path::new("standard input"), limit);
    }
    let file = std::fs::File::open(path).map_err(Error::reading(path))?;
    read_up_to(file, path, limit)
}

/// Reads the value of a var or secret from a file, or from standard input if the path is `-`. Cuts one line end at its
/// end: files and pipes end with a line end that is not part of the value.
pub(crate) fn read_value(path: &Path) -> Result<String, Error> {
    read_given(path, limits::VALUE_FILE).map(without_line_end)
}

pub(crate) fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    let file = std::fs::File::open(path).map_err(Error::reading(path))?;
    read_all(file, path, limit)
}

/// Reads text. `path` names it in errors.
fn read_all(reader: impl Read, path: &Path, limit: u64) -> Result<String, Error> {
    let bytes = read_up_to(reader, path, limit)?;
    match workflow::utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(source) => Err(Error::NotText {
            path: path.to_owned(),
            shown: String::from_utf8_lossy(&bytes).into_owned(),
            source,
        }),
    }
}

fn read_up_to(reader: impl Read, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let failed = Error::reading(path);
    let mut bytes = Vec::new();
    let read = reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limit {
        return Err(Error::FileTooLong {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_line_end_is_removed() {
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
