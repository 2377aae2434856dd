//! Secrets at rest. They are encrypted with a key that is stored outside of the state folder.
//!
//! The cipher is XChaCha20-Poly1305 with a random nonce. Project, name and version are authenticated with the value, so
//! that a value that is copied to another place in the state cannot be decrypted there. Key and randomness are arguments.

use std::fmt;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use workflow::{hex, unhex};

use crate::{Entropy, ProjectId};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The authentication tag at the end of a ciphertext.
const TAG_BYTES: usize = 16;

/// The prefix of a key, so that scanners recognise a leaked key.
const KEY_PREFIX: &str = "evk_";

/// Bytes of the digest that identifies a key. An operator has only a few keys.
const KEY_ID_BYTES: usize = 8;

/// The plain text of a secret. It is never serialised, and never shown in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The plain text, to seal it or to send it to a runner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(***)")
    }
}

/// The key that seals the secrets of every project.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey([u8; KEY_BYTES]);

/// The text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it does not hold `{KEY_PREFIX}` and {} hexadecimal digits", 2 * KEY_BYTES)]
pub struct ParseKeyError;

impl SealingKey {
    /// A fresh key.
    pub fn random(entropy: &mut dyn Entropy) -> Self {
        let mut bytes = [0; KEY_BYTES];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// Parses a key as [`SealingKey::reveal`] writes it. Surrounding white space is ignored.
    pub fn parse(text: &str) -> Result<Self, ParseKeyError> {
        let digits = text.trim().strip_prefix(KEY_PREFIX).ok_or(ParseKeyError)?;
        let bytes = unhex(digits).ok_or(ParseKeyError)?;
        bytes.try_into().map(Self).map_err(|_| ParseKeyError)
    }

    /// The key as text, for its file.
    pub fn reveal(&self) -> String {
        format!("{KEY_PREFIX}{}", hex(&self.0))
    }

    /// Identifies this key. The key cannot be derived from it.
    pub fn id(&self) -> KeyId {
        let digest = Sha256::new()
            .chain_update(b"everscan sealing key\0")
            .chain_update(self.0)
            .finalize();
        KeyId(hex(&digest[..KEY_ID_BYTES]))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.0.into())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.id())
    }
}

/// Identifies a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The project, name and version of a sealed value. It can only be opened with these.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub project: ProjectId,
    pub name: &'a str,
    pub version: u64,
}

impl Place<'_> {
    /// The name comes last, because only its length varies. So different places have different bytes.
    fn spelt(self) -> String {
        format!(
            "everscan secret\0{}\0{}\0{}",
            self.project, self.version, self.name
        )
    }
}

/// The stored form of a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The key that opens it.
    pub key: KeyId,
    /// Hexadecimal.
    nonce: String,
    /// Hexadecimal, with the authentication tag at its end.
    ciphertext: String,
}

/// Why a value cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealingError {
    /// The value was sealed with another key.
    #[error(
        "it is sealed with the key {sealed}, which the daemon does not have; its current key is {current}"
    )]
    OtherKey {
        sealed: KeyId,
        /// The current key of the daemon.
        current: KeyId,
    },
    /// The value was modified, or belongs to another project, name or version.
    #[error("its stored form is damaged")]
    Damaged,
    /// The cipher refuses more than 256 GiB.
    #[error("it is too long to be sealed")]
    TooLong,
}

