//! The newest commit of a source, as shown to users.

use git2::Repository;

use super::{CommitId, limits};

/// The newest commit of a source. Each text is one bounded line without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) commit: CommitId,
    pub(crate) summary: String,
    /// `Name <address>`.
    pub(crate) author: String,
    /// The full name of the reference to which the repository's HEAD points, if it was requested and is known.
    pub(crate) default_reference: Option<String>,
}

/// Reads the tip from a mirror. This also checks that the mirror can be read.
pub(super) fn read(mirror: &Repository, commit: CommitId) -> Result<Tip, git2::Error> {
    let (size, _) = mirror.odb()?.read_header(commit.oid())?;
    if size > limits::STRUCTURE_BYTES {
        return Err(git2::Error::from_str("the commit object is too large"));
    }
    let found = mirror.find_commit(commit.oid())?;
    mirror.odb()?.read_header(found.tree_id())?;
    let author = found.author();
    let name = String::from_utf8_lossy(author.name_bytes());
    let address = String::from_utf8_lossy(author.email_bytes());
    Ok(Tip {
        commit,
        summary: one_line(&String::from_utf8_lossy(
            found.summary_bytes().unwrap_or_default(),
        )),
        author: one_line(&format!("{name} <{address}>")),
        default_reference: None,
    })
}

fn one_line(text: &str) -> String {
    text.chars()
        .take(limits::TITLE_CHARACTERS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_one_bounded_line() {
        assert_eq!(one_line("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(
            one_line(&"é".repeat(1000)).chars().count(),
            limits::TITLE_CHARACTERS
        );
    }
}
