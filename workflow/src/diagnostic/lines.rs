//! The lines around a problem. Records keep them instead of the whole text.

use serde::{Deserialize, Serialize};

use super::{Diagnostic, Severity};
use crate::limits::{SNIPPET_AROUND, SNIPPET_CHARS};

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesOfFile {
    /// The number of the first line, from 1.
    pub first: u32,
    /// The lines without their ends. A long line is cut.
    pub lines: Vec<String>,
}

impl LinesOfFile {
    /// The lines around the first error. None if the error is about the file as a whole.
    pub fn around_error(text: &str, diagnostics: &[Diagnostic]) -> Option<Self> {
        let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
        let error = diagnostics.iter().find(is_error)?;
        if error.is_of_file() {
            return None;
        }
        let first = error.line.saturating_sub(SNIPPET_AROUND).max(1);
        let count = error.line.saturating_add(SNIPPET_AROUND) - first + 1;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<String> = text
            .lines()
            .skip(usize::try_from(first - 1).ok()?)
            .take(usize::try_from(count).ok()?)
            .map(cut)
            .collect();
        (!lines.is_empty()).then_some(Self { first, lines })
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(SNIPPET_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or("")),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;

    fn at(line: u32, severity: Severity) -> Diagnostic {
        Diagnostic {
            line,
            end_line: line,
            column: 3,
            severity,
            ..Diagnostic::of_file("a.yaml", Code::Syntax, "wrong".to_owned(), None)
        }
    }

    fn around(line: u32, text: &str) -> Option<(u32, Vec<String>)> {
        let problems = [at(1, Severity::Warning), at(line, Severity::Error)];
        let found = LinesOfFile::around_error(text, &problems)?;
        Some((found.first, found.lines))
    }

    #[test]
    fn the_lines_around_the_first_error_are_kept() {
        let text = "a\nb\r\nc\nd\ne\nf\ng\n";
        let lines =
            |from, found: &[&str]| Some((from, found.iter().map(|it| (*it).to_owned()).collect()));
        assert_eq!(around(4, text), lines(2, &["b", "c", "d", "e", "f"]));
        assert_eq!(around(1, text), lines(1, &["a", "b", "c"]));
        assert_eq!(around(7, text), lines(5, &["e", "f", "g"]));
        assert_eq!(around(u32::MAX, text), None);
        assert_eq!(around(1, ""), None);
        assert_eq!(LinesOfFile::around_error(text, &[]), None);
    }

    #[test]
    fn a_problem_of_the_whole_file_has_no_lines_and_a_long_line_is_cut() {
        let whole = Diagnostic::too_large("a.yaml");
        assert_eq!(LinesOfFile::around_error("text", &[whole]), None);
        let (_, lines) = around(1, &"ä".repeat(100_000)).unwrap();
        assert_eq!(lines[0].chars().count(), SNIPPET_CHARS + 1);
        assert!(lines[0].ends_with('…'));
    }
}
