//! What a remote needs in addition to its URL: the user name, the place of the token, and the trusted authorities.
//!
//! It holds places and no secret values, so it may be printed anywhere. Of a command only the program is printed,
//! because an argument could hold a secret.

use std::fmt;
use std::path::PathBuf;

use super::limits;

/// How an `https://` repository is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// None for a public repository.
    pub login: Option<Login>,
    /// Certificates of the trusted authorities, in PEM form. If absent, the authorities of the machine are trusted.
    pub ca_file: Option<PathBuf>,
}

/// The user name and token with which a repository is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub username: Username,
    pub token: TokenSource,
}

/// The user name that the host gets with the token. It is not secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Username(String);

/// The place from which each attempt reads the token.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSource {
    File(PathBuf),
    Command {
        program: String,
        arguments: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a user name has 1 to {} characters, without `:` and control characters",
    limits::USERNAME_CHARACTERS
)]
pub struct UsernameError;

impl Username {
    pub fn parse(text: &str) -> Result<Self, UsernameError> {
        let length = text.chars().count();
        let fits = (1..=limits::USERNAME_CHARACTERS).contains(&length);
        if !fits || text.contains(|c: char| c == ':' || c.is_control()) {
            return Err(UsernameError);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Username {
    /// GitHub requires this name for apps. For other tokens GitHub and GitLab accept any name.
    fn default() -> Self {
        Self("x-access-token".to_owned())
    }
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSource::File(path) => write!(f, "token_file {}", path.display()),
            TokenSource::Command { program, .. } => write!(f, "token_command `{program}`"),
        }
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenSource({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_that_http_cannot_carry_are_refused() {
        for text in ["x-access-token", "deploy+read@example.org", "Zoë", "a b"] {
            assert_eq!(Username::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "a:b",
            "a\nb",
            &"x".repeat(limits::USERNAME_CHARACTERS + 1),
        ] {
            assert_eq!(Username::parse(text), Err(UsernameError), "{text:?}");
        }
    }

    #[test]
    fn arguments_of_a_command_are_not_shown() {
        let source = TokenSource::Command {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), "echo hunter2".to_owned()],
        };
        assert_eq!(source.to_string(), "token_command `sh`");
        assert!(!format!("{source:?}").contains("hunter2"));
    }
}
