//! `checkout`: the files of the repository that a job gets.

use crate::limits::CHECKOUT_PATH_BYTES;

/// The files of the repository that a job gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checkout {
    All,
    /// Files, and folders with everything in them: at least one, no duplicates, each in the form that [`source_path`] returns.
    Paths(Vec<String>),
}

impl Checkout {
    /// The paths, in order of the text; none for the whole repository.
    pub fn paths(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Paths(paths) => paths,
        }
    }

    /// For messages: `true`, or the paths.
    pub fn shown(&self) -> String {
        match self {
            Self::All => "true".to_owned(),
            Self::Paths(paths) => paths.join(", "),
        }
    }
}

/// A path in a repository, without `./` at its beginning and `/` at its end.
///
/// # Errors
/// A message with a hint, if the text is not a plain relative path.
pub(crate) fn source_path(text: &str) -> Result<&str, (String, String)> {
    let problem = |message: &str, hint: &str| Err((message.to_owned(), hint.to_owned()));
    if text.is_empty() || text.contains(char::is_control) {
        return problem(
            "a path is one line and not empty",
            "name a file or folder of the repository",
        );
    }
    if text.len() > CHECKOUT_PATH_BYTES {
        return Err((
            format!("a path has at most {CHECKOUT_PATH_BYTES} bytes"),
            "name a folder above it".to_owned(),
        ));
    }
    if text.starts_with(['/', '~']) {
        return problem(
            "a path of `checkout` is relative to the top of the repository",
            "write it without `/` at its beginning",
        );
    }
    if text.contains(['*', '?']) {
        return problem(
            "a path of `checkout` cannot be a pattern",
            "name the folder; a job gets everything in it",
        );
    }
    if text.contains("${{") {
        return problem(
            "a path of `checkout` is not a template",
            "name the folder that has all of the files",
        );
    }
    let path = text.strip_prefix("./").unwrap_or(text);
    let path = path.strip_suffix('/').unwrap_or(path);
    for part in path.split('/') {
        match part {
            ".." => {
                return problem(
                    "a path of `checkout` cannot leave the repository",
                    "name a file or folder of the repository, without `..`",
                );
            }
            part if part.eq_ignore_ascii_case(".git") => {
                return problem(
                    "a path of `checkout` cannot be `.git`",
                    "a job gets the files of a commit, without the history",
                );
            }
            "" | "." => {
                return problem(
                    "a path of `checkout` has a part that is empty or `.`",
                    "write it like `scripts/lib`; the whole repository is `checkout: true`",
                );
            }
            _ => {}
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_accepted() {
        for (text, path) in [
            ("scripts", "scripts"),
            ("scripts/", "scripts"),
            ("./a/b.sh", "a/b.sh"),
            ("...", "..."),
            (".github/x y", ".github/x y"),
        ] {
            assert_eq!(source_path(text), Ok(path), "{text}");
        }
        let long = "x".repeat(CHECKOUT_PATH_BYTES + 1);
        for text in [
            "",
            ".",
            "./",
            "/",
            "/etc",
            "~/a",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "a//b",
            "a/./b",
            "a\nb",
            "*.sh",
            "a?",
            "${{ inputs.x }}",
            ".git",
            "a/.GIT/x",
            &long,
        ] {
            assert!(source_path(text).is_err(), "{text}");
        }
    }
}
