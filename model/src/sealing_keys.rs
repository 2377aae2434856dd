//! The keys of a daemon: the current key seals. Old keys only open, until their secrets are sealed with the current key.

use crate::sealing::{KeyId, Place, Sealed, SealingError, SealingKey, SecretValue};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealingKeys {
    current: SealingKey,
    old: Vec<SealingKey>,
}

/// Whether the daemon has the key of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    Current,
    /// The secret will soon be sealed with the current key.
    Old,
    /// The daemon does not have the key, so the secret cannot be opened.
    Missing,
}

impl SealingKeys {
    /// A key in both arguments counts only as the current key.
    pub fn new(current: SealingKey, mut old: Vec<SealingKey>) -> Self {
        old.retain(|key| *key != current);
        Self { current, old }
    }

    /// The key that seals.
    pub fn current(&self) -> &SealingKey {
        &self.current
    }

    /// The keys that only open.
    pub fn old(&self) -> &[SealingKey] {
        &self.old
    }

    /// The state of the key with this id.
    pub fn state_of(&self, id: &KeyId) -> KeyState {
        if self.current.id() == *id {
            KeyState::Current
        } else if self.old.iter().any(|key| key.id() == *id) {
            KeyState::Old
        } else {
            KeyState::Missing
        }
    }

    /// Opens a value with the key that sealed it.
    pub fn open(&self, sealed: &Sealed, place: Place<'_>) -> Result<SecretValue, SealingError> {
        let old = self.old.iter().find(|key| key.id() == sealed.key);
        sealed.open(old.unwrap_or(&self.current), place)
    }
}

impl From<SealingKey> for SealingKeys {
    fn from(current: SealingKey) -> Self {
        Self::new(current, Vec::new())
    }
}
