//! Projects: their vars and secrets.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A project: vars and secrets, shared by the workflows of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// In expressions, `project.id`.
    pub id: Uuid,
    /// The source's name.
    pub name: String,
    /// True if the configuration names the source.
    pub configured: bool,
    /// The number of vars.
    pub vars: u64,
    /// The number of secrets.
    pub secrets: u64,
    /// Vars that scans use and that are not set. Only in the answer about one project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_vars: Vec<MissingName>,
    /// Likewise for secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<MissingName>,
}

/// A var or secret that is not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingName {
    pub name: String,
    /// The scans that use it.
    pub used_by: Vec<ScanName>,
}

/// A scan of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanName {
    /// The workflow as `source/name`.
    pub workflow: String,
    pub scan: String,
}

/// The body that sets a var or secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetValue {
    /// At most 64 KiB.
    pub value: String,
}

/// A var or secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// The name in expressions.
    pub name: String,
    /// Increases each time it is set.
    pub version: u64,
    pub updated_at: DateTime<Utc>,
    /// Who set it.
    pub updated_by: String,
    /// The scans of active workflows that use it, by workflow and name.
    #[serde(default)]
    pub used_by: Vec<ScanName>,
}

/// A var with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Var {
    #[serde(flatten)]
    pub named: Named,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Secret {
    #[serde(flatten)]
    pub named: Named,
    /// The id of the key that seals it.
    pub key: String,
    /// Whether the daemon has the key of a secret.
    pub key_state: KeyState,
}

/// Whether the daemon has the key of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It is the current key.
    #[serde(rename = "present")]
    Current,
    /// It is an old key, needed until the secret is sealed again.
    Old,
    /// The daemon does not have it: jobs that use the secret fail.
    Missing,
    /// A state from a newer daemon.
    #[serde(other)]
    Other,
}

/// The encodings of a secret that are masked in logs. Values are never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Masking {
    /// The name of the secret.
    pub name: String,
    pub encodings: Vec<EncodingMasking>,
    /// The numbers of the lines of a value of several lines that are not masked alone, or whose part after `key: ` is not,
    /// because they have fewer than eight characters.
    #[serde(default)]
    pub short_lines: Vec<usize>,
}

/// Whether an encoding of a secret is masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EncodingMasking {
    /// The name of the encoding, for example `base64`.
    pub encoding: String,
    pub masked: bool,
    /// Why it is not masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotMasked>,
}

/// Why an encoding of a secret is not masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotMasked {
    /// One of its lines is so short that it would match other text.
    TooShort,
    /// The masker does not recognise the encoding.
    NotRecognised,
    /// A reason from a newer daemon.
    #[serde(other)]
    Other,
}

redacted!(SetValue {});
