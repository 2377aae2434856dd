//! Rendering: each placeholder of a declared variable is replaced by its value, in one pass, the longest placeholder first.
//! Everything else stays as it is, byte for byte.
//!
//! A filter stands before the closing part of a placeholder, which is the punctuation at its end: `%%NAME|url%%`, `<NAME|html>`.
//! A placeholder that ends with a letter, digit or `_` takes no filter.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use super::Variable;
use crate::limits::PAYLOAD_FILTERS;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// All but letters, digits and `-._~` percent-encoded.
    Url,
    /// As in a JSON string, without the quotes.
    Json,
    /// With `&`, `<`, `>` and quotes as references.
    Html,
    Base64,
}

impl Filter {
    const ALL: [Self; 4] = [Self::Url, Self::Json, Self::Html, Self::Base64];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Json => "json",
            Self::Html => "html",
            Self::Base64 => "base64",
        }
    }

    pub fn apply(self, value: &str) -> String {
        match self {
            Self::Url => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                let mut text = String::with_capacity(value.len());
                for byte in value.bytes() {
                    match is_plain(byte) {
                        true => text.push(char::from(byte)),
                        false => text.push_str(&format!("%{byte:02X}")),
                    }
                }
                text
            }
            Self::Json => {
                let quoted = serde_json::Value::from(value).to_string();
                let inner = quoted
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'));
                inner.unwrap_or_default().to_owned()
            }
            Self::Html => {
                let mut text = String::with_capacity(value.len());
                for character in value.chars() {
                    match character {
                        '&' => text.push_str("&amp;"),
                        '<' => text.push_str("&lt;"),
                        '>' => text.push_str("&gt;"),
                        '"' => text.push_str("&quot;"),
                        '\'' => text.push_str("&#39;"),
                        other => text.push(other),
                    }
                }
                text
            }
            Self::Base64 => STANDARD.encode(value),
        }
    }
}

/// A body, cut at its placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<'t> {
    pieces: Vec<Piece<'t>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    Text(&'t [u8]),
    Placeholder {
        /// As it stands in the body.
        written: &'t [u8],
        variable: &'t Variable,
        filters: Vec<Filter>,
    },
}

/// No value is given for a variable, and it has no default.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the variable `{name}` has no value and no default")]
pub struct MissingValue {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    #[error(transparent)]
    Missing(#[from] MissingValue),
    #[error("the rendered body is too long")]
    TooLong,
}

impl<'t> Template<'t> {
    pub fn new(body: &'t [u8], variables: &'t [Variable]) -> Self {
        let mut pieces = Vec::new();
        let (mut begin, mut at) = (0, 0);
        let mut starts = [false; 256];
        for variable in variables {
            if let Some(first) = variable.placeholder.bytes().next() {
                starts[usize::from(first)] = true;
            }
        }
        while at < body.len() {
            let found = match starts[usize::from(body[at])] {
                true => longest(&body[at..], variables),
                false => None,
            };
            let Some((variable, filters, length)) = found else {
                at += 1;
                continue;
            };
            if begin < at {
                pieces.push(Piece::Text(&body[begin..at]));
            }
            pieces.push(Piece::Placeholder {
                written: &body[at..at + length],
                variable,
                filters,
            });
            at += length;
            begin = at;
        }
        if begin < body.len() {
            pieces.push(Piece::Text(&body[begin..]));
        }
        Self { pieces }
    }

    pub fn pieces(&self) -> &[Piece<'t>] {
        &self.pieces
    }

    /// Whether the variable of this name stands in the body.
    pub fn uses(&self, name: &str) -> bool {
        let is_used = |piece: &Piece<'_>| matches!(piece, Piece::Placeholder { variable, .. } if variable.name == name);
        self.pieces.iter().any(is_used)
    }

