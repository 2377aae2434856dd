//! Finds the place in the file of each byte of a scalar's value. It walks the written text and the value side by side. Where YAML
//! has a choice, such as the meaning of a line break, the value decides. So this cannot disagree with the parser: if the two do
//! not match, no place is returned.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{Content, Node, Scalar, Style};
use crate::position::Span;

/// The places of one scalar. Computed once for all problems of a value, because the walk takes time.
#[derive(Debug)]
pub(crate) struct Places {
    runs: Vec<Run>,
    /// Bytes of the value without the white space at its end.
    length: usize,
    /// The scalar's first line, for parts whose place cannot be found.
    first_line: Span,
}

/// A part of the value and the part of the file from which it was read. If both have the same length, bytes correspond one to
/// one. Otherwise the file has an escape or a folded line break at this place.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    value: Range<usize>,
    file: Range<usize>,
}

impl Places {
    /// The places of the text of `node`. If the node is not text, the whole node is the only place.
    pub(crate) fn of(node: &Node, file: &str) -> Self {
        match &node.content {
            Content::Scalar(scalar) => Self::of_scalar(scalar, file, node.span),
            Content::List(_) | Content::Map(_) | Content::Invalid => Self {
                runs: Vec::new(),
                length: 0,
                first_line: node.span,
            },
        }
    }

    fn of_scalar(scalar: &Scalar, file: &str, span: Span) -> Self {
        let written = file.get(span.start..span.end).unwrap_or("");
        let length = written.find(['\n', '\r']).unwrap_or(written.len());
        let before = file.get(..span.start).unwrap_or("");
        let indent = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        let mut walk = Walk {
            written,
            at: 0,
            base: span.start,
            value: &scalar.text,
            taken: 0,
            runs: Vec::new(),
        };
        let is_whole = match scalar.style {
            Style::Plain => walk.flow(written.len(), Escapes::None),
            Style::SingleQuoted => walk.quoted(Escapes::Doubled),
            Style::DoubleQuoted => walk.quoted(Escapes::Backslash),
            Style::Literal | Style::Folded => walk.block(indent),
        };
        if is_whole.is_none() {
            walk.runs.clear();
        }
        Self {
            runs: walk.runs,
            length: scalar.text.trim_end().len(),
            first_line: Span::new(span.start, span.start + length),
        }
    }

    /// The place in the file of a part of the value.
    pub(crate) fn locate(&self, part: Range<usize>) -> Span {
        let Some(start) = self.start(part.start) else {
            return self.first_line;
        };
        // The end is the end of the last byte, not the start of the next byte, which may be on a later line.
        let end = match part.end.checked_sub(1).filter(|last| *last >= part.start) {
            Some(last) => self.end(last),
            None => Some(start),
        };
        Span::new(start, end.unwrap_or(start).max(start))
    }

    /// The place of the whole value, without the line break at a block's end.
    pub(crate) fn whole(&self) -> Span {
        self.locate(0..self.length)
    }

    /// The run that contains a byte of the value, or the run before it.
    fn run(&self, byte: usize) -> Option<&Run> {
        let behind = self.runs.partition_point(|run| run.value.start <= byte);
        self.runs.get(behind.saturating_sub(1))
    }

    fn start(&self, byte: usize) -> Option<usize> {
        let run = self.run(byte)?;
        Some(if byte < run.value.start {
            run.file.start
        } else if byte >= run.value.end {
            run.file.end
        } else if run.is_verbatim() {
            run.file.start + (byte - run.value.start)
        } else {
            run.file.start
        })
    }

    fn end(&self, byte: usize) -> Option<usize> {
        let run = self.run(byte)?;
        Some(if run.value.contains(&byte) && run.is_verbatim() {
            run.file.start + (byte - run.value.start) + 1
        } else {
            run.file.end
        })
    }
}

impl Run {
    fn is_verbatim(&self) -> bool {
        self.value.len() == self.file.len()
    }
}

/// How a style writes special characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    /// `''` for `'`.
    Doubled,
    /// `
    /// ` and similar escapes.
    Backslash,
}

/// Both texts, and how far each was read. A step returns `None` if they do not match.
struct Walk<'a> {
    written: &'a str,
    at: usize,
    /// Where `written` starts in the file.
    base: usize,
    value: &'a str,
    taken: usize,
    runs: Vec<Run>,
}

