//! Strings of CEL: their ends, and the errors in strings that the parser refuses.

use std::ops::Range;

/// What to write instead of an unknown escape.
pub(super) const ESCAPES: &str =
    r#"known are `\n`, `\r`, `\t`, `\"`, `\'`, `\\`, `\xFF`, `\uFFFF` and `\177`"#;

/// Why a text that starts with a quote is not a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The closing quote is missing in the line.
    Open,
    /// These bytes are an unknown escape.
    Escape(Range<usize>),
}

/// The flaw of the string whose quote is the first character of `text`.
pub(super) fn flaw(text: &str) -> Option<Flaw> {
    let mut rest = text.chars();
    let quote = rest.next()?;
    let mut escape = None;
    loop {
        let at = text.len() - rest.as_str().len();
        match rest.next() {
            None | Some('\n' | '\r') => return Some(Flaw::Open),
            Some('\\') => match escaped(rest.as_str()) {
                Some(length) => rest = rest.as_str().get(length..).unwrap_or("").chars(),
                None => {
                    let behind = rest.next().filter(|c| !c.is_control());
                    let end = at + 1 + behind.map_or(0, char::len_utf8);
                    escape = escape.or(Some(Flaw::Escape(at..end)));
                }
            },
            Some(character) if character == quote => return escape,
            Some(_) => {}
        }
    }
}

/// The length of the escape after a `\`. `None` if it is unknown.
fn escaped(behind: &str) -> Option<usize> {
    let hexadecimal = |digits: usize| {
        let digits = behind.get(1..=digits)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok()?;
        // One half of a surrogate pair is not a character.
        (is_number && char::from_u32(number).is_some()).then_some(1 + digits.len())
    };
    match behind.bytes().next()? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' => Some(1),
        b'"' | b'\'' | b'\\' | b'?' | b'`' => Some(1),
        b'x' | b'X' => hexadecimal(2),
        b'u' => hexadecimal(4),
        b'U' => hexadecimal(8),
        b'0'..=b'3' => {
            let digits = behind.get(1..3)?;
            let is_octal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
            is_octal.then_some(3)
        }
        _ => None,
    }
}

/// The place after the string whose quote is at `quote`, in an expression that begins at `from` or earlier. `None` if the string
/// has no end. Triple quotes end with triple quotes.
pub(crate) fn string_end(bytes: &[u8], from: usize, quote: usize) -> Option<usize> {
    let is_raw = is_raw(bytes, from, quote);
    let mark = *bytes.get(quote)?;
    let width = if bytes.get(quote..quote + 3) == Some(&[mark; 3]) {
        3
    } else {
        1
    };
    let mut at = quote + width;
    loop {
        match *bytes.get(at)? {
            b'\\' if !is_raw => at += 2,
            byte if byte == mark && bytes.get(at..at + width)?.iter().all(|byte| *byte == mark) => {
                return Some(at + width);
            }
            _ => at += 1,
        }
    }
}

/// Whether the string whose quote is at `quote` is a raw string (prefix `r`), without escapes.
fn is_raw(bytes: &[u8], from: usize, quote: usize) -> bool {
    let before = bytes.get(from..quote).unwrap_or_default();
    let prefix = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let prefix = &before[before.len() - prefix..];
    matches!(
        prefix,
        [b'r' | b'R'] | [b'b' | b'B', b'r' | b'R'] | [b'r' | b'R', b'b' | b'B']
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unknown_escape_is_found() {
        let escape = |range| Some(Flaw::Escape(range));
        for (text, expected) in [
            (r#""\q""#, escape(1..3)),
            (r#""\ud800" == '"#, escape(1..3)),
            (r"'\n\é\q'", escape(3..6)),
            (r"'\400'", escape(1..3)),
            (r"'\x4'", escape(1..3)),
            (r"'\u+041'", escape(1..3)),
            (r"'\q", Some(Flaw::Open)),
            ("'a\n'", Some(Flaw::Open)),
            (r"'a\'", Some(Flaw::Open)),
            (r"'\", Some(Flaw::Open)),
            (r#"'\a\n\"\'\\\x41\u00e9\U0001F600\101' \q"#, None),
            ("", None),
        ] {
            assert_eq!(flaw(text), expected, "{text}");
        }
    }
}
