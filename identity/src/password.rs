//! Passwords and their hashes.

use std::fmt;

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

use crate::limits::{HASH_KIB, HASH_PASSES, PASSWORD_CHARS, SALT_BYTES};

/// A password that somebody may choose.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    #[error("must have {} characters at least; a few random words are easy to remember", PASSWORD_CHARS.start())]
    TooShort,
    #[error("must have {} characters at most", PASSWORD_CHARS.end())]
    TooLong,
}

impl Password {
    /// # Errors
    /// If the password is too short or too long. All characters are allowed.
    pub fn parse(text: String) -> Result<Self, BadPassword> {
        let chars = text.chars().count();
        match chars {
            _ if chars < *PASSWORD_CHARS.start() => Err(BadPassword::TooShort),
            _ if chars > *PASSWORD_CHARS.end() => Err(BadPassword::TooLong),
            _ => Ok(Self(text)),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// A hash in the PHC string format, with its salt and cost.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// A stored hash. One that cannot be read matches no password.
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Hashes a password. This takes a processor for about 0.2 s.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn of(
        password: &Password,
        salt: [u8; SALT_BYTES],
    ) -> Result<Self, argon2::password_hash::Error> {
        let hash = argon2()?.hash_password_with_salt(password.0.as_bytes(), &salt)?;
        Ok(Self(hash.to_string()))
    }

    /// Whether this is the hash of a password. This takes as long as [`PasswordHash::of`].
    pub(crate) fn is_of(&self, password: &str) -> bool {
        let checked = argon2().map(|argon2| argon2.verify_password(password.as_bytes(), &*self.0));
        matches!(checked, Ok(Ok(())))
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(***)")
    }
}

fn argon2() -> Result<Argon2<'static>, argon2::Error> {
    let params = Params::new(HASH_KIB, HASH_PASSES, 1, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> Password {
        Password::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_password_has_15_to_256_characters() {
        let parse = |chars| Password::parse("ä".repeat(chars)).map(|_| ());
        assert_eq!(parse(14), Err(BadPassword::TooShort));
        assert_eq!(parse(15), Ok(()));
        assert_eq!(parse(256), Ok(()));
        assert_eq!(parse(257), Err(BadPassword::TooLong));
    }

    #[test]
    fn a_hash_names_its_cost_and_matches_only_its_password() {
        let hash = PasswordHash::of(&password("correct horse battery"), [7; SALT_BYTES]).unwrap();
        let cost = "$argon2id$v=19$m=19456,t=2,p=1$";
        assert!(hash.as_str().starts_with(cost), "{}", hash.as_str());
        assert!(hash.is_of("correct horse battery"));
        assert!(!hash.is_of("correct horse batterY"));
        assert!(!hash.is_of(""));
        let other = PasswordHash::of(&password("correct horse battery"), [8; SALT_BYTES]).unwrap();
        assert_ne!(hash, other, "the salt differs");
    }

    #[test]
    fn an_unreadable_hash_matches_nothing() {
        for text in ["", "x", "$argon2id$v=19$m=19456,t=2,p=1$AAAA", "$1$a$b"] {
            assert!(!PasswordHash::stored(text.to_owned()).is_of("x"), "{text}");
        }
    }

    #[test]
    fn nothing_prints_a_password_or_its_hash() {
        let text = "correct horse battery";
        let hash = PasswordHash::stored("$argon2id$secret".to_owned());
        let shown = format!("{:?} {hash:?}", password(text));
        assert!(!shown.contains("horse") && !shown.contains("secret"));
    }
}
