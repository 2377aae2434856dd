//! Remembering what was asked, so that a repeated request gets the answer of the first.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use workflow::{hex, sha256};

use crate::{JobId, Timestamp, TokenId};

/// What a client sends along so that a repeat of its request makes no second job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Digest of token, route and the client's key.
    pub key: String,
    /// Digest of what was asked.
    pub request: String,
}

impl IdempotencyKey {
    /// The key of a request. Keys are per token and route, so that two clients cannot meet.
    pub fn new(token: TokenId, route: &str, key: &str, request: &[u8]) -> Self {
        let mut scope = Sha256::new();
        for part in [
            token.uuid().as_bytes().as_slice(),
            route.as_bytes(),
            key.as_bytes(),
        ] {
            scope.update((part.len() as u64).to_le_bytes());
            scope.update(part);
        }
        Self {
            key: hex(&scope.finalize()),
            request: sha256(request),
        }
    }
}

/// A dispatch that carried a key, and the job it made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of token, route and the client's key.
    pub key: String,
    /// Digest of what was asked.
    pub request: String,
    /// The job.
    pub job: JobId,
    /// When it is forgotten.
    pub expires_at: Timestamp,
}
