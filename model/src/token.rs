//! Tokens: their form, and their hash. Only the hash is stored.
//!
//! Personal access tokens and registration tokens have a prefix, 160 random bits and a checksum. So a scanner
//! recognises a leaked token, and a mistyped token is not reported as revoked. Session tokens are plain UUIDs v4
//! (specification, "Authentication"). All of them are random enough to be protected by a plain SHA-256.

use std::fmt;

use chrono::NaiveDate;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;
use workflow::{hex, unhex};

use crate::limits::TOKEN_EXPIRES_SOON;
use crate::moment::Entropy;
use crate::scope::{Projects, Scopes};
use crate::{Timestamp, TokenId, UserId};

/// A personal access token's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: TokenId,
    /// The name that a person has given to the token.
    pub name: String,
    pub hash: TokenHash,
    /// Who acts with the token. It may do nothing that its owner may not do.
    #[serde(default = "UserId::owner")]
    pub owner: UserId,
    pub scopes: Scopes,
    #[serde(default, skip_serializing_if = "Projects::is_all")]
    pub projects: Projects,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The secret before the last regeneration, while it is still accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<FormerSecret>,
    /// The last day on which it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<NaiveDate>,
}

/// A replaced secret, which is accepted until its expiry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSecret {
    pub hash: TokenHash,
    pub expires_at: Timestamp,
}

impl Token {
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// True if it expires within a week of `now`, or has expired.
    pub fn expires_soon(&self, now: Timestamp) -> bool {
        self.expires_at
            .is_some_and(|end| end - now < TOKEN_EXPIRES_SOON)
    }

    /// True if a caller with this secret is accepted at `now`.
    pub fn accepts(&self, secret: &TokenHash, now: Timestamp) -> bool {
        let is_former = |former: &FormerSecret| former.hash == *secret && now < former.expires_at;
        self.is_valid(now) && (self.hash == *secret || self.former.as_ref().is_some_and(is_former))
    }

    /// The accepted secrets.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = TokenHash> {
        let former = self.former.as_ref().map(|former| former.hash);
        std::iter::once(self.hash).chain(former)
    }
}

/// SHA-256 of a token. The timing of comparing hashes reveals nothing useful.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
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

/// The plain text of a token: shown or sent once, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainToken(String);

/// The kinds of token that have a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A personal access token.
    Personal,
    /// A runner registration token.
    Registration,
    /// The secret in a link to a blob.
    BlobLink,
    /// The secret in a link that signs a browser in.
    SignInLink,
    /// The secret in a link with which a person sets a password.
    UserLink,
    /// The secret of a session of a device.
    Device,
    /// The token of a job.
    Job,
}

const KINDS: [TokenKind; 7] = [
    TokenKind::Personal,
    TokenKind::Registration,
    TokenKind::BlobLink,
    TokenKind::SignInLink,
    TokenKind::UserLink,
    TokenKind::Device,
    TokenKind::Job,
];

impl TokenKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Personal => "evs_",
            Self::Registration => "evr_",
            Self::BlobLink => "evl_",
            Self::SignInLink => "evi_",
            Self::UserLink => "evu_",
            Self::Device => "evd_",
            Self::Job => "evj_",
        }
    }
}

/// The text cannot be a token, so no look-up is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the token is malformed; was it cut off or mistyped?")]
pub struct ParseTokenError;

/// The alphabet of a token. It has no punctuation, so that a double click selects the whole token.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const RANDOM_LETTERS: usize = 32;
const CHECK_LETTERS: usize = 6;
const PREFIX_LETTERS: usize = 4;

/// What the token of a job is derived with.
const JOB_LABEL: &[u8] = b"everscan job token 1";

/// Where the first token begins, and how many letters follow its prefix.
fn first_token(text: &str) -> Option<(usize, usize)> {
    text.match_indices("ev").find_map(|(at, _)| {
        let token = text.get(at..at + PREFIX_LETTERS)?;
        let has_prefix = KINDS.iter().any(|kind| kind.prefix() == token);
        let letters = text[at + PREFIX_LETTERS..].bytes();
        let letters = letters.take_while(u8::is_ascii_alphanumeric).count();
        (has_prefix && letters >= RANDOM_LETTERS).then_some((at, letters))
    })
}

impl PlainToken {
    /// A fresh personal or registration token: prefix, 160 random bits, checksum.
    pub fn random(kind: TokenKind, entropy: &mut dyn Entropy) -> Self {
        let mut random = [0; RANDOM_LETTERS];
        entropy.fill(&mut random);
        Self::of_random(kind, random)
    }

    fn of_random(kind: TokenKind, random: [u8; RANDOM_LETTERS]) -> Self {
        let mut text: String = kind.prefix().to_owned();
        text.extend(random.iter().map(|byte| letter(*byte)));
        let check = checksum(&text);
        text.push_str(&check);
        Self(text)
    }

