//! Turns the bytes of a script into lines of text. Any bytes are fine: invalid UTF-8 is replaced, a long line becomes
//! several, and carriage returns end lines as newlines do, so that a progress bar neither grows without bound nor hides
//! what it overwrites.

use std::borrow::Cow;
use std::mem;

use memchr::memchr2;

use crate::limits;

/// Cuts one stream into lines. Keeps at most one unfinished line of [`limits::LINE_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    unfinished: Vec<u8>,
    after_return: bool,
}

impl LineSplitter {
    /// Takes the next bytes of the stream. Passes every line that they complete to `emit`, without its line end.
    pub(crate) fn push(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(&str)) {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.finish_line(line, emit);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.hold(bytes, emit);
    }

    /// Ends the stream: what is left is the last line.
    pub(crate) fn finish(&mut self, emit: &mut impl FnMut(&str)) {
        if !self.unfinished.is_empty() {
            let line = mem::take(&mut self.unfinished);
            emit_text(&line, emit);
        }
    }

    fn finish_line(&mut self, end: &[u8], emit: &mut impl FnMut(&str)) {
        if self.unfinished.is_empty() {
            emit_text(end, emit);
        } else {
            self.unfinished.extend_from_slice(end);
            emit_text(&self.unfinished, emit);
            self.unfinished.clear();
        }
    }

    fn hold(&mut self, bytes: &[u8], emit: &mut impl FnMut(&str)) {
        self.unfinished.extend_from_slice(bytes);
        while self.unfinished.len() > limits::LINE_BYTES {
            let cut = last_character_start(&self.unfinished, limits::LINE_BYTES);
            emit_text(&self.unfinished[..cut], emit);
            self.unfinished.drain(..cut);
        }
    }
}

/// The largest index up to `end` that is not inside a character.
fn last_character_start(bytes: &[u8], end: usize) -> usize {
    let is_inside = |index: &usize| bytes.get(*index).is_some_and(|byte| byte & 0xc0 == 0x80);
    (end.saturating_sub(3)..=end)
        .rev()
        .find(|index| !is_inside(index))
        .unwrap_or(end)
}

/// Replacing invalid bytes makes a text up to three times as long, so the limit applies to the result.
fn emit_text(bytes: &[u8], emit: &mut impl FnMut(&str)) {
    // Most of what programs print is valid, and this check is the faster one.
    let text = match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    };
    if text.len() <= limits::LINE_BYTES {
        return emit(&text);
    }
    let mut rest = &*text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(limits::LINE_BYTES));
        emit(piece);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::default();
        for piece in pieces {
            splitter.push(piece, &mut |line| lines.push(line.to_owned()));
        }
        splitter.finish(&mut |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn newlines_end_lines_and_the_last_needs_none() {
        assert_eq!(lines(&[b"one\n\ntwo"]), ["one", "", "two"]);
        assert_eq!(lines(&[b"one\n"]), ["one"]);
        assert!(lines(&[]).is_empty());
    }

    #[test]
    fn lines_are_joined_across_pieces() {
        assert_eq!(lines(&[b"o", b"ne\ntw", b"o\n"]), ["one", "two"]);
        assert_eq!(lines(&[b"gr\xc3", b"\xbcn\n"]), ["grün"]);
    }

    #[test]
    fn carriage_returns_end_lines_once() {
        assert_eq!(lines(&[b"a\r\nb\r\n"]), ["a", "b"]);
        assert_eq!(lines(&[b"a\r", b"\nb\r", b"c"]), ["a", "b", "c"]);
        assert_eq!(lines(&[b"10%\r20%\r100%\n"]), ["10%", "20%", "100%"]);
    }

    #[test]
    fn any_bytes_are_text() {
        assert_eq!(lines(&[b"a\0b\xff\xfec\n"]), ["a\0b\u{fffd}\u{fffd}c"]);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let text = "ü".repeat(limits::LINE_BYTES);
        let mut odd = b"x".to_vec();
        odd.extend_from_slice(text.as_bytes());
        let pieces = lines(&[&odd]);
        assert!(pieces.iter().all(|piece| piece.len() <= limits::LINE_BYTES));
        assert_eq!(pieces.concat(), format!("x{text}"));
        assert_eq!(pieces.len(), 3);
    }

    #[test]
    fn replaced_bytes_do_not_exceed_the_bound() {
        let pieces = lines(&[&vec![0xff; limits::LINE_BYTES], b"\n"]);
        assert!(pieces.iter().all(|piece| piece.len() <= limits::LINE_BYTES));
        assert_eq!(pieces.concat().chars().count(), limits::LINE_BYTES);
    }

    #[test]
    fn every_split_of_a_stream_gives_the_same_lines() {
        let stream = b"one\r\ntwo\rthree\n\r\nfo\xc3\xbcr\r";
        let whole = lines(&[stream]);
        for at in 0..=stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(lines(&[head, tail]), whole, "split at {at}");
        }
    }
}