    /// The body with the values of its variables, in at most `most` bytes. `value` gives those that are not the defaults.
    pub fn render<'v>(
        &self,
        most: usize,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<Vec<u8>, RenderError> {
        let mut rendered = Vec::new();
        for piece in &self.pieces {
            rendered.extend_from_slice(&piece.render(&value)?);
            if rendered.len() > most {
                return Err(RenderError::TooLong);
            }
        }
        Ok(rendered)
    }
}

impl Piece<'_> {
    pub fn render<'v>(
        &self,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<Cow<'_, [u8]>, MissingValue> {
        match self {
            Self::Text(text) => Ok(Cow::Borrowed(text)),
            Self::Placeholder {
                variable, filters, ..
            } => {
                let filtered = |text: String, filter: &Filter| filter.apply(&text);
                let value = plain(variable, value)?.to_owned();
                Ok(Cow::Owned(
                    filters.iter().fold(value, filtered).into_bytes(),
                ))
            }
        }
    }
}

fn plain<'a, 'v: 'a>(
    variable: &'a Variable,
    value: impl Fn(&str) -> Option<&'v str>,
) -> Result<&'a str, MissingValue> {
    let value = value(&variable.name).or(variable.default.as_deref());
    value.ok_or_else(|| MissingValue {
        name: variable.name.clone(),
    })
}

/// The longest placeholder at the beginning of the text.
fn longest<'t>(
    text: &[u8],
    variables: &'t [Variable],
) -> Option<(&'t Variable, Vec<Filter>, usize)> {
    let found = variables.iter().filter_map(|variable| {
        let (filters, length) = placeholder_at(text, &variable.placeholder)?;
        Some((variable, filters, length))
    });
    found.max_by_key(|(.., length)| *length)
}

