//! Blobs: files of users in a project. A path is names joined by `/`; a `/` in a name is written `%2F`.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A stored blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blob {
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
    /// When this content was stored here.
    pub modified_at: DateTime<Utc>,
    /// Who stored it: the name of a token.
    pub modified_by: String,
    /// After this it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

/// A page of a list of blobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobList {
    pub items: Vec<Blob>,
    /// The folders of a list with a delimiter, each with a slash at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Where the next page begins. None at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The body that copies a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyBlob {
    pub from: String,
    pub to: String,
    /// How long the copy is kept, such as `1h` or `30d`. None: until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<String>,
}

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlobLinkUse {
    /// Reading the blob.
    Get,
    /// Storing it.
    Put,
}

/// The body that makes a link to a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBlobLink {
    pub path: String,
    pub use_for: BlobLinkUse,
    /// How long it is good, such as `1h`; 7 days at most.
    pub expires_in: String,
}

/// A link to a blob, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobLink {
    pub id: Uuid,
    pub path: String,
    pub use_for: BlobLinkUse,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// A new link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedBlobLink {
    #[serde(flatten)]
    pub link: BlobLink,
    /// What comes behind the address of the daemon. It is shown once, and good for anybody who has it.
    pub url_path: String,
}

/// The body that moves a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveBlob {
    pub from: String,
    pub to: String,
}