impl Walk<'_> {
    /// A scalar in quotes.
    fn quoted(&mut self, escapes: Escapes) -> Option<()> {
        self.at = 1;
        self.flow(self.written.len().checked_sub(1)?, escapes)
    }

    /// A scalar that is not a block, up to byte `end`. Line breaks are folded, together with the blanks around them.
    fn flow(&mut self, end: usize, escapes: Escapes) -> Option<()> {
        while self.at < end {
            let rest = self.written.get(self.at..end)?;
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if line_break(rest.get(blanks..)?) > 0 {
                let (length, breaks) = fold(rest);
                self.take(length, breaks)?;
                continue;
            }
            match (escapes, rest.as_bytes()) {
                (Escapes::Backslash, [b'\\', escaped @ ..]) => {
                    let behind = rest.get(1..)?;
                    if line_break(behind) > 0 {
                        let (length, breaks) = fold(behind);
                        // The first line break is escaped, but the line breaks of the following empty lines are not.
                        self.newlines(1 + length, breaks - 1)?;
                    } else {
                        let character = self.value.get(self.taken..)?.chars().next()?;
                        let length = match escaped.first()? {
                            b'x' => 4,
                            // A character outside of the basic plane may be written as two escapes.
                            b'u' if character.len_utf16() == 2 => 12,
                            b'u' => 6,
                            b'U' => 10,
                            _ => 2,
                        };
                        self.push(length, character.len_utf8());
                    }
                }
                (Escapes::Doubled, [b'\'', b'\'', ..]) => self.verbatim(2, "'")?,
                _ => {
                    let length = self.plain_length(rest, escapes);
                    self.verbatim(length, rest.get(..length)?)?;
                }
            }
        }
        (self.taken == self.value.len()).then_some(())
    }

    /// Bytes up to the next special character, at least one character.
    fn plain_length(&self, rest: &str, escapes: Escapes) -> usize {
        let special = |character: char| match character {
            ' ' | '\t' | '\n' | '\r' => true,
            '\\' => escapes == Escapes::Backslash,
            '\'' => escapes == Escapes::Doubled,
            _ => false,
        };
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let more = rest.get(first..).unwrap_or("");
        first + more.find(special).unwrap_or(more.len())
    }

    /// Handles line breaks: one becomes a space, n become n - 1.
    fn take(&mut self, length: usize, breaks: usize) -> Option<()> {
        if breaks == 1 {
            self.verbatim(length, " ")
        } else {
            self.newlines(length, breaks - 1)
        }
    }

    /// A block scalar. At the start of the walk, its first content is after `indent` spaces.
    fn block(&mut self, indent: usize) -> Option<()> {
        // Empty lines before the first content are not in the scalar's span.
        self.taken = self.value.len() - self.value.trim_start_matches('\n').len();
        loop {
            let rest = self.written.get(self.at..)?;
            let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
            self.verbatim(line, rest.get(..line)?)?;
            let mut length = 0;
            let mut breaks = 0;
            loop {
                let rest = self.written.get(self.at + length..)?;
                let found = line_break(rest);
                if found == 0 {
                    break;
                }
                breaks += 1;
                length += found;
                let rest = self.written.get(self.at + length..)?;
                let spaces = rest.len() - rest.trim_start_matches(' ').len();
                length += spaces.min(indent);
            }
            let rest = self.value.get(self.taken..)?;
            let newlines = rest.len() - rest.trim_start_matches('\n').len();
            if newlines == rest.len() {
                self.push(length, newlines);
                return Some(());
            }
            if breaks == 0 {
                return None;
            }
            match newlines {
                0 if breaks == 1 => self.verbatim(length, " ")?,
                _ if newlines == breaks || newlines + 1 == breaks => {
                    self.newlines(length, newlines)?;
                }
                _ => return None,
            }
        }
    }

    /// Takes `length` bytes of the file that mean `text`.
    fn verbatim(&mut self, length: usize, text: &str) -> Option<()> {
        let is_there = self.value.get(self.taken..)?.starts_with(text);
        is_there.then(|| self.push(length, text.len()))
    }

    fn newlines(&mut self, length: usize, count: usize) -> Option<()> {
        let text = self.value.get(self.taken..self.taken + count)?;
        text.bytes()
            .all(|byte| byte == b'\n')
            .then(|| self.push(length, count))
    }

    /// Takes `length` bytes of the file that mean `of_value` bytes of the value.
    fn push(&mut self, length: usize, of_value: usize) {
        let value = self.taken..self.taken + of_value;
        let file = self.base + self.at..self.base + self.at + length;
        self.at += length;
        self.taken += of_value;
        if of_value == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(last)
                if last.is_verbatim() && length == of_value && last.file.end == file.start =>
            {
                last.value.end = value.end;
                last.file.end = file.end;
            }
            _ => self.runs.push(Run { value, file }),
        }
    }
}

/// The length of the line break at the start of a text.
fn line_break(text: &str) -> usize {
    match text.as_bytes() {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => 0,
    }
}

/// The length of all blanks and line breaks at the start of a text, and the number of line breaks.
fn fold(text: &str) -> (usize, usize) {
    let length = text.len() - text.trim_start_matches([' ', '\t', '\n', '\r']).len();
    let mut breaks = 0;
    let mut at = 0;
    while at < length {
        let found = text.get(at..).map_or(0, line_break);
        breaks += usize::from(found > 0);
        at += found.max(1);
    }
    (length, breaks)
}
