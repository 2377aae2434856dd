//! Patterns as paths of artifacts: `glob:out/**/*.txt`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A pattern of files below the job's folder. `*` and `?` match characters of one name, including a leading dot. `**` matches any
/// folders, `[…]` one of several characters, `{a,b}` one of several texts, and `\` makes the next character literal.
#[derive(Debug, Clone)]
pub struct PathPattern {
    matcher: GlobMatcher,
    folder: String,
}

impl PathPattern {
    /// Marks a path as a pattern.
    pub const MARK: &str = "glob:";

    /// The pattern in a path. `None` for a plain path.
    ///
    /// # Errors
    /// If the pattern is invalid.
    pub fn of(path: &str) -> Option<Result<Self, String>> {
        let pattern = path.strip_prefix(Self::MARK)?;
        Some(Self::parse(pattern))
    }

    /// Reads a pattern without its mark.
    pub(crate) fn parse(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.trim_start_matches("./");
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        let glob = glob.map_err(|error| error.kind().to_string())?;
        let fixed = pattern.split('/').take_while(|part| {
            !part.is_empty() && !part.contains(['*', '?', '[', ']', '{', '}', '\\'])
        });
        let fixed: Vec<&str> = fixed.collect();
        // The last part is the name of a file.
        let folders = fixed.len().min(pattern.matches('/').count());
        Ok(Self {
            matcher: glob.compile_matcher(),
            folder: fixed.get(..folders).unwrap_or_default().join("/"),
        })
    }

    /// The folder that contains all matches. Empty for the job's own folder.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Whether it matches this file, relative to the job's folder.
    pub fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(path: &str) -> PathPattern {
        PathPattern::of(path).unwrap().unwrap()
    }

    #[test]
    fn only_a_marked_path_is_a_pattern() {
        for plain in ["out", "out/all.txt", "Glob:x", "a/glob:b"] {
            assert!(PathPattern::of(plain).is_none(), "{plain}");
        }
        for broken in ["glob:[a", "glob:{a", "glob:a}", "glob:[z-a]"] {
            assert!(PathPattern::of(broken).unwrap().is_err(), "{broken}");
        }
    }

    #[test]
    fn a_pattern_matches_files() {
        for (path, matching, other) in [
            (
                "glob:*.txt",
                &["a.txt", ".txt"][..],
                &["a/b.txt", "a.txt.gz"][..],
            ),
            (
                "glob:out/**/*.txt",
                &["out/a.txt", "out/b/c/d.txt"],
                &["a.txt", "other/out/a.txt"],
            ),
            ("glob:out/**", &["out/a", "out/b/c"], &["out", "outer/a"]),
            ("glob:**/core.?", &["core.1", "a/b/core.2"], &["core.10"]),
            ("glob:{a,b}/[0-9]", &["a/1", "b/2"], &["c/1", "a/x"]),
            ("glob:\\*", &["*"], &["a"]),
            ("glob:./a?", &["ab"], &["b"]),
            ("glob:out/all.txt", &["out/all.txt"], &["out/all"]),
        ] {
            let pattern = pattern(path);
            for name in matching {
                assert!(pattern.matches(Path::new(name)), "{path} and {name}");
            }
            for name in other {
                assert!(!pattern.matches(Path::new(name)), "{path} and {name}");
            }
        }
    }

    #[test]
    fn the_folder_before_the_first_wildcard_is_known() {
        for (path, folder) in [
            ("glob:*.txt", ""),
            ("glob:out/**/*.txt", "out"),
            ("glob:out/logs/*.txt", "out/logs"),
            ("glob:out/a{b,c}/x", "out"),
            ("glob:all.txt", ""),
            ("glob:out/all.txt", "out"),
            ("glob:./out/*", "out"),
        ] {
            assert_eq!(pattern(path).folder(), folder, "{path}");
        }
    }
}
