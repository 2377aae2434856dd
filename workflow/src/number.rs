//! The value of an input of type `number`: an exact decimal of at most 15 digits. A double preserves this many digits, so the
//! value is the same in JSON, in expressions, in browsers and on the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::NUMBER_DIGITS;

/// A decimal number. Equal numbers are equal in all spellings: `3`, `3.0` and `+3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Number", into = "serde_json::Number")]
pub struct Number {
    /// All digits. The last digit is not 0 if there are digits after the point.
    digits: i64,
    /// How many of the digits are after the point.
    scale: u8,
}

/// The text is not a valid number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a number has at most {NUMBER_DIGITS} digits, such as `3` or `-0.5`, and no exponent")]
pub struct NumberError;

impl Number {
    pub const ZERO: Self = Self {
        digits: 0,
        scale: 0,
    };

    /// The number, if it has no fraction.
    pub const fn whole(self) -> Option<i64> {
        match self.scale {
            0 => Some(self.digits),
            _ => None,
        }
    }

    /// The nearest double. It prints as the same digits.
    pub fn to_f64(self) -> f64 {
        // The text of a number can always be parsed.
        self.to_string().parse().unwrap_or_default()
    }
}

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (before, after) = match unsigned.split_once('.') {
            Some((_, "")) => return Err(NumberError),
            Some(parts) => parts,
            None => (unsigned, ""),
        };
        let after = after.trim_end_matches('0');
        // A zero before the point does not count as a digit.
        let significant = before.trim_start_matches('0');
        let all = [before, after].concat();
        if before.is_empty()
            || significant.len() + after.len() > NUMBER_DIGITS
            || !unsigned
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
            || !all.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(NumberError);
        }
        let magnitude: i64 = [significant, after].concat().parse().unwrap_or(0);
        let scale = u8::try_from(after.len()).map_err(|_| NumberError)?;
        Ok(Self {
            digits: if text.starts_with('-') {
                -magnitude
            } else {
                magnitude
            },
            scale,
        })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = usize::from(self.scale);
        if scale == 0 {
            return write!(f, "{}", self.digits);
        }
        let digits = format!("{:0width$}", self.digits.unsigned_abs(), width = scale + 1);
        let (before, after) = digits.split_at(digits.len() - scale);
        let sign = if self.digits < 0 { "-" } else { "" };
        write!(f, "{sign}{before}.{after}")
    }
}

impl TryFrom<serde_json::Number> for Number {
    type Error = NumberError;

    fn try_from(number: serde_json::Number) -> Result<Self, NumberError> {
        Self::try_from(&number)
    }
}

impl TryFrom<&serde_json::Number> for Number {
    type Error = NumberError;

    /// JSON may write `1e3`.
    fn try_from(number: &serde_json::Number) -> Result<Self, NumberError> {
        match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string().parse(),
            (None, Some(double)) => double.to_string().parse(),
            (None, None) => Err(NumberError),
        }
    }
}

impl From<Number> for serde_json::Number {
    fn from(number: Number) -> Self {
        match number.whole() {
            Some(whole) => whole.into(),
            None => Self::from_f64(number.to_f64()).unwrap_or_else(|| 0.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_prints_in_its_shortest_form() {
        for (text, shown) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("3", "3"),
            ("+3", "3"),
            ("3.0", "3"),
            ("007", "7"),
            ("0.5", "0.5"),
            ("-0.50", "-0.5"),
            ("10.25", "10.25"),
            ("0.00000000000001", "0.00000000000001"),
            ("999999999999999", "999999999999999"),
            ("-99999999999999.9", "-99999999999999.9"),
        ] {
            let number: Number = text.parse().unwrap();
            assert_eq!(number.to_string(), shown, "{text}");
            assert_eq!(number.to_f64().to_string(), shown.to_owned(), "{text}");
            let json = serde_json::to_string(&number).unwrap();
            assert_eq!(
                serde_json::from_str::<Number>(&json).unwrap(),
                number,
                "{json}"
            );
            assert_eq!(number.whole().is_some(), !shown.contains('.'), "{text}");
        }
    }

    #[test]
    fn an_invalid_number_is_refused() {
        for text in [
            "",
            " ",
            "3 ",
            "-",
            "+-3",
            "--3",
            ".",
            ".5",
            "5.",
            "1.2.3",
            "1e3",
            "0x10",
            "1_000",
            "1,5",
            "inf",
            "NaN",
            "٣",
            "1000000000000000",
            "0.1234567890123456",
        ] {
            assert_eq!(text.parse::<Number>(), Err(NumberError), "{text:?}");
        }
    }

    #[test]
    fn json_numbers_are_read_by_their_value() {
        let read =
            |json: &str| serde_json::from_str::<Number>(json).map(|number| number.to_string());
        for (json, expected) in [
            ("3", "3"),
            ("3.0", "3"),
            ("1e3", "1000"),
            ("-2.5e-1", "-0.25"),
        ] {
            assert_eq!(read(json).unwrap(), expected);
        }
        for json in [
            "1e300",
            "0.30000000000000004",
            "18446744073709551615",
            "\"3\"",
        ] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
