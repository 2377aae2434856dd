//! Makes text from repositories, runners and scripts safe for a terminal, which would otherwise execute control sequences.

use crate::limits::SHOWN_LINE;

const END_OF_STYLE: &str = "\u{1b}[0m";

/// Replaces control characters and characters that change the direction of text.
pub fn clean(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Cleans data for a terminal, line by line, however it is cut into pieces.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// The beginning of a line.
    line: Vec<u8>,
}

impl Screen {
    /// Returns what can be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut shown = String::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() >= SHOWN_LINE {
                shown.push_str(&self.finish());
            }
        }
        shown
    }

    /// Returns the unfinished line.
    pub(crate) fn finish(&mut self) -> String {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        match text.strip_suffix('\n') {
            Some(line) => coloured(line.strip_suffix('\r').unwrap_or(line)) + "\n",
            None => coloured(&text),
        }
    }
}

/// Replaces control characters other than tabs and colours. Colours end with the line.
fn coloured(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let (mut rest, mut is_styled) = (text, false);
    while let Some(first) = rest.chars().next() {
        if let Some(length) = colour_at_start(rest) {
            let (colour, after) = rest.split_at(length);
            safe.push_str(colour);
            is_styled = !matches!(colour, "\u{1b}[m" | END_OF_STYLE);
            rest = after;
            continue;
        }
        safe.push(if first == '\t' { first } else { visible(first) });
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    if is_styled {
        safe.push_str(END_OF_STYLE);
    }
    safe
}

fn visible(character: char) -> char {
    if workflow::is_obeyed(character) {
        char::REPLACEMENT_CHARACTER
    } else {
        character
    }
}

/// The length of the colour or style sequence at the start of the text: `ESC [`, numbers, `m`.
fn colour_at_start(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|character: char| !matches!(character, '0'..='9' | ';' | ':'))?;
    numbers
        .get(end..)?
        .starts_with('m')
        .then_some("\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_text_has_no_control_characters() {
        assert_eq!(
            clean("a\tb\u{1b}[1mç\u{9b}\u{202e}"),
            "a\u{fffd}b\u{fffd}[1mç\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn colours_and_tabs_stay() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\t\u{1b}[mé";
        assert_eq!(coloured(text), text);
    }

    #[test]
    fn other_control_characters_are_shown_and_have_no_effect() {
        for (text, expected) in [
            ("\u{1b}[2Jx", "\u{fffd}[2Jx"),
            ("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}"),
            ("\u{1b}[31", "\u{fffd}[31"),
            ("a\rb\u{8}", "a\u{fffd}b\u{fffd}"),
            ("\u{1b}", "\u{fffd}"),
        ] {
            assert_eq!(coloured(text), expected);
        }
    }

    #[test]
    fn data_is_cleaned_however_it_is_cut() {
        let text = "a\u{9b}2J\u{202e}\r\n\u{1b}[8mhidden\nnext\u{1b}]0;t\u{7}\n\u{1b}[31mend";
        let expected = "a\u{fffd}2J\u{fffd}\n\u{1b}[8mhidden\u{1b}[0m\nnext\u{fffd}]0;t\u{fffd}\n\u{1b}[31mend\u{1b}[0m";
        for size in 1..=text.len() {
            let mut screen = Screen::default();
            let pieces = text.as_bytes().chunks(size);
            let shown: String = pieces.map(|piece| screen.push(piece)).collect();
            assert_eq!(shown + &screen.finish(), expected);
        }
    }
}
