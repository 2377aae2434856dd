//! Scalars: what a plain one means, and where a byte of its value stands in the file.

use std::ops::Range;

use crate::position::Span;

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    Literal,
    Folded,
}

/// What a scalar means by the core schema of YAML 1.2, in which `on` and `yes` are texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Null,
    Bool(bool),
    Number,
    Text,
}

impl Meaning {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
        }
    }
}

/// A text as written.
#[derive(Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Scalar {
    pub(crate) fn meaning(&self) -> Meaning {
        if self.style != Style::Plain {
            return Meaning::Text;
        }
        match self.text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Meaning::Null,
            "true" | "True" | "TRUE" => Meaning::Bool(true),
            "false" | "False" | "FALSE" => Meaning::Bool(false),
            text if is_number(text) => Meaning::Number,
            _ => Meaning::Text,
        }
    }

    /// Where a part of the value stands in `file`. Exact where each character of the value stands for itself: on one
    /// line without escapes, and in literal blocks. Elsewhere it is the start of the scalar's first line.
    pub(crate) fn locate(&self, file: &str, span: Span, part: Range<usize>) -> Span {
        let written = file.get(span.start..span.end).unwrap_or("");
        let first_line = || {
            let length = written.find(['\n', '\r']).unwrap_or(written.len());
            Span::new(span.start, span.start + length)
        };
        let shifted =
            |by: usize| Span::new(span.start + by + part.start, span.start + by + part.end);
        match self.style {
            Style::Plain if written == self.text => shifted(0),
            Style::Quoted
                if written.get(1..written.len().saturating_sub(1)) == Some(&self.text) =>
            {
                shifted(1)
            }
            Style::Literal => self
                .locate_in_block(written, span, &part)
                .unwrap_or_else(first_line),
            Style::Plain | Style::Quoted | Style::Folded => first_line(),
        }
    }

    /// A literal block keeps its lines; each is indented in the file.
    fn locate_in_block(&self, written: &str, span: Span, part: &Range<usize>) -> Option<Span> {
        let before = self.text.get(..part.start)?;
        let line = before.matches('\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        let value_line = self.text.split('\n').nth(line)?;
        let mut start = span.start;
        let mut lines = written.split('\n');
        // The span of a block may begin at its content or at its `|`.
        if written.starts_with('|') {
            start += lines.next()?.len() + 1;
        }
        let mut written_line = lines.next()?;
        for _ in 0..line {
            start += written_line.len() + 1;
            written_line = lines.next()?;
        }
        let written_line = written_line.strip_suffix('\r').unwrap_or(written_line);
        let indent = written_line.len().checked_sub(value_line.len())?;
        if !written_line.ends_with(value_line) {
            return None;
        }
        let at = start + indent + column;
        let length = part.len().min(value_line.len() - column);
        Some(Span::new(at, at + length))
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let all = |text: &str, allowed: fn(char) -> bool| !text.is_empty() && text.chars().all(allowed);
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return all(hexadecimal, |c| c.is_ascii_hexdigit());
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return all(octal, |c| c.is_digit(8));
    }
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    digits.len() + 1 >= text.len()
        && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar {
        Scalar {
            text: text.to_owned(),
            style: Style::Plain,
        }
    }

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        for text in ["", "~", "null"] {
            assert_eq!(plain(text).meaning(), Meaning::Null, "{text}");
        }
        for text in [
            "1", "-1", "+1", "1.5", ".5", "1e3", "0x1F", "0o17", ".inf", "-.inf", ".nan",
        ] {
            assert_eq!(plain(text).meaning(), Meaning::Number, "{text}");
        }
        for text in [
            "on", "yes", "no", "off", "1h", "--1", "1.2.3", "0x", "e3", "inf", "NaN", "infinity",
            "1_000",
        ] {
            assert_eq!(plain(text).meaning(), Meaning::Text, "{text}");
        }
        assert_eq!(plain("True").meaning(), Meaning::Bool(true));
        assert_eq!(
            Scalar {
                text: "true".to_owned(),
                style: Style::Quoted
            }
            .meaning(),
            Meaning::Text
        );
    }
}
