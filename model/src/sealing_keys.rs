//! The keys of a daemon: one that seals, and old ones that only open, while secrets move from them to the present one.

use crate::sealing::{KeyId, Place, Sealed, SealingError, SealingKey, SecretValue};

/// The present key, and the old ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealingKeys {
    present: SealingKey,
    old: Vec<SealingKey>,
}

/// Whether the daemon has the key of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It is the present key.
    Present,
    /// It is an old key. The secret is sealed anew soon.
    Old,
    /// The daemon does not have it. The secret cannot be opened.
    Missing,
}

impl SealingKeys {
    /// An old key that is the present one counts only as the present one.
    pub fn new(present: SealingKey, mut old: Vec<SealingKey>) -> Self {
        old.retain(|key| *key != present);
        Self { present, old }
    }

    /// The key that seals.
    pub fn present(&self) -> &SealingKey {
        &self.present
    }

    /// The keys that only open.
    pub fn old(&self) -> &[SealingKey] {
        &self.old
    }

    /// Which of these keys has this id.
    pub fn state_of(&self, id: &KeyId) -> KeyState {
        if self.present.id() == *id {
            KeyState::Present
        } else if self.old.iter().any(|key| key.id() == *id) {
            KeyState::Old
        } else {
            KeyState::Missing
        }
    }

    /// Opens a value with the key that sealed it.
    pub fn open(&self, sealed: &Sealed, place: Place<'_>) -> Result<SecretValue, SealingError> {
        let old = self.old.iter().find(|key| key.id() == sealed.key);
        sealed.open(old.unwrap_or(&self.present), place)
    }
}

impl From<SealingKey> for SealingKeys {
    fn from(present: SealingKey) -> Self {
        Self::new(present, Vec::new())
    }
}
