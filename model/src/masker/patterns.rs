//! The forms in which a secret may appear: the secret, its lines, and their common encodings.

use std::collections::BTreeSet;

use workflow::hex;

use crate::limits::{BASE64_LINES, BASE64_REST_CHARS, SECRET_CHARS, SECRET_LINE_CHARS};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Characters that URL encoders keep in addition to letters and digits: RFC 3986, RFC 3986 for whole paths, JavaScript,
/// and forms.
const URL_PLAIN: [&str; 4] = ["-_.~", "-_.~/", "-_.~!*'()", "-_.*"];

/// A single quote within a shell's single quotes, as written by people and by Python's `shlex.quote`.
const QUOTES: [&str; 2] = [r"'\''", r#"'"'"'"#];

/// Adds every form of a secret that is long enough to be distinguished from other text.
pub(super) fn add(secret: &str, patterns: &mut BTreeSet<Vec<u8>>) {
    // Line ends around a secret are ignored. If a pattern began with a line end, the end of every line would be kept.
    let whole = secret.trim_matches(['\n', '\r']);
    let lines = lines(whole);
    let mut texts = vec![whole];
    if lines.is_empty() {
        texts.push(whole.trim());
    }
    for (_, line, value) in lines {
        let value = value.filter(|value| is_long(value));
        if value.is_some() {
            // Encodings of the line contain those of the value, which are masked below. Only its base64 in lines differs.
            // All encodings of both would take twice the memory.
            let forms = with_url_alphabet(base64_lines(line)).into_iter();
            patterns.extend(forms.chain([line.to_owned()]).map(String::into_bytes));
        }
        texts.extend(value.or_else(|| is_long(line).then_some(line)));
    }
    for text in texts {
        if text.chars().count() >= SECRET_CHARS {
            let mut forms = vec![text.to_owned()];
            forms.extend(QUOTES.map(|quote| text.replace('\'', quote)));
            forms.extend(json(text));
            forms.extend(urls(text));
            forms.extend(hexadecimal(text));
            forms.extend(base64s(text));
            let long_enough = forms.into_iter().filter(|form| form.len() >= SECRET_CHARS);
            patterns.extend(long_enough.map(String::into_bytes));
        }
    }
}

/// The lines of a secret of several lines, each with its number and the value in it. Empty if the secret has one line.
pub(super) fn lines(secret: &str) -> Vec<(usize, &str, Option<&str>)> {
    let lines = (1..).zip(secret.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty());
    let lines: Vec<_> = lines
        .map(|(number, line)| (number, line, value(line)))
        .collect();
    if lines.len() < 2 { Vec::new() } else { lines }
}

fn is_long(text: &str) -> bool {
    text.chars().count() >= SECRET_LINE_CHARS
}

/// The numbers of the lines that are not masked alone, or whose value is not, because it is too short.
pub fn short_lines(secret: &str) -> Vec<usize> {
    let lines = lines(secret).into_iter();
    let short = lines.filter(|(_, line, value)| !is_long(value.unwrap_or(line)));
    short.map(|(number, _, _)| number).collect()
}

/// The value of a line `key: value` or `KEY=value`, without quotes and the comma of JSON.
fn value(line: &str) -> Option<&str> {
    let (_, value) = line.split_once(": ").or_else(|| assignment(line))?;
    let value = value.trim().trim_end_matches(',');
    let unquoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    Some(unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value))
}

/// The name and the value of `KEY=value` or `export KEY=value`. `None` for base64 with `=` at its end.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !value.trim_matches('=').is_empty()).then_some((name, value))
}

/// The text within a JSON string, with non-ASCII characters kept or written as `\u`.
pub(super) fn json(text: &str) -> [String; 2] {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let plain = quoted.trim_start_matches('"');
    let plain = plain.strip_suffix('"').unwrap_or(plain).to_owned();
    let mut ascii = String::with_capacity(plain.len());
    for character in plain.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    [plain, ascii]
}

