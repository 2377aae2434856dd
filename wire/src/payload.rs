//! Payload groups, payloads, and how they are rendered.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::CreateCallbackToken;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PayloadGroup {
    pub id: Uuid,
    pub project: String,
    pub name: String,
    pub variables: Vec<PayloadVariable>,
    /// Whether the callback servers of the project answer its payloads, at `/-/GROUP/PAYLOAD`.
    pub serve: bool,
    /// How many payloads it has, and the bytes of all their versions.
    pub payloads: u64,
    pub bytes: u64,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
}

/// A part of a payload that gets its value when the payload is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PayloadVariable {
    /// Letters, digits and `_`. `CALLBACK` gets the name to plant, and `TARGET` the target.
    pub name: String,
    /// What stands in the payloads; absent for `%%NAME%%`. Answers always have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// Its value, unless a render gives another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePayloadGroup {
    /// The project, by name or id.
    pub project: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<PayloadVariable>,
    /// Whether the callback servers of the project answer its payloads to whoever asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serve: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePayloadGroup {
    /// All variables of the group; absent to keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Vec<PayloadVariable>>,
    /// Whether the callback servers of the project answer its payloads; absent to keep that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve: Option<bool>,
}

/// A payload group with its payloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PayloadGroupDetail {
    pub group: PayloadGroup,
    /// By name.
    pub payloads: Vec<Payload>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Payload {
    pub name: String,
    /// The newest version. Versions are numbered from 1.
    pub version: u64,
    /// Its content type.
    pub media_type: String,
    /// Of the newest version.
    pub size: u64,
    /// Of the newest version, hexadecimal.
    pub sha256: String,
    /// Of all versions.
    pub bytes: u64,
    pub updated_at: DateTime<Utc>,
    pub updated_by: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenderPayloads {
    /// One payload, as `NAME` or `NAME@VERSION`; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Values of variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Each payload is rendered for each of them, as the value of `TARGET`. Without targets, each is rendered once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// The id of the callback server whose name is the value of `CALLBACK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// Gives each line a name of its own, so that a hit tells payload and target. Needs `callback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mint: Option<CreateCallbackToken>,
}

/// A line of a render.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RenderedPayload {
    pub payload: String,
    pub version: u64,
    /// Of the name in this line, if names were minted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The rendered payload, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same in base64 otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}
