//! Scalars, and the meaning of plain scalars.

/// The style in which a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
    Folded,
}

/// The meaning of a scalar in the core schema of YAML 1.2, in which `on` and `yes` are texts.
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
                style: Style::DoubleQuoted
            }
            .meaning(),
            Meaning::Text
        );
    }
}
