//! Projects: their vars and secrets.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A project: the vars and secrets that one source's workflows share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Expressions see it as `project.id`.
    pub id: Uuid,
    /// The source's name.
    pub name: String,
    /// Whether the daemon's configuration still names the source.
    pub configured: bool,
    /// The number of vars.
    pub vars: u64,
    /// The number of secrets.
    pub secrets: u64,
    /// Vars that scans name and that are not set. Only in the answer about one project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_vars: Vec<MissingName>,
    /// The same for secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<MissingName>,
}

/// A var or secret that is not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingName {
    pub name: String,
    /// The scans that name it.
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
    /// The actor who set it.
    pub updated_by: String,
    /// The scans of active workflows that name it, by workflow and name.
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

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Secret {
    #[serde(flatten)]
    pub named: Named,
    /// The id of the key that seals it.
    pub key: String,
    /// Whether the daemon has that key.
    pub key_state: KeyState,
}

/// Whether the daemon has the key of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It is the present key.
    Present,
    /// It is an old key, which is needed until the secret is sealed anew.
    Old,
    /// The daemon does not have it: jobs that name the secret fail.
    Missing,
    /// A state from a newer daemon.
    #[serde(other)]
    Other,
}

/// Which encodings of a secret are masked in logs. Nothing of its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Masking {
    /// The name of the secret.
    pub name: String,
    pub encodings: Vec<EncodingMasking>,
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
    /// A line of it is so short that it occurs in other text.
    TooShort,
    /// The masker does not recognise the encoding.
    NotRecognised,
    /// A reason from a newer daemon.
    #[serde(other)]
    Other,
}

redacted!(SetValue {});
