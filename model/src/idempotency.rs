//! Stored requests, so that a repeated request gets the answer of the first.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use workflow::{hex, sha256};

use crate::{JobId, Timestamp, TokenId};

/// The key that a client sends, so that a repeated request makes no second job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Digest of token, route and the client's key.
    pub key: String,
    /// Digest of the request.
    pub request: String,
}

impl IdempotencyKey {
    /// The key of a request. Keys are separate for each token and route, so that two clients cannot collide.
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
    /// Digest of the request.
    pub request: String,
    pub job: JobId,
    pub expires_at: Timestamp,
}
