//! Payload groups: texts and files that are sent to targets. A group declares variables, which get their values when its payloads
//! are rendered.
//!
//! The record of a group has everything except the bodies. Each version of a body is an object, and never changes.

mod template;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use workflow::notify::NotifyName;

pub use self::template::{Filter, MissingValue, Piece, RenderError, Template};
use crate::limits::{
    PAYLOAD_DEFAULT_BYTES, PAYLOAD_NAME_BYTES, PAYLOAD_PLACEHOLDER_BYTES, PAYLOAD_VARIABLES,
};
use crate::project::Edit;
use crate::{Actor, PayloadGroupId, ProjectId, Timestamp};

/// The variable that gets the name to plant, if a render is about a callback server.
pub const CALLBACK_VARIABLE: &str = "CALLBACK";

/// The variable that gets the target, if a render has targets.
pub const TARGET_VARIABLE: &str = "TARGET";

/// The payloads of a purpose, with their variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadGroup {
    pub id: PayloadGroupId,
    pub project: ProjectId,
    pub name: NotifyName,
    pub created_at: Timestamp,
    pub created_by: Actor,
    pub variables: Vec<Variable>,
    pub payloads: BTreeMap<PayloadName, Payload>,
    /// The callback servers of the project answer its payloads to whoever asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serve: bool,
    /// Nobody sees it any more. Its files are being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_deleted: bool,
}

impl PayloadGroup {
    /// Bytes of all its versions.
    pub fn bytes(&self) -> u64 {
        self.payloads.values().map(|payload| payload.bytes).sum()
    }

    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|it| it.name == name)
    }
}

/// A payload in the record of its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// The newest version, with its author. Versions are numbered from 1.
    pub edit: Edit,
    /// The oldest version. The versions before it are removed, because the payload is being deleted.
    pub oldest: u64,
    /// Its content type.
    pub media_type: String,
    /// Of the newest version.
    pub size: u64,
    /// Of the newest version, hexadecimal.
    pub sha256: String,
    /// Of all versions.
    pub bytes: u64,
}

impl Payload {
    pub fn has(&self, version: u64) -> bool {
        (self.oldest..=self.edit.version).contains(&version)
    }
}

/// The name of a payload. It can be a part of a path, and `NAME@VERSION` names a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PayloadName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "must be 1 to {PAYLOAD_NAME_BYTES} of A-Z, a-z, 0-9, `.`, `_` and `-`, and begin with a letter or digit"
)]
pub struct PayloadNameError;

impl PayloadName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PayloadName {
    type Err = PayloadNameError;

    fn from_str(text: &str) -> Result<Self, PayloadNameError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let fits = text.len() <= PAYLOAD_NAME_BYTES
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(is_allowed);
        fits.then(|| Self(text.to_owned())).ok_or(PayloadNameError)
    }
}

impl TryFrom<String> for PayloadName {
    type Error = PayloadNameError;

    fn try_from(text: String) -> Result<Self, PayloadNameError> {
        text.parse()
    }
}

impl From<PayloadName> for String {
    fn from(name: PayloadName) -> Self {
        name.0
    }
}

impl fmt::Display for PayloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text such as `NAME` or `NAME@3`.
pub fn name_and_version(text: &str) -> Option<(PayloadName, Option<u64>)> {
    match text.split_once('@') {
        None => Some((text.parse().ok()?, None)),
        Some((name, version)) => {
            let version: u64 = version.parse().ok().filter(|version| *version > 0)?;
            Some((name.parse().ok()?, Some(version)))
        }
    }
}

/// A part of a payload that gets its value when the payload is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    /// What stands in the payloads.
    pub placeholder: String,
    /// Its value, unless a render gives another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl Variable {
    /// The default placeholder of a name.
    pub fn placeholder_of(name: &str) -> String {
        format!("%%{name}%%")
    }

    /// Says what is wrong with the variables of a group.
    pub fn check(variables: &[Self]) -> Result<(), String> {
        if variables.len() > PAYLOAD_VARIABLES {
            return Err(format!("must be at most {PAYLOAD_VARIABLES} variables"));
        }
        for (at, variable) in variables.iter().enumerate() {
            let Self {
                name,
                placeholder,
                default,
            } = variable;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !(1..=PAYLOAD_NAME_BYTES).contains(&name.len()) || !name.chars().all(is_word) {
                return Err(format!(
                    "have a name of other than 1 to {PAYLOAD_NAME_BYTES} letters, digits and `_`"
                ));
            }
            let is_bad = |c: char| c == '|' || c.is_control();
            if !(2..=PAYLOAD_PLACEHOLDER_BYTES).contains(&placeholder.len())
                || placeholder.contains(is_bad)
            {
                return Err(format!(
                    "have a placeholder of `{name}` that is not 2 to {PAYLOAD_PLACEHOLDER_BYTES} bytes without `|` and control characters"
                ));
            }
            if default
                .as_ref()
                .is_some_and(|text| text.len() > PAYLOAD_DEFAULT_BYTES)
            {
                return Err(format!(
                    "have a default of `{name}` of more than {PAYLOAD_DEFAULT_BYTES} bytes"
                ));
            }
            let before = &variables[..at];
            if before
                .iter()
                .any(|it| it.name == *name || it.placeholder == *placeholder)
            {
                return Err(format!("have the name or placeholder of `{name}` twice"));
            }
        }
        Ok(())
    }
}