impl Sealed {
    /// Seals a value for its place.
    pub fn seal(
        key: &SealingKey,
        place: Place<'_>,
        value: &SecretValue,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, SealingError> {
        let mut nonce = [0; NONCE_BYTES];
        entropy.fill(&mut nonce);
        let place = place.spelt();
        let payload = Payload {
            msg: value.reveal().as_bytes(),
            aad: place.as_bytes(),
        };
        let sealed = key.cipher().encrypt(&XNonce::from(nonce), payload);
        let ciphertext = sealed.map_err(|_| SealingError::TooLong)?;
        Ok(Self {
            key: key.id(),
            nonce: hex(&nonce),
            ciphertext: hex(&ciphertext),
        })
    }

    /// True if it is well-formed. Other damage is only found by decryption.
    pub fn is_well_formed(&self) -> bool {
        let nonce = unhex(&self.nonce).is_some_and(|nonce| nonce.len() == NONCE_BYTES);
        let ciphertext = unhex(&self.ciphertext).is_some_and(|bytes| bytes.len() >= TAG_BYTES);
        nonce && ciphertext
    }

    /// Opens a value at its place.
    pub fn open(&self, key: &SealingKey, place: Place<'_>) -> Result<SecretValue, SealingError> {
        let current = key.id();
        if current != self.key {
            return Err(SealingError::OtherKey {
                sealed: self.key.clone(),
                current,
            });
        }
        let opened = || {
            let nonce: [u8; NONCE_BYTES] = unhex(&self.nonce)?.try_into().ok()?;
            let ciphertext = unhex(&self.ciphertext)?;
            let place = place.spelt();
            let payload = Payload {
                msg: &ciphertext,
                aad: place.as_bytes(),
            };
            let bytes = key.cipher().decrypt(&XNonce::from(nonce), payload).ok()?;
            String::from_utf8(bytes).ok()
        };
        opened().map(SecretValue).ok_or(SealingError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::SeededEntropy;

    fn place(name: &str) -> Place<'_> {
        Place {
            project: ProjectId::of_source(&"recon".parse().unwrap()),
            name,
            version: 3,
        }
    }

    fn sealed(entropy: &mut SeededEntropy) -> (SealingKey, Sealed) {
        let key = SealingKey::random(entropy);
        let value = SecretValue::new("hunter2 ✓".to_owned());
        let sealed = Sealed::seal(&key, place("TOKEN"), &value, entropy).unwrap();
        (key, sealed)
    }

    #[test]
    fn a_sealed_value_opens_only_at_its_place() {
        let (key, sealed) = sealed(&mut SeededEntropy::new(1));
        let opened = sealed.open(&key, place("TOKEN")).unwrap();
        assert_eq!(opened.reveal(), "hunter2 ✓");
        let elsewhere = [
            place("TOKEN2"),
            Place {
                version: 4,
                ..place("TOKEN")
            },
            Place {
                project: ProjectId::of_source(&"other".parse().unwrap()),
                ..place("TOKEN")
            },
        ];
        for place in elsewhere {
            assert_eq!(
                sealed.open(&key, place),
                Err(SealingError::Damaged),
                "{place:?}"
            );
        }
    }

    #[test]
    fn another_key_is_not_reported_as_damage() {
        let mut entropy = SeededEntropy::new(2);
        let (key, mut sealed) = sealed(&mut entropy);
        let other = SealingKey::random(&mut entropy);
        assert_eq!(
            sealed.open(&other, place("TOKEN")),
            Err(SealingError::OtherKey {
                sealed: key.id(),
                current: other.id()
            })
        );
        for damaged in ["", "00", "zz", "é"] {
            sealed.ciphertext = damaged.to_owned();
            assert_eq!(
                sealed.open(&key, place("TOKEN")),
                Err(SealingError::Damaged)
            );
        }
    }

    #[test]
    fn equal_values_are_sealed_differently_and_never_shown() {
        let mut entropy = SeededEntropy::new(3);
        let (key, first) = sealed(&mut entropy);
        let value = SecretValue::new("hunter2 ✓".to_owned());
        let second = Sealed::seal(&key, place("TOKEN"), &value, &mut entropy).unwrap();
        assert_ne!(first, second);
        let shown = format!(
            "{value:?} {key:?} {first:?} {}",
            serde_json::to_string(&first).unwrap()
        );
        assert!(
            !shown.contains("hunter2") && !shown.contains(&hex(b"hunter2")),
            "{shown}"
        );
        assert!(!shown.contains(&key.reveal()[4..]), "{shown}");
    }

    #[test]
    fn a_key_can_be_parsed_again_but_not_a_cut_key() {
        let key = SealingKey::random(&mut SeededEntropy::new(4));
        let text = key.reveal();
        assert_eq!(SealingKey::parse(&format!("{text}\n")), Ok(key));
        for bad in ["", "evk_", &text[..text.len() - 1], &text[4..], "evk_zz"] {
            assert_eq!(SealingKey::parse(bad), Err(ParseKeyError), "{bad}");
        }
    }
}
