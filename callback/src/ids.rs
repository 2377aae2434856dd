//! The ids of servers and tags, and where they are in bytes that a stranger sent.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// `LENGTH` base32 characters (a-z, 2-7) in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<const LENGTH: usize>([u8; LENGTH]);

/// The id of a callback server: 80 bits.
pub type ServerId = Id<16>;

/// A tag of a server: 100 bits.
pub type Tag = Id<20>;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` does not have {length} characters of a-z and 2-7")]
pub struct IdError {
    text: String,
    length: usize,
}

impl<const LENGTH: usize> Id<LENGTH> {
    /// Reads an id in any case.
    fn read(text: &[u8]) -> Option<Self> {
        let mut id: [u8; LENGTH] = text.try_into().ok()?;
        for character in &mut id {
            character.make_ascii_lowercase();
            if !matches!(character, b'a'..=b'z' | b'2'..=b'7') {
                return None;
            }
        }
        Some(Self(id))
    }
}

impl<const LENGTH: usize> FromStr for Id<LENGTH> {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::read(text.as_bytes()).ok_or_else(|| IdError {
            text: text.to_owned(),
            length: LENGTH,
        })
    }
}

impl<const LENGTH: usize> fmt::Display for Id<LENGTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl<const LENGTH: usize> fmt::Debug for Id<LENGTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Everything that may be `<server>` or `<server>-<tag>`, at any position and in any case. Other letters may precede an id, so
/// these overlap; only a known id counts.
pub(crate) fn mentions(text: &[u8]) -> impl Iterator<Item = (ServerId, Option<Tag>)> {
    text.windows(16).enumerate().filter_map(|(at, window)| {
        let server = ServerId::read(window)?;
        let rest = text[at + 16..].strip_prefix(b"-");
        let tag = rest.and_then(|rest| Tag::read(rest.get(..20)?));
        Some((server, tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_case_and_written_in_lower_case() {
        let id: ServerId = "ABCDEFGHijklmn27".parse().unwrap();
        assert_eq!(id.to_string(), "abcdefghijklmn27");
        for wrong in [
            "",
            "abcdefghijklmn2",
            "abcdefghijklmn277",
            "abcdefghijklmn18",
            "abcdefghijklm\u{e9}2",
        ] {
            let error = wrong.parse::<ServerId>().unwrap_err().to_string();
            assert!(error.contains("16 characters"), "{error}");
        }
        assert!("abcdefghijklmnopqrst".parse::<Tag>().is_ok());
    }

    #[test]
    fn mentions_are_found_at_any_position() {
        let server: ServerId = "abcdefghijklmnop".parse().unwrap();
        let tag: Tag = "22222222223333333333".parse().unwrap();
        for (text, expected) in [
            ("abcdefghijklmnop", None),
            ("xxABCDEFGHIJKLMNOP.zone", None),
            ("a.b.abcdefghijklmnop-22222222223333333333", Some(tag)),
            ("=AbcdefghijklmnoP-22222222223333333333x", Some(tag)),
            ("abcdefghijklmnop-2222222222333333333", None),
            ("abcdefghijklmnop--22222222223333333333", None),
        ] {
            let found: Vec<_> = mentions(text.as_bytes())
                .filter(|(id, _)| *id == server)
                .collect();
            assert_eq!(found, [(server, expected)], "{text}");
        }
        assert_eq!(mentions(b"abcdefghijklmno.p").count(), 0);
        assert_eq!(mentions(b"").count(), 0);
    }
}
