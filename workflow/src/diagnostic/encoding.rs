//! Reads the bytes of a file as text.

use thiserror::Error;

use crate::position::Lines;

/// The first invalid byte of a file. Line and column count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the file is not UTF-8: the byte at line {line}, column {column} is not part of a character"
)]
pub struct NotUtf8 {
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// The text of a file.
///
/// # Errors
/// The place of the first invalid byte.
pub fn utf8(bytes: &[u8]) -> Result<&str, NotUtf8> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let (line, column) = Lines::of(before).position(before, error.valid_up_to());
        NotUtf8 { line, column }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Code, Diagnostic};

    #[test]
    fn the_first_invalid_byte_is_found() {
        for (bytes, line, column) in [
            (&b"name: caf\xe9\n"[..], 1, 10),
            (b"a\n\xc3\xa9b\xff\xff", 2, 3),
            (b"\xff\xfen\0a\0", 1, 1),
            (b"a\n\n\xc3", 3, 1),
        ] {
            assert_eq!(utf8(bytes), Err(NotUtf8 { line, column }), "{bytes:?}");
        }
        assert_eq!(utf8("é".as_bytes()), Ok("é"));
    }

    #[test]
    fn a_file_that_is_not_text_is_reported_with_the_place() {
        let found = Diagnostic::not_utf8_text("a.yaml", NotUtf8 { line: 2, column: 3 });
        assert_eq!(found.code, Code::UnreadableFile);
        assert_eq!((found.line, found.column), (2, 3));
        assert_eq!((found.end_line, found.end_column), (2, 4));
        assert_eq!(found.hint.as_deref(), Some("save it as UTF-8"));
    }
}
