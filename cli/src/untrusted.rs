//! Makes text from repositories, runners and scripts safe for a terminal, which would otherwise execute control sequences.

/// Replaces control characters and characters that change the direction of text.
pub fn clean(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Replaces control characters other than tabs and colours.
pub(crate) fn coloured(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = colour_at_start(rest) {
            let (colour, after) = rest.split_at(length);
            safe.push_str(colour);
            rest = after;
            continue;
        }
        safe.push(if first == '\t' { first } else { visible(first) });
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
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
}
