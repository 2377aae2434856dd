//! Checks which encodings of a secret a masker hides. The check runs the masker itself, so it agrees with the logs.

use std::ops::Range;

use workflow::hex;

use super::patterns::{self, base64, json, short_lines};
use super::{MASK, Masker, MaskerError};
use crate::limits::BASE64_LINES;
use crate::sealing::SecretValue;

/// What the masker hides of a secret. Contains no part of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskingCheck {
    pub encodings: Vec<EncodingCheck>,
    /// See [`short_lines`].
    pub short_lines: Vec<usize>,
}

/// An encoding of a secret, and whether it is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingCheck {
    pub encoding: &'static str,
    /// Why it is not hidden. None if it is hidden.
    pub missed: Option<Missed>,
}

/// Why an encoding of a secret is not hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// A line of it is so short that it occurs in other texts.
    TooShort,
    /// The masker does not recognise this encoding.
    NotRecognised,
}

/// A text, and the range of bytes that reveals the secret.
struct Sample {
    text: String,
    secret: Range<usize>,
}

impl Sample {
    fn whole(text: String) -> Self {
        let secret = 0..text.len();
        Self { text, secret }
    }
}

type Encode = fn(&str) -> Vec<Sample>;

/// Encodings that the masker recognises. Only a line that is too short is not hidden.
const RECOGNISED: [(&str, Encode); 13] = [
    ("plain", |text| one(text.to_owned())),
    ("lines", lines),
    ("base64", |text| one(padded_base64(text.as_bytes()))),
    ("base64_inside", base64_inside),
    ("base64_lines", base64_lines),
    ("base64_url", |text| {
        one(padded_base64(text.as_bytes())
            .replace('+', "-")
            .replace('/', "_"))
    }),
    ("percent", |text| one(percent(text, "-_.~"))),
    (
        "form",
        |text| one(percent(text, "-_.*").replace("%20", "+")),
    ),
    ("json", |text| one(json(text)[0].clone())),
    ("json_ascii", |text| one(json(text)[1].clone())),
    ("shell_quotes", |text| one(text.replace('\'', r"'\''"))),
    ("hex", |text| one(hex(text.as_bytes()))),
    ("hex_upper", |text| one(hex(text.as_bytes()).to_uppercase())),
];

/// Common encodings that the masker does not recognise. A value that is unchanged by such an encoding is still hidden.
const OTHERS: [(&str, Encode); 4] = [
    ("html", |text| one(html(text))),
    ("hex_spaced", |text| {
        let digits: Vec<String> = text.bytes().map(|byte| hex(&[byte])).collect();
        one(digits.join(" "))
    }),
    ("base64_twice", |text| {
        let once = padded_base64(text.as_bytes());
        one(padded_base64(once.as_bytes()))
    }),
    ("reversed", |text| one(text.chars().rev().collect())),
];

/// Runs a masker of only this secret on each encoding.
pub fn check_masking(value: &SecretValue) -> Result<MaskingCheck, MaskerError> {
    let masker = Masker::new([value.reveal()])?;
    // The masker ignores line ends around a secret.
    let text = value.reveal().trim_matches(['\n', '\r']);
    let check = |(encoding, encode): (&'static str, Encode), why| {
        let is_hidden = encode(text).iter().all(|sample| masker.hides(sample));
        let missed = (!is_hidden).then_some(why);
        EncodingCheck { encoding, missed }
    };
    let recognised = RECOGNISED.map(|it| check(it, Missed::TooShort));
    let others = OTHERS.map(|it| check(it, Missed::NotRecognised));
    Ok(MaskingCheck {
        encodings: recognised.into_iter().chain(others).collect(),
        short_lines: short_lines(value.reveal()),
    })
}

impl Masker {
    /// True if the output has no part of the secret, except characters that it shares with its surroundings.
    fn hides(&self, sample: &Sample) -> bool {
        let Sample { text, secret } = sample;
        let masked = self.mask(text).into_bytes();
        let bytes = text.as_bytes();
        (0..=secret.start).any(|start| {
            (secret.end..=bytes.len())
                .any(|end| masked == [&bytes[..start], MASK, &bytes[end..]].concat())
        })
    }
}

