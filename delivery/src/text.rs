//! Texts of anybody, made fit for a target.

use crate::{Level, Message};

/// Room for the note about what is left out.
const NOTE: usize = 48;

/// The text of a message for a target that takes at most `limit`, measured by `size`. Title and link stay whole: the text
/// is cut.
pub(crate) fn compose(
    title: &str,
    message: &Message,
    limit: usize,
    size: impl Fn(char) -> usize,
) -> String {
    let head = match title {
        "" => String::new(),
        title => format!("{title}\n"),
    };
    let mut tail = String::new();
    if message.is_repeated {
        tail.push_str("\n(Possibly repeated: an earlier attempt was interrupted.)");
    }
    if let Some(link) = message.link.as_deref().map(line)
        && link.len() < 1000
    {
        tail.push('\n');
        tail.push_str(&link);
    }
    let taken: usize = head.chars().chain(tail.chars()).map(&size).sum();
    let text = cut(&clean(&message.text), limit.saturating_sub(taken), size);
    format!("{head}{text}{tail}").trim().to_owned()
}

/// The title with a sign for its level.
pub(crate) fn title(message: &Message) -> String {
    let sign = match message.level {
        Level::Problem => "🔴",
        Level::Recovered => "🟢",
        Level::Information => "ℹ️",
    };
    format!("{sign} {}", short_title(message))
}

/// The title as one line of at most 200 characters.
pub(crate) fn short_title(message: &Message) -> String {
    let title = line(&message.title);
    match title.char_indices().nth(199) {
        Some((end, last)) if end + last.len_utf8() < title.len() => format!("{}…", &title[..end]),
        _ => title,
    }
}

/// The beginning of a text, with a note about what is left out.
pub(crate) fn cut(text: &str, limit: usize, size: impl Fn(char) -> usize) -> String {
    if text.chars().map(&size).sum::<usize>() <= limit {
        return text.to_owned();
    }
    let mut used = NOTE;
    let end = text.char_indices().find(|(_, character)| {
        used += size(*character);
        used > limit
    });
    let end = end.map_or(text.len(), |(end, _)| end);
    let left = text[end..].chars().count();
    format!("{}\n… ({left} characters left out)", &text[..end])
}

/// A text without control characters, except for ends of lines and tabs, and without characters that turn its direction.
pub(crate) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars()
        .filter(|character| !turns(*character))
        .map(|character| match character {
            '\n' | '\t' => character,
            _ if character.is_control() => ' ',
            _ => character,
        })
        .collect()
}

/// A clean text in one line.
pub(crate) fn line(text: &str) -> String {
    let text = clean(text);
    text.split(['\n', '\t', '\u{2028}', '\u{2029}'])
        .collect::<Vec<_>>()
        .join(" ")
}

const fn turns(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("short", 5, char::len_utf8), "short");
        let long = "é".repeat(100);
        let short = cut(&long, 101, char::len_utf8);
        assert_eq!(
            short,
            format!("{}\n… (74 characters left out)", "é".repeat(26))
        );
        assert!(short.len() <= 101);
    }

    #[test]
    fn a_line_has_no_control_characters() {
        assert_eq!(
            line("a\r\nBcc: x\0\u{1b}[31m\u{202e}b\u{2028}c"),
            "a Bcc: x  [31mb c"
        );
        assert_eq!(clean("a\r\nb\tc\rd"), "a\nb\tc d");
    }
}
