//! Parts of job ids, as people type them.

use std::str::FromStr;

use crate::JobId;
use crate::limits::ID_PART_DIGITS;

/// The first or last digits of a job's id. The first digits are its time, so jobs created at the same time share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobIdPart(String);

/// The last digits of an id that tables show.
const SHOWN_DIGITS: usize = 8;

/// The text is not a part of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoJobIdPart {
    /// It has characters other than hexadecimal digits and hyphens.
    NotHexadecimal,
    TooShort,
}

impl JobIdPart {
    /// True if the id, or the last eight digits that tables show, begins or ends with these digits. Hyphens are ignored.
    pub fn is_of(&self, id: JobId) -> bool {
        let digits = id.uuid().simple().to_string();
        let shown = &digits[digits.len() - SHOWN_DIGITS..];
        digits.starts_with(&self.0) || digits.ends_with(&self.0) || shown.starts_with(&self.0)
    }
}

impl FromStr for JobIdPart {
    type Err = NoJobIdPart;

    fn from_str(text: &str) -> Result<Self, NoJobIdPart> {
        let digits = text.replace('-', "").to_ascii_lowercase();
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NoJobIdPart::NotHexadecimal);
        }
        if digits.len() < ID_PART_DIGITS {
            return Err(NoJobIdPart::TooShort);
        }
        Ok(Self(digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_and_last_digits_identify_a_job() {
        let id: JobId = "0198c5f2-7c1e-7abc-8000-0000000012ef".parse().unwrap();
        let is_of = |text: &str| text.parse().map(|part: JobIdPart| part.is_of(id));
        for (text, expected) in [
            ("0198", Ok(true)),
            ("0198c5f2-7c1e-7a", Ok(true)),
            ("0198C5F27C1E", Ok(true)),
            ("12ef", Ok(true)),
            ("000012EF", Ok(true)),
            ("8000-0000000012ef", Ok(true)),
            ("000012", Ok(true)),
            ("7c1e", Ok(false)),
            ("ffff", Ok(false)),
            ("2ef", Err(NoJobIdPart::TooShort)),
            ("--2e-", Err(NoJobIdPart::TooShort)),
            ("", Err(NoJobIdPart::TooShort)),
            ("12eg", Err(NoJobIdPart::NotHexadecimal)),
            ("12 ef", Err(NoJobIdPart::NotHexadecimal)),
        ] {
            assert_eq!(is_of(text), expected, "{text:?}");
        }
    }
}
