//! Stored requests, so that a repeated request gets the answer of the first request.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use workflow::{hex, sha256};

use crate::{BlobLinkId, JobId, RegistrationId, Timestamp, TokenId};

/// The key that a client sends, so that a repeated request has no second effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Digest of caller, route and the client's key.
    pub key: String,
    /// Digest of the request.
    pub request: String,
}

impl IdempotencyKey {
    /// The key of a request. Keys are separate for each caller and route, so that two clients cannot collide.
    pub fn new(caller: impl Into<Uuid>, route: &str, key: &str, request: &[u8]) -> Self {
        let mut scope = Sha256::new();
        for part in [
            caller.into().as_bytes().as_slice(),
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

/// A request with a key, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of caller, route and the client's key.
    pub key: String,
    /// Digest of the request.
    pub request: String,
    #[serde(flatten)]
    pub made: Made,
    pub expires_at: Timestamp,
}

/// The result of a request: a new record, or a record with a new secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    Job(JobId),
    Token(TokenId),
    Registration(RegistrationId),
    BlobLink(BlobLinkId),
}

impl Made {
    pub const fn uuid(self) -> Uuid {
        match self {
            Self::Job(id) => id.uuid(),
            Self::Token(id) => id.uuid(),
            Self::Registration(id) => id.uuid(),
            Self::BlobLink(id) => id.uuid(),
        }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Job(_) => "job",
            Self::Token(_) => "token",
            Self::Registration(_) => "registration",
            Self::BlobLink(_) => "link",
        };
        write!(f, "{kind} {}", self.uuid())
    }
}