    /// The token of the job whose worker has this session token. It is derived, so that a repeated claim gets the same one
    /// and nothing but its hash is stored. It does not reveal the worker's token.
    #[must_use]
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    pub fn of_job(&self) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("HMAC takes any key");
        let random = mac.chain_update(JOB_LABEL).finalize().into_bytes();
        Self::of_random(TokenKind::Job, random.into())
    }

    /// A fresh session token: a UUID v4.
    pub fn session(entropy: &mut dyn Entropy) -> Self {
        Self(entropy.uuid_v4().to_string())
    }

    /// The secret of a browser's session: 256 random bits.
    pub fn browser(entropy: &mut dyn Entropy) -> Self {
        let mut random = [0; 32];
        entropy.fill(&mut random);
        Self(hex(&random))
    }

    /// Parses the secret of a browser's session. Only its form is checked.
    pub fn parse_browser(text: &str) -> Result<Self, ParseTokenError> {
        match unhex(text) {
            Some(bytes) if bytes.len() == 32 => Ok(Self(text.to_owned())),
            Some(_) | None => Err(ParseTokenError),
        }
    }

    /// Parses a token with a prefix. Only its form is checked.
    pub fn parse(kind: TokenKind, text: &str) -> Result<Self, ParseTokenError> {
        let length = kind.prefix().len() + RANDOM_LETTERS + CHECK_LETTERS;
        if text.len() != length || !text.is_ascii() || !text.starts_with(kind.prefix()) {
            return Err(ParseTokenError);
        }
        let (body, check) = text.split_at(length - CHECK_LETTERS);
        if checksum(body) == check {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseTokenError)
        }
    }

    /// The text without what looks like a token with a prefix.
    pub fn hide_all(text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, letters)) = first_token(rest) {
            kept.push_str(&rest[..at]);
            kept.push_str("***");
            rest = &rest[at + PREFIX_LETTERS + letters..];
        }
        kept + rest
    }

    /// Parses a session token. Only its form is checked.
    pub fn parse_session(text: &str) -> Result<Self, ParseTokenError> {
        match Uuid::try_parse(text) {
            Ok(uuid) if uuid.get_version_num() == 4 => Ok(Self(uuid.to_string())),
            Ok(_) | Err(_) => Err(ParseTokenError),
        }
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PlainToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainToken(***)")
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
    fn tokens_in_a_text_are_hidden_by_their_form() {
        for kind in KINDS {
            let token = PlainToken::random(kind, &mut SeededEntropy::new(1));
            let text = format!("é /login/{}?a eve_ evs_short", token.reveal());
            assert_eq!(PlainToken::hide_all(&text), "é /login/***?a eve_ evs_short");
        }
    }

    #[test]
    fn a_mistyped_secret_is_refused() {
        let secret = PlainToken::random(TokenKind::Personal, &mut SeededEntropy::new(3));
        let text = secret.reveal().to_owned();
        assert!(text.starts_with("evs_"));
        assert_eq!(PlainToken::parse(TokenKind::Personal, &text), Ok(secret));
        assert!(PlainToken::parse(TokenKind::Registration, &text).is_err());
        for at in 4..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'a' { b'b' } else { b'a' };
            assert!(
                PlainToken::parse(TokenKind::Personal, std::str::from_utf8(&other).unwrap())
                    .is_err(),
                "letter {at}"
            );
        }
        for bad in ["", "evs_", "evs_ü", &text[..text.len() - 1]] {
            assert!(PlainToken::parse(TokenKind::Personal, bad).is_err());
        }
    }

    #[test]
    fn the_token_of_a_job_follows_from_the_token_of_its_worker() {
        let worker = PlainToken::session(&mut SeededEntropy::new(5));
        let other = PlainToken::session(&mut SeededEntropy::new(6));
        let token = worker.of_job();
        assert_eq!(token, worker.of_job());
        assert_ne!(token, other.of_job());
        assert_eq!(
            PlainToken::parse(TokenKind::Job, token.reveal()),
            Ok(token.clone())
        );
        assert!(PlainToken::parse(TokenKind::Personal, token.reveal()).is_err());
        assert!(!token.reveal().contains(worker.reveal()));
    }

    #[test]
    fn nothing_prints_a_secret() {
        let secret = PlainToken::session(&mut SeededEntropy::new(4));
        assert_eq!(format!("{secret:?}"), "PlainToken(***)");
        assert!(PlainToken::parse_session(secret.reveal()).is_ok());
        assert!(
            PlainToken::parse_session("0198c5f2-7c1e-7000-8000-000000000000").is_err(),
            "version 7"
        );
    }

    /// In older records, tokens contained their sessions.
    #[test]
    fn an_old_record_with_sessions_can_be_read() {
        let hash = TokenHash::of("x");
        let record = serde_json::json!({
            "id": Uuid::nil(), "name": "ci", "hash": hash, "scopes": ["job:read"], "created_at": Timestamp::UNIX_EPOCH,
            "sessions": [{"id": Uuid::nil(), "hash": hash}],
        });
        let token: Token = serde_json::from_value(record).unwrap();
        assert_eq!(token.hash, hash);
    }

    #[test]
    fn a_hash_can_be_parsed_again() {
        let hash = TokenHash::of("x");
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<TokenHash>(&json).unwrap(), hash);
        assert!(serde_json::from_str::<TokenHash>("\"ab\"").is_err());
    }
}
