//! Splits a stream into lines.

use bytes::{Buf, Bytes, BytesMut};

/// Takes pieces of a stream and returns complete lines. Keeps at most one line and the newest piece.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// The most bytes of a line.
    longest: usize,
    /// Bytes at the front that contain no line end.
    searched: usize,
}

/// A line is longer than the lines of this stream may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            longest,
            searched: 0,
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next complete line that is not blank, without its line end.
    pub(crate) fn next_line(&mut self) -> Result<Option<Bytes>, TooLong> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(found) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return if self.searched > self.longest {
                    Err(TooLong)
                } else {
                    Ok(None)
                };
            };
            let line = self.buffer.split_to(self.searched + found).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if line.len() > self.longest {
                return Err(TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// The bytes after the last line end, once the stream has ended.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (!rest.trim_ascii().is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LOG_LINE_BYTES;

    #[test]
    fn lines_are_joined_wherever_they_were_split() {
        let text = b"one\n\n  \ntwo\nthree";
        for cut in 0..text.len() {
            let (left, right) = text.split_at(cut);
            let mut lines = Lines::new(LOG_LINE_BYTES);
            let mut found = Vec::new();
            for piece in [left, right] {
                lines.push(piece);
                while let Some(line) = lines.next_line().unwrap() {
                    found.push(line);
                }
            }
            assert_eq!(found, ["one", "two"], "cut at {cut}");
            assert_eq!(lines.rest().unwrap(), "three");
            assert_eq!(lines.rest(), None);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_refused() {
        let mut lines = Lines::new(LOG_LINE_BYTES);
        lines.push(&vec![b'x'; LOG_LINE_BYTES + 1]);
        assert_eq!(lines.next_line(), Err(TooLong));
    }
}
