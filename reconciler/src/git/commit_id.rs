//! A commit id: forty hexadecimal digits, parsed once at the edge.

use std::fmt;
use std::str::FromStr;

use git2::Oid;

const DIGITS: usize = 40;

/// A commit, by its SHA-1. Prints as forty lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CommitId(Oid);

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a commit: forty hexadecimal digits are expected")]
pub(crate) struct CommitIdError(String);

impl CommitId {
    pub(super) fn oid(self) -> Oid {
        self.0
    }
}

impl From<Oid> for CommitId {
    fn from(oid: Oid) -> Self {
        CommitId(oid)
    }
}

impl FromStr for CommitId {
    type Err = CommitIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || CommitIdError(text.chars().take(DIGITS + 1).collect());
        if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused());
        }
        Oid::from_str(text).map(CommitId).map_err(|_| refused())
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forty_hexadecimal_digits_are_a_commit() {
        let full = "0123456789abcdef0123456789ABCDEF01234567";
        let commit: CommitId = full.parse().unwrap();
        assert_eq!(commit.to_string(), full.to_ascii_lowercase());
        for wrong in [
            "",
            "main",
            &full[1..],
            &format!("{full}0"),
            &full.replace('0', "g"),
        ] {
            assert!(wrong.parse::<CommitId>().is_err(), "{wrong}");
        }
    }
}
