//! Sizes in text: `512MiB`, `10GiB`, or a plain number of bytes.

use thiserror::Error;

/// The units, each 1,024 times the previous unit.
const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a size; write a whole number of bytes, or one with KiB, MiB, GiB or TiB, such as `10GiB`"
)]
pub struct SizeError {
    text: String,
}

/// Reads a size in bytes.
///
/// # Errors
/// If the text is not a size, with a hint.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let malformed = || SizeError {
        text: text.chars().take(40).collect(),
    };
    let (digits, unit) = UNITS
        .iter()
        .zip(1_u32..)
        .find_map(|(unit, power)| Some((text.strip_suffix(unit)?, 1024_u64.checked_pow(power)?)))
        .unwrap_or((text, 1));
    let digits = digits.trim_end();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    let number: u64 = digits.parse().map_err(|_| malformed())?;
    number.checked_mul(unit).ok_or_else(malformed)
}

/// Writes a size for people, in the largest unit of [`parse_size`] that fits.
pub fn format_size(bytes: u64) -> String {
    let (mut number, mut unit) = (bytes, "");
    for next in UNITS {
        if number == 0 || !number.is_multiple_of(1024) {
            break;
        }
        (number, unit) = (number / 1024, next);
    }
    if unit.is_empty() {
        format!("{number} bytes")
    } else {
        format!("{number}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1500", Some(1_500)),
            ("4KiB", Some(4_096)),
            ("10 GiB", Some(10 << 30)),
            ("2TiB", Some(2 << 40)),
            ("", None),
            ("GiB", None),
            ("-1", None),
            ("+1", None),
            ("1.5GiB", None),
            ("10GB", None),
            ("10gib", None),
            ("99999999TiB", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_size(text).ok(), bytes, "{text}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1_500, "1500 bytes"),
            (4_096, "4KiB"),
            (256 << 20, "256MiB"),
            (5 << 40, "5TiB"),
            (1 << 60, "1048576TiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
