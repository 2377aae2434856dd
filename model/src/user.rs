//! People and programs with an account.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::USER_NAME_CHARS;
use crate::roles::Roles;
use crate::token::TokenHash;
use crate::{Timestamp, TokenId, UserId};

/// A user's record. It is never removed, so that a name is never given again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    pub name: UserName,
    #[serde(flatten)]
    pub kind: UserKind,
    pub state: UserState,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_administrator: bool,
    /// The projects of which the user is a member. An administrator needs no role.
    #[serde(default, skip_serializing_if = "Roles::is_empty")]
    pub roles: Roles,
    /// Sessions of earlier epochs have ended: the user has signed out everywhere.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub epoch: u64,
    /// The open invitation or reset. Boxed, since few users have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Box<UserLink>>,
    pub created_at: Timestamp,
    /// The last day on which a session or token of the user was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<NaiveDate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UserKind {
    Person {
        /// The hash of the password. None if the person has no password yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        password: Option<PasswordHash>,
    },
    /// A program: it has tokens, but no password and no session.
    Service,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserState {
    /// The invitation is not accepted yet.
    Invited,
    Active,
    Deactivated,
    /// Only the name is left.
    Deleted,
}

/// A link with which its holder sets a password, once: an invitation, or a reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserLink {
    pub hash: TokenHash,
    /// Who made it. The link ends with the right of its maker. None: it was made in the state folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<UserId>,
    /// The token that its maker used. The link ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The epoch of its maker at that time. Without a token, the link ends when its maker signs out everywhere.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub epoch: u64,
    pub expires_at: Timestamp,
}

impl User {
    /// The user that the first start makes.
    pub fn owner(now: Timestamp) -> Self {
        Self {
            id: UserId::OWNER,
            name: UserName(OWNER.into()),
            kind: UserKind::Person { password: None },
            state: UserState::Active,
            is_administrator: true,
            roles: Roles::default(),
            epoch: 0,
            link: None,
            created_at: now,
            last_seen: None,
        }
    }

    pub fn is_active(&self) -> bool {
        self.state == UserState::Active
    }

    pub fn is_deleted(&self) -> bool {
        self.state == UserState::Deleted
    }

    pub fn is_person(&self) -> bool {
        match self.kind {
            UserKind::Person { .. } => true,
            UserKind::Service => false,
        }
    }

    pub fn password(&self) -> Option<&PasswordHash> {
        match &self.kind {
            UserKind::Person { password } => password.as_ref(),
            UserKind::Service => None,
        }
    }

    /// True if the user is an administrator who can sign in with a password.
    pub fn can_administrate(&self) -> bool {
        self.is_active() && self.is_administrator && self.password().is_some()
    }
}

const OWNER: &str = "owner";

/// A user's name: 1 to 64 of a-z 0-9 . _ - with a letter or digit first. So no two names look alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserName(Box<str>);

/// The text is not a user's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a name is 1 to {USER_NAME_CHARS} of a-z 0-9 . _ - with a letter or digit first")]
pub struct UserNameError;

impl UserName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = UserNameError;

    fn from_str(name: &str) -> Result<Self, UserNameError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = name.len() <= USER_NAME_CHARS
            && name.starts_with(is_plain)
            && name
                .chars()
                .all(|c| is_plain(c) || matches!(c, '.' | '_' | '-'));
        fits.then(|| Self(name.into())).ok_or(UserNameError)
    }
}

impl TryFrom<String> for UserName {
    type Error = UserNameError;

    fn try_from(name: String) -> Result<Self, UserNameError> {
        name.parse()
    }
}

impl From<UserName> for String {
    fn from(name: UserName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The hash of a password, as a PHC string. It is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

impl PasswordHash {
    pub fn new(hash: String) -> Self {
        Self(hash)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_so_that_no_two_look_alike() {
        for good in ["a", "0", "kim.b_c-d", &"x".repeat(64)] {
            assert_eq!(good.parse::<UserName>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "Kim",
            "-a",
            ".",
            "a b",
            "аdmin",
            "a/b",
            "ä",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<UserName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_hash_of_a_password_is_not_printed() {
        let mut user = User::owner(Timestamp::UNIX_EPOCH);
        user.kind = UserKind::Person {
            password: Some(PasswordHash::new("$argon2id$x".to_owned())),
        };
        assert!(!format!("{user:?}").contains("argon2id"));
        let record = serde_json::to_value(&user).unwrap();
        assert_eq!(record["password"], "$argon2id$x");
        assert_eq!(serde_json::from_value::<User>(record).unwrap(), user);
    }
}
