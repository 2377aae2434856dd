//! Blobs: files of users in a project. A path is names joined by `/`; a `/` within a name is `%2F`.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blob {
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
    /// When this content was stored here.
    pub modified_at: DateTime<Utc>,
    /// The name of the token that stored it.
    pub modified_by: String,
    /// When it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobList {
    pub items: Vec<Blob>,
    /// The folders, each with a final slash, if the list has a delimiter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The `cursor` of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The body of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyBlob {
    pub from: String,
    pub to: String,
    /// Retention of the copy, such as `1h` or `30d`; absent: until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlobLinkUse {
    /// Reads the blob.
    Get,
    /// Stores the blob.
    Put,
}

/// The body of a new link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBlobLink {
    pub path: String,
    /// `get` needs the scope `blob:read`, and `put` needs `blob:write`.
    pub use_for: BlobLinkUse,
    /// Validity of the link, such as `1h`; at most 7 days.
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
    /// The part after the daemon's address. It is shown once, and works for anyone who has it.
    pub url_path: String,
}

/// The body of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveBlob {
    pub from: String,
    pub to: String,
}