/// The filters and the length of the placeholder at the beginning of the text.
fn placeholder_at(text: &[u8], placeholder: &str) -> Option<(Vec<Filter>, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let open = placeholder.trim_end_matches(|c| !is_word(c));
    // A placeholder without a letter has no end.
    let (open, close) = match open {
        "" => (placeholder, ""),
        open => (open, &placeholder[open.len()..]),
    };
    let mut rest = text.strip_prefix(open.as_bytes())?;
    let mut filters = Vec::new();
    while !close.is_empty() && filters.len() < PAYLOAD_FILTERS {
        let Some(named) = rest.strip_prefix(b"|") else {
            break;
        };
        let known = Filter::ALL.into_iter();
        let mut known = known
            .filter_map(|filter| Some((filter, named.strip_prefix(filter.name().as_bytes())?)));
        let Some((filter, after)) = known.next() else {
            break;
        };
        filters.push(filter);
        rest = after;
    }
    let rest = rest.strip_prefix(close.as_bytes())?;
    Some((filters, text.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variable(name: &str, placeholder: &str, default: Option<&str>) -> Variable {
        Variable {
            name: name.to_owned(),
            placeholder: placeholder.to_owned(),
            default: default.map(str::to_owned),
        }
    }

    fn declared() -> Vec<Variable> {
        vec![
            variable("CALLBACK", "%%CALLBACK%%", None),
            variable("CALL", "%%CALL", Some("short")),
            variable("ID", "{{id}}", Some("7")),
            variable("FUZZ", "FUZZ", Some("f")),
            variable("DOTS", "..", Some(":")),
        ]
    }

    const MOST: usize = 20 * 1024 * 1024;

    fn rendered(body: &[u8]) -> Result<Vec<u8>, RenderError> {
        let value = |name: &str| (name == "CALLBACK").then_some("a.example/<\"é'>&");
        Template::new(body, &declared()).render(MOST, value)
    }

    fn check(body: &str, expected: &str) {
        assert_eq!(
            rendered(body.as_bytes()).unwrap(),
            expected.as_bytes(),
            "{body}"
        );
    }

    #[test]
    fn placeholders_get_their_values_and_filters() {
        check("x%%CALLBACK%%y", "xa.example/<\"é'>&y");
        check("%%CALLBACK|url%%", "a.example%2F%3C%22%C3%A9%27%3E%26");
        check("%%CALLBACK|json%%", "a.example/<\\\"é'>&");
        check("%%CALLBACK|html%%", "a.example/&lt;&quot;é&#39;&gt;&amp;");
        check("%%CALLBACK|base64%%", "YS5leGFtcGxlLzwiw6knPiY=");
        check("%%CALLBACK|base64|url%%", "YS5leGFtcGxlLzwiw6knPiY%3D");
        check("{{id}}{{id|base64}}FUZZ", "7Nw==f");
        check("...", ":.");
    }

    #[test]
    fn the_longest_placeholder_wins_in_one_pass() {
        check("%%CALL%%CALLBACK%%", "shorta.example/<\"é'>&");
        check("%%CALLBACK%", "shortBACK%");
        // A value that looks like a placeholder stays as it is.
        let value = |_: &str| Some("FUZZ{{id}}");
        let variables = declared();
        let template = Template::new(b"FUZZ", &variables);
        assert_eq!(template.render(MOST, value).unwrap(), b"FUZZ{{id}}");
        assert!(template.uses("FUZZ") && !template.uses("ID"));
    }

    #[test]
    fn what_is_not_declared_stays() {
        for body in [
            "{{ id }} {{id|nothing}} ${{ secrets.X }} ${x} $x %%OTHER%% %%CAL",
            "a\0b\r\nc\rd\n\u{202e}",
            "",
        ] {
            check(body, body);
        }
        let chain = "|url|url|url|url|url%%";
        check(&format!("%%CALLBACK{chain}"), &format!("shortBACK{chain}"));
        assert_eq!(rendered(b"\xff\xfe\0FUZZ\x80").unwrap(), b"\xff\xfe\0f\x80");
    }

    #[test]
    fn a_missing_value_is_named() {
        let variables = declared();
        let template = Template::new(b"x%%CALLBACK%%", &variables);
        let name = "CALLBACK".to_owned();
        let missing = RenderError::Missing(MissingValue { name });
        assert_eq!(template.render(MOST, |_| None), Err(missing));
        // What does not stand in the body needs no value.
        assert!(
            Template::new(b"x", &variables)
                .render(MOST, |_| None)
                .is_ok()
        );
    }

    #[test]
    fn a_rendered_body_has_at_most_so_many_bytes() {
        let variables = declared();
        let template = Template::new(b"FUZZ-FUZZ", &variables);
        let value = |_: &str| Some("four");
        assert_eq!(template.render(9, value).unwrap(), b"four-four");
        assert_eq!(template.render(8, value), Err(RenderError::TooLong));
    }

    #[test]
    fn ten_megabytes_are_rendered_in_time_that_grows_with_their_length() {
        let body = b"%%CAL|url|%%%%%%CAL{{{{FUZ".repeat(10 * 1024 * 1024 / 26);
        assert_eq!(rendered(&body).unwrap(), body);
    }

    proptest! {
        #[test]
        fn no_undeclared_byte_changes(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..6),
                    prop::sample::select(vec![
                        "%%CALLBACK%%", "%%CALLBACK|html%%", "%%CALLBACK|", "{{id}}", "{{id", "FUZ", "Z", "%%", "${{", "\r\n", "\0",
                    ]).prop_map(|text| text.as_bytes().to_vec()),
                ],
                0..20,
            )
        ) {
            let body = parts.concat();
            let variables = declared();
            let template = Template::new(&body, &variables);
            let mut written = Vec::new();
            let mut expected = Vec::new();
            for piece in template.pieces() {
                match piece {
                    Piece::Text(text) => {
                        written.extend_from_slice(text);
                        expected.extend_from_slice(text);
                    }
                    Piece::Placeholder { written: text, variable, .. } => {
                        written.extend_from_slice(text);
                        prop_assert!(!text.is_empty() && variable.placeholder.as_bytes()[0] == text[0]);
                        expected.push(b'V');
                    }
                }
            }
            prop_assert_eq!(&written, &body);
            // `V` is a value that no filter but base64 changes.
            let value = |_: &str| Some("V");
            prop_assert_eq!(template.render(MOST, value).unwrap(), expected);
            prop_assert_eq!(Template::new(&body, &[]).render(MOST, value).unwrap(), body);
        }
    }
}