fn urls(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for plain in URL_PLAIN {
        let escape = |byte: u8| match char::from(byte) {
            letter if letter.is_ascii_alphanumeric() || plain.contains(letter) => letter.into(),
            _ => format!("%{byte:02X}"),
        };
        let upper: String = text.bytes().map(escape).collect();
        let lower =
            upper
                .split('%')
                .enumerate()
                .map(|(at, part)| match (at, part.split_at_checked(2)) {
                    (1.., Some((digits, rest))) => format!("%{}{rest}", digits.to_lowercase()),
                    (_, _) => part.to_owned(),
                });
        for form in [lower.collect(), upper.clone()] {
            forms.push(form.replace("%20", "+"));
            forms.push(form);
        }
    }
    forms
}

fn hexadecimal(text: &str) -> [String; 2] {
    let lower = hex(text.as_bytes());
    [lower.to_uppercase(), lower]
}

/// The characters of base64 that depend only on the text, for each of the three positions in a group where it may begin, in
/// both alphabets; the same for a text at the end, with and without padding; and the lines into which programs break it.
fn base64s(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(text.bytes()).collect();
        let whole = base64(&bytes);
        let first = (before * 8).div_ceil(6);
        let end = bytes.len() * 8 / 6;
        forms.push(whole[first..end].to_owned());
        let last = whole[first..].to_owned();
        forms.extend([padded(&last, whole.len()), last]);
    }
    forms.extend(base64_lines(text));
    with_url_alphabet(forms)
}

/// The end of a base64 text of this length, with padding.
fn padded(end: &str, length: usize) -> String {
    end.to_owned() + &"=".repeat(length.next_multiple_of(4) - length)
}

/// The lines into which programs break the base64 of a text.
fn base64_lines(text: &str) -> Vec<String> {
    let whole = base64(text.as_bytes());
    let whole = padded(&whole, whole.len());
    let lines = BASE64_LINES.iter();
    lines.flat_map(|line| broken(&whole, *line)).collect()
}

fn with_url_alphabet(mut forms: Vec<String>) -> Vec<String> {
    let of_urls: Vec<String> = forms
        .iter()
        .map(|form| form.replace('+', "-").replace('/', "_"))
        .collect();
    forms.extend(of_urls);
    forms
}

/// The lines of this length. Empty if there is only one line.
fn broken(form: &str, line: usize) -> Vec<String> {
    if form.len() <= line {
        return Vec::new();
    }
    form.as_bytes()
        .chunks(line)
        .filter(|chunk| chunk.len() >= BASE64_REST_CHARS)
        .map(|chunk| String::from_utf8_lossy(chunk).into_owned())
        .collect()
}

/// Base64 without padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let padded = [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = padded[0] << 16 | padded[1] << 8 | padded[2];
        for at in 0..=group.len() {
            let six = bits >> (18 - 6 * at) & 0x3f;
            text.push(char::from(BASE64[six as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_follows_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    /// For any surrounding text, the base64 contains one of the forms.
    #[test]
    fn every_position_within_a_group_is_covered() {
        let forms = base64s("hunter2?>");
        for before in ["", "a", "ab", "abc", "Bearer "] {
            for after in ["", "z", "zy", "zyx"] {
                let encoded = base64(format!("{before}hunter2?>{after}").as_bytes());
                assert!(forms.iter().any(|form| encoded.contains(form)), "{encoded}");
                let encoded = encoded.replace('+', "-").replace('/', "_");
                assert!(forms.iter().any(|form| encoded.contains(form)), "{encoded}");
            }
        }
    }

    #[test]
    fn no_pattern_begins_with_a_line_end() {
        let mut patterns = BTreeSet::new();
        add("\n\nfirst\r\n  the second\n", &mut patterns);
        assert!(
            patterns
                .iter()
                .all(|pattern| !matches!(pattern[0], b'\n' | b'\r'))
        );
        assert!(patterns.contains(b"the second".as_slice()));
    }
}
