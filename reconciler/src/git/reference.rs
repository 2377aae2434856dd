//! The wanted commit of a repository: a branch, a tag, a full reference name, or a commit.

use std::fmt;

use super::CommitId;
use super::limits;

/// The reference that a source follows. A plain name means a branch, or else a tag. `HEAD` is the default of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// The reference to which the repository's HEAD points.
    Head,
    Name(String),
    /// A name that begins with `refs/`.
    Full(String),
    Commit(CommitId),
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a branch, a tag, a full reference name or a full commit")]
pub struct ReferenceError(String);

impl Reference {
    /// Parses the text of a configuration: `main`, `v1.2`, `refs/heads/main`, forty hexadecimal digits, `HEAD`.
    pub fn parse(text: &str) -> Result<Reference, ReferenceError> {
        if text == "HEAD" {
            return Ok(Reference(Kind::Head));
        }
        if let Ok(commit) = text.parse() {
            return Ok(Reference(Kind::Commit(commit)));
        }
        let (kind, full): (fn(String) -> Kind, String) = if text.starts_with("refs/") {
            (Kind::Full, text.to_owned())
        } else {
            (Kind::Name, branch(text))
        };
        if text.starts_with('-')
            || text.chars().count() > limits::NAME_CHARACTERS
            || !git2::Reference::is_valid_name(&full)
        {
            return Err(ReferenceError(text.chars().take(80).collect()));
        }
        Ok(Reference(kind(text.to_owned())))
    }

    /// The wanted reference. Without one, the repository's HEAD.
    pub(super) fn kind_of(reference: Option<&Reference>) -> &Kind {
        reference.map_or(&Kind::Head, |reference| &reference.0)
    }
}

impl Kind {
    /// The full names that this may mean. The first existing reference is used. A commit has no names.
    pub(super) fn candidates(&self) -> Vec<String> {
        match self {
            Kind::Head => vec!["HEAD".to_owned()],
            Kind::Name(name) => vec![branch(name), format!("refs/tags/{name}")],
            Kind::Full(name) => vec![name.clone()],
            Kind::Commit(_) => Vec::new(),
        }
    }
}

fn branch(name: &str) -> String {
    format!("refs/heads/{name}")
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Head => f.write_str("HEAD"),
            Kind::Name(name) | Kind::Full(name) => f.write_str(name),
            Kind::Commit(commit) => commit.fmt(f),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_names_are_distinguished_and_print_as_written() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for (text, candidates) in [
            ("HEAD", vec!["HEAD"]),
            ("main", vec!["refs/heads/main", "refs/tags/main"]),
            (
                "feature/a",
                vec!["refs/heads/feature/a", "refs/tags/feature/a"],
            ),
            ("refs/heads/main", vec!["refs/heads/main"]),
            (commit, vec![]),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!(
                Reference::kind_of(Some(&reference)).candidates(),
                candidates
            );
        }
        assert_eq!(*Reference::kind_of(None), Kind::Head);
    }

    #[test]
    fn names_that_git_refuses_are_refused() {
        for text in [
            "",
            "-x",
            "--upload-pack=x",
            "a..b",
            "a b",
            "a~1",
            "a:b",
            "/a",
            "a/",
            "refs/",
            "a.lock",
            "a\nb",
        ] {
            assert!(Reference::parse(text).is_err(), "{text:?}");
        }
        assert!(Reference::parse(&"a".repeat(limits::NAME_CHARACTERS + 1)).is_err());
    }
}
