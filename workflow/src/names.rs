//! The names of the language and their rules. A value of a name type is always valid.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{ARTIFACT_NAME_BYTES, SCAN_NAME_BYTES, VARIABLE_NAME_BYTES};

/// Reserved words of CEL. A member with such a name cannot be written after a dot.
pub(crate) const CEL_KEYWORDS: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The name of a scan: letters, digits and `_`, unique in its workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScanName(String);

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NameError(pub(crate) String);

impl ScanName {
    /// Takes a scan name.
    ///
    /// # Errors
    /// Says which rule the text breaks.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        check_word("a scan name", &name, SCAN_NAME_BYTES)?;
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether expressions can write `scans.NAME`. Otherwise they must write `scans["NAME"]`.
    pub fn is_dotted(&self) -> bool {
        !self.0.starts_with(|c: char| c.is_ascii_digit()) && !is_keyword(&self.0)
    }
}

impl fmt::Display for ScanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for ScanName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ScanName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for ScanName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl TryFrom<String> for ScanName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<ScanName> for String {
    fn from(name: ScanName) -> Self {
        name.0
    }
}

/// Checks the name of a project variable, secret or dispatch input. `what` is the kind of name for messages, with its
/// article: `a variable name`.
///
/// # Errors
/// Says which rule the text breaks.
pub fn check_variable_name(what: &str, name: &str) -> Result<(), NameError> {
    check_identifier(what, name, VARIABLE_NAME_BYTES)?;
    if is_keyword(name) {
        let message = format!("`{name}` is a word of the expression language and cannot be {what}");
        return Err(NameError(message));
    }
    Ok(())
}

/// Checks the name of an environment variable.
///
/// # Errors
/// Says which rule the text breaks.
pub(crate) fn check_environment_name(name: &str) -> Result<(), NameError> {
    check_identifier("an environment name", name, SCAN_NAME_BYTES)
}

/// Checks the name of an artifact.
///
/// # Errors
/// Says which rule the text breaks.
pub fn check_artifact_name(name: &str) -> Result<(), NameError> {
    const WHAT: &str = "an artifact name";
    const ALLOWED: &str = "ASCII letters, digits, `-`, `_` and `.`";
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    check(WHAT, name, ARTIFACT_NAME_BYTES, ALLOWED, is_allowed)?;
    if matches!(name, "." | "..") {
        return Err(NameError(format!("`{name}` cannot be {WHAT}")));
    }
    Ok(())
}

/// Checks the name of a channel or of a rule of notifications.
pub(crate) fn check_notify_name(name: &str) -> Result<(), NameError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let allowed = "ASCII letters, digits, `-` and `_`";
    check("a name", name, VARIABLE_NAME_BYTES, allowed, is_allowed)
}

/// A word that does not start with a digit.
fn check_identifier(what: &str, name: &str, limit: usize) -> Result<(), NameError> {
    check_word(what, name, limit)?;
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(NameError(format!("{what} must not start with a digit")));
    }
    Ok(())
}

fn check_word(what: &str, name: &str, limit: usize) -> Result<(), NameError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    check(what, name, limit, "letters, digits and `_`", is_allowed)
}

fn check(
    what: &str,
    name: &str,
    limit: usize,
    allowed: &str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError(format!("{what} must not be empty")));
    }
    if let Some(character) = name.chars().find(|c| !is_allowed(*c)) {
        let message = format!("{what} has only {allowed}; `{character}` is not allowed");
        return Err(NameError(message));
    }
    if name.len() > limit {
        let message = format!("{what} has at most {limit} characters");
        return Err(NameError(message));
    }
    Ok(())
}

fn is_keyword(name: &str) -> bool {
    CEL_KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_names_follow_the_specification() {
        for good in ["a", "A_9", "1st", "for", "_"] {
            assert!(ScanName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a-b", "a.b", "ä", "a b", "a/b"] {
            assert!(ScanName::new(bad).is_err(), "{bad}");
        }
        assert!(ScanName::new("x".repeat(SCAN_NAME_BYTES + 1)).is_err());
        assert!(!ScanName::new("1st").unwrap().is_dotted());
        assert!(!ScanName::new("for").unwrap().is_dotted());
        assert!(ScanName::new("first").unwrap().is_dotted());
    }

    #[test]
    fn a_stored_scan_name_is_checked_when_read() {
        assert!(serde_json::from_str::<ScanName>("\"a-b\"").is_err());
        assert_eq!(
            serde_json::from_str::<ScanName>("\"ab\"").unwrap().as_str(),
            "ab"
        );
    }

    #[test]
    fn a_variable_name_is_not_a_keyword_and_does_not_start_with_a_digit() {
        for good in ["A", "_x", "TARGET_2"] {
            assert!(check_variable_name("an input name", good).is_ok(), "{good}");
        }
        for bad in ["", "2x", "in", "true", "a-b"] {
            assert!(check_variable_name("an input name", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn artifact_names_cannot_leave_their_folder() {
        for good in ["report.zip", "a-b_c", "..."] {
            assert!(check_artifact_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "ä.zip", "a b"] {
            assert!(check_artifact_name(bad).is_err(), "{bad}");
        }
    }
}
