//! Tokens: how they look, and the hash that alone is stored.
//!
//! Tokens a person or program carries around have a prefix, 160 random bits and a checksum, so that a leaked one is
//! recognised and a mistyped one is told from a revoked one. Session tokens are bare UUIDs v4 (specification,
//! "Authentication"). All of them hold enough randomness that a plain SHA-256 protects the stored form.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;
use workflow::{hex, unhex};

use crate::moment::Entropy;
use crate::scope::Scopes;
use crate::{Timestamp, TokenId};

/// A personal access token's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// What a person calls it.
    pub name: String,
    /// Hash of the secret.
    pub hash: TokenHash,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Token {
    /// Whether it is good at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// SHA-256 of a token. Comparing hashes leaks nothing of use: a guess that shares a prefix of its hash shares nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token as it was presented.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHash({}…)", &hex(&self.0)[..8])
    }
}

impl Serialize for TokenHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        unhex(&text)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("a token hash is 64 hexadecimal digits"))
    }
}

/// A token's plain text: shown or sent once, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// The kinds of token that carry a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A personal access token.
    Personal,
    /// A runner registration token.
    Registration,
}

impl SecretKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Personal => "evs_",
            Self::Registration => "evr_",
        }
    }
}

/// A text that cannot be a token, before any look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the token is malformed; was it cut off or mistyped?")]
pub struct ParseSecretError;

/// Letters of a secret: no punctuation, so that a double click selects all of it.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const RANDOM_LETTERS: usize = 32;
const CHECK_LETTERS: usize = 6;

impl Secret {
    /// A fresh personal or registration token: prefix, 160 random bits, checksum.
    pub fn random(kind: SecretKind, entropy: &mut dyn Entropy) -> Self {
        let mut random = [0; RANDOM_LETTERS];
        entropy.fill(&mut random);
        let mut text: String = kind.prefix().to_owned();
        text.extend(random.iter().map(|byte| letter(*byte)));
        let check = checksum(&text);
        text.push_str(&check);
        Self(text)
    }

    /// A fresh session token: a UUID v4.
    pub fn session(entropy: &mut dyn Entropy) -> Self {
        Self(entropy.uuid_v4().to_string())
    }

    /// Reads a presented token of a kind that carries a prefix, checking its form only.
    pub fn parse(kind: SecretKind, text: &str) -> Result<Self, ParseSecretError> {
        let length = kind.prefix().len() + RANDOM_LETTERS + CHECK_LETTERS;
        if text.len() != length || !text.is_ascii() || !text.starts_with(kind.prefix()) {
            return Err(ParseSecretError);
        }
        let (body, check) = text.split_at(length - CHECK_LETTERS);
        if checksum(body) == check {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseSecretError)
        }
    }

    /// Reads a presented session token, checking its form only.
    pub fn parse_session(text: &str) -> Result<Self, ParseSecretError> {
        match Uuid::try_parse(text) {
            Ok(uuid) if uuid.get_version_num() == 4 => Ok(Self(uuid.to_string())),
            Ok(_) | Err(_) => Err(ParseSecretError),
        }
    }

    /// The hash that is stored.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    /// The plain text, to be shown or sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

fn letter(byte: u8) -> char {
    char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .take(CHECK_LETTERS)
        .map(|byte| letter(*byte))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::SeededEntropy;

    #[test]
    fn a_secret_is_recognised_and_a_mistyped_one_is_not() {
        let secret = Secret::random(SecretKind::Personal, &mut SeededEntropy::new(3));
        let text = secret.reveal().to_owned();
        assert!(text.starts_with("evs_"));
        assert_eq!(Secret::parse(SecretKind::Personal, &text), Ok(secret));
        assert!(Secret::parse(SecretKind::Registration, &text).is_err());
        for at in 4..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'a' { b'b' } else { b'a' };
            assert!(
                Secret::parse(SecretKind::Personal, std::str::from_utf8(&other).unwrap()).is_err(),
                "letter {at}"
            );
        }
        for bad in ["", "evs_", "evs_ü", &text[..text.len() - 1]] {
            assert!(Secret::parse(SecretKind::Personal, bad).is_err());
        }
    }

    #[test]
    fn nothing_prints_a_secret() {
        let secret = Secret::session(&mut SeededEntropy::new(4));
        assert_eq!(format!("{secret:?}"), "Secret(***)");
        assert!(Secret::parse_session(secret.reveal()).is_ok());
        assert!(
            Secret::parse_session("0198c5f2-7c1e-7000-8000-000000000000").is_err(),
            "version 7"
        );
    }

    #[test]
    fn a_hash_reads_back() {
        let hash = TokenHash::of("x");
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<TokenHash>(&json).unwrap(), hash);
        assert!(serde_json::from_str::<TokenHash>("\"ab\"").is_err());
    }
}