fn one(text: String) -> Vec<Sample> {
    vec![Sample::whole(text)]
}

/// Each line on its own, and each value in a line.
fn lines(text: &str) -> Vec<Sample> {
    let lines = patterns::lines(text).into_iter();
    lines
        .flat_map(|(_, line, value)| [Some(line), value])
        .flatten()
        .filter(|text| !text.is_empty())
        .map(|text| Sample::whole(text.to_owned()))
        .collect()
}

fn padded_base64(bytes: &[u8]) -> String {
    let text = base64(bytes);
    let padding = text.len().next_multiple_of(4) - text.len();
    text + &"=".repeat(padding)
}

/// Base64 of a longer text, with the secret at each of the three positions within a group.
fn base64_inside(text: &str) -> Vec<Sample> {
    let before = ["", "u", "u:"].into_iter();
    before
        .map(|before| {
            let end = before.len() + text.len();
            Sample {
                text: padded_base64(format!("{before}{text}@host").as_bytes()),
                // The characters at the edges also contain bits of the neighbours.
                secret: (before.len() * 8).div_ceil(6)..end * 8 / 6,
            }
        })
        .collect()
}

fn base64_lines(text: &str) -> Vec<Sample> {
    let whole = padded_base64(text.as_bytes());
    let of_length = |line| {
        let lines = whole.as_bytes().chunks(line);
        lines.map(|line| Sample::whole(String::from_utf8_lossy(line).into_owned()))
    };
    BASE64_LINES.into_iter().flat_map(of_length).collect()
}

/// Percent-encoding that keeps letters, digits and `plain`.
fn percent(text: &str, plain: &str) -> String {
    let encode = |byte: u8| match char::from(byte) {
        same if same.is_ascii_alphanumeric() || plain.contains(same) => same.to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn missed(value: &str) -> Vec<(&'static str, Missed)> {
        let check = check_masking(&SecretValue::new(value.to_owned())).unwrap();
        let missed = check.encodings.into_iter();
        missed
            .filter_map(|check| Some((check.encoding, check.missed?)))
            .collect()
    }

    const ALWAYS: [(&str, Missed); 3] = [
        ("hex_spaced", Missed::NotRecognised),
        ("base64_twice", Missed::NotRecognised),
        ("reversed", Missed::NotRecognised),
    ];

    #[test]
    fn an_ordinary_secret_is_hidden_in_every_recognised_encoding() {
        assert_eq!(missed("correct horse: battery/staple\n"), ALWAYS);
        let html = ("html", Missed::NotRecognised);
        assert_eq!(missed("it's <a> \"b\" & ✓")[0], html);
        assert_eq!(missed("it's <a> \"b\" & ✓")[1..], ALWAYS);
    }

    #[test]
    fn short_lines_are_reported() {
        let short = |encoding| (encoding, Missed::TooShort);
        assert_eq!(missed("{\n  \"key\": 1\n}")[0], short("lines"));
        assert_eq!(missed("the first\nuser: ci, key: 0123 4567")[0], ALWAYS[0]);
        assert_eq!(missed("the first\nuser-name: ci")[0], short("lines"));
        // 80 characters of base64: a line of 76, and a last line that is too short.
        assert_eq!(missed(&"k3y".repeat(20))[0], short("base64_lines"));
    }

    #[test]
    fn an_encoding_that_does_not_change_the_value_is_hidden() {
        assert!(!missed("abcba").contains(&("reversed", Missed::NotRecognised)));
    }

    proptest! {
        /// The masker hides each recognised encoding of every line.
        #[test]
        fn a_line_is_hidden_in_every_recognised_encoding(value in "[ -~äß✓😀]{3,30}") {
            prop_assume!(value.trim().chars().count() >= 3);
            let missed = missed(&value);
            // The last line of base64 may be too short.
            let is_expected = |(encoding, why): &(&str, Missed)| {
                *why == Missed::NotRecognised || *encoding == "base64_lines"
            };
            prop_assert!(missed.iter().all(is_expected), "{:?}", missed);
        }
    }
}
