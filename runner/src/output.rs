//! Turns the bytes of a script into lines of text. All bytes are allowed: invalid UTF-8 is replaced, and a long line becomes
//! several. If a program rewrites a line with carriage returns, as progress bars do, one update per second and the last update
//! are kept.

use std::borrow::Cow;
use std::mem;

use memchr::memchr2;
use tokio::time::Instant;
use wire::OVERWRITTEN;

use crate::limits;

/// Cuts one stream into lines. Keeps at most one unfinished line of [`limits::LINE_BYTES`], and the update before it.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    unfinished: Vec<u8>,
    /// The text before a carriage return. A line end makes it the line; any other text overwrites it.
    update: Vec<u8>,
    /// When an overwritten update was last kept.
    kept_at: Option<Instant>,
}

impl LineSplitter {
    /// Takes the next bytes of the stream, which were read at `now`. Passes every completed line to `emit`, without its line end,
    /// and with [`OVERWRITTEN`] at the end of an overwritten update.
    pub(crate) fn push(&mut self, mut bytes: &[u8], now: Instant, emit: &mut impl FnMut(&str)) {
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            let (text, rest) = bytes.split_at(at);
            match rest {
                [b'\n', ..] => self.finish_line(text, now, emit),
                _ => {
                    self.hold(text, now, emit);
                    // A carriage return without text before it overwrites nothing.
                    if !self.unfinished.is_empty() {
                        mem::swap(&mut self.update, &mut self.unfinished);
                    }
                }
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.hold(bytes, now, emit);
    }

    pub(crate) fn finish(&mut self, emit: &mut impl FnMut(&str)) {
        let line = match self.unfinished.is_empty() {
            true => mem::take(&mut self.update),
            false => mem::take(&mut self.unfinished),
        };
        if !line.is_empty() {
            emit_text(&line, emit);
        }
    }

    fn finish_line(&mut self, end: &[u8], now: Instant, emit: &mut impl FnMut(&str)) {
        if self.unfinished.is_empty() && self.update.is_empty() {
            return emit_text(end, emit);
        }
        self.hold(end, now, emit);
        let line = match self.unfinished.is_empty() {
            true => &mut self.update,
            false => &mut self.unfinished,
        };
        emit_text(line, emit);
        line.clear();
    }

    fn hold(&mut self, bytes: &[u8], now: Instant, emit: &mut impl FnMut(&str)) {
        if bytes.is_empty() {
            return;
        }
        if !self.update.is_empty() {
            self.overwrite(now, emit);
        }
        self.unfinished.extend_from_slice(bytes);
        while self.unfinished.len() > limits::LINE_BYTES {
            let cut = last_character_start(&self.unfinished, limits::LINE_BYTES);
            emit_text(&self.unfinished[..cut], emit);
            self.unfinished.drain(..cut);
        }
    }

    fn overwrite(&mut self, now: Instant, emit: &mut impl FnMut(&str)) {
        let is_due = |kept: Instant| now.duration_since(kept) >= limits::UPDATES_EVERY;
        if self.kept_at.is_none_or(is_due) {
            self.kept_at = Some(now);
            let mut text = String::from_utf8_lossy(&self.update).into_owned();
            text.truncate(text.floor_char_boundary(limits::LINE_BYTES - OVERWRITTEN.len_utf8()));
            text.push(OVERWRITTEN);
            emit(&text);
        }
        self.update.clear();
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

/// The limit applies to the result, because replacing invalid bytes makes a text up to three times as long.
fn emit_text(bytes: &[u8], emit: &mut impl FnMut(&str)) {
    // Most output is valid, and this check is faster.
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
    use std::time::Duration;

    use super::*;

    /// The lines of pieces that were read with a pause before each.
    fn lines_with(pause: Duration, pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::default();
        let mut now = Instant::now();
        for piece in pieces {
            now += pause;
            splitter.push(piece, now, &mut |line| lines.push(line.to_owned()));
        }
        splitter.finish(&mut |line| lines.push(line.to_owned()));
        lines
    }

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        lines_with(Duration::ZERO, pieces)
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
    fn a_carriage_return_before_a_newline_belongs_to_it() {
        assert_eq!(lines(&[b"a\r\nb\r\n\r\n"]), ["a", "b", ""]);
        assert_eq!(lines(&[b"a\r", b"\nb\r", b"\r", b"\n"]), ["a", "b"]);
    }

    #[test]
    fn of_a_rewritten_line_one_update_a_second_and_the_last_is_kept() {
        let updates: Vec<String> = (0..100_000).map(|n| format!("{n} of 100000\r")).collect();
        let pieces: Vec<&[u8]> = updates.iter().map(String::as_bytes).collect();
        for end in ["", "\n"] {
            let all = [&pieces[..], &[end.as_bytes()]].concat();
            let kept = lines_with(Duration::from_micros(100), &all);
            assert_eq!(kept.len(), 11);
            assert_eq!(kept[..2], ["0 of 100000\r", "10000 of 100000\r"]);
            assert_eq!(kept[10], "99999 of 100000");
        }
        // With the carriage return at the start, as some programs write it.
        let stream = b"\r10%\r20%\r100%\nnext\r\n1\r2\n";
        assert_eq!(lines(&[stream]), ["10%\r", "100%", "next", "2"]);
        let slow = lines_with(limits::UPDATES_EVERY, &[b"1\r", b"2\r", b"3\r", b"4\r"]);
        assert_eq!(slow, ["1\r", "2\r", "3\r", "4"]);
    }

    #[test]
    fn an_overwritten_update_is_no_longer_than_a_line() {
        let long = [&[0xff; limits::LINE_BYTES][..], b"\rend\n"].concat();
        let kept = lines(&[&long]);
        assert!(kept[0].len() <= limits::LINE_BYTES && kept[0].ends_with(OVERWRITTEN));
        assert_eq!(kept[1..], ["end"]);
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
