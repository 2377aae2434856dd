//! Diagnostics as text for a terminal: the line, a caret below it, and the hint.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::limits::EXCERPT_BYTES;
use crate::position::{Lines, Span, floor_char_boundary};

/// Shows `diagnostics` with excerpts of their file, `text`. If a problem spans several lines, the first line is shown.
pub fn render(diagnostics: &[Diagnostic], text: &str, colour: bool) -> String {
    let lines = Lines::of(text);
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let shown: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| show(diagnostic, text, &lines, &renderer) + "\n")
        .collect();
    shown.join("\n")
}

fn show(diagnostic: &Diagnostic, text: &str, lines: &Lines, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.name());
    let hinted = |group: Group<'_>| match &diagnostic.hint {
        Some(hint) => renderer.render(&[group.element(Level::HELP.message(hint.as_str()))]),
        None => renderer.render(&[group]),
    };
    // The renderer escapes contents, but not file names.
    let file = diagnostic.file.replace(is_obeyed, "\u{fffd}");
    if diagnostic.is_of_file() {
        return hinted(title.element(Origin::path(file.as_str())));
    }
    let line = lines.range(text, diagnostic.line);
    let start = lines.offset(text, diagnostic.line, diagnostic.column);
    let end = lines.offset(text, diagnostic.end_line, diagnostic.end_column);
    let shown = excerpt(text, line, start);
    let end = end.clamp(start, shown.end.max(start));
    let number = usize::try_from(diagnostic.line).unwrap_or(usize::MAX);
    let snippet = Snippet::source(text.get(shown.start..shown.end).unwrap_or(""))
        .line_start(number)
        .annotation(AnnotationKind::Primary.span(start - shown.start..end - shown.start));
    if shown == line {
        return hinted(title.element(snippet.path(file.as_str())));
    }
    // The renderer would count columns from the start of the excerpt.
    let column = usize::try_from(diagnostic.column).unwrap_or(usize::MAX);
    let origin = Origin::path(file.as_str()).line(number).char_column(column);
    without_bare_marks(&hinted(title.element(origin).element(snippet)))
}

/// Whether a terminal would interpret a character instead of showing it: control characters, and characters that change the
/// direction of text.
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Removes the renderer's line that announces an excerpt of another file. The renderer adds it because our excerpts carry their
/// own position.
fn without_bare_marks(rendered: &str) -> String {
    let is_bare = |line: &str| plain(line).trim() == ":::";
    let kept: Vec<&str> = rendered.lines().filter(|line| !is_bare(line)).collect();
    kept.join("\n")
}

/// A line without colour sequences.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or("");
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    std::iter::once(first).chain(rest).collect()
}

/// The part of a line around `start` that is shown: the whole line, unless it is very long. The renderer processes every
/// character for each problem of the line.
fn excerpt(text: &str, line: Span, start: usize) -> Span {
    if line.end.saturating_sub(line.start) <= EXCERPT_BYTES {
        return line;
    }
    let from = start.saturating_sub(EXCERPT_BYTES / 2).max(line.start);
    let to = start.saturating_add(EXCERPT_BYTES / 2).min(line.end);
    Span::new(
        floor_char_boundary(text, from),
        floor_char_boundary(text, to),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;

    fn problem(column: u32, end_column: u32) -> Diagnostic {
        Diagnostic {
            column,
            end_column,
            hint: Some("do better".to_owned()),
            ..Diagnostic::of_file("file.yaml", Code::Syntax, "wrong".to_owned(), None)
        }
    }

    #[test]
    fn a_caret_stands_below_the_characters() {
        let shown = render(&[problem(4, 7)], "ä: one\n", false);
        let expected = "\
error[syntax]: wrong
 --> file.yaml:1:4
  |
1 | ä: one
  |    ^^^
  |
  = help: do better
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn colours_are_optional() {
        let shown = |colour| render(&[problem(1, 2)], "text", colour);
        assert!(shown(true).contains("\u{1b}["));
        assert!(!shown(false).contains('\u{1b}'));
    }

    #[test]
    fn of_a_long_line_the_part_around_the_problem_is_shown() {
        let text = format!("{}here{}", "ä".repeat(50_000), "x".repeat(50_000));
        let shown = render(&[problem(50_001, 50_005)], &text, false);
        assert!(shown.contains("file.yaml:1:50001"), "{shown}");
        assert!(shown.contains("ähere"), "{shown}");
        assert!(shown.contains("^^^^"), "{shown}");
        assert!(shown.len() < 2_000, "{shown}");
        assert!(!shown.contains(":::"), "{shown}");
        let coloured = render(&[problem(50_001, 50_005)], &text, true);
        assert_eq!(plain(coloured.trim_end()), shown.trim_end());
    }

    #[test]
    fn the_name_of_a_file_gives_a_terminal_no_orders() {
        for place in [problem(1, 1), problem(2, 3)] {
            let named = Diagnostic {
                file: "e\u{1b}[31m\n\u{202e}x.yaml".to_owned(),
                ..place
            };
            let shown = render(&[named], "text", false);
            assert!(
                shown.contains("> e\u{fffd}[31m\u{fffd}\u{fffd}x.yaml"),
                "{shown}"
            );
        }
    }

    #[test]
    fn of_a_problem_of_the_whole_file_only_the_file_is_named() {
        let text = "x".repeat(10_000);
        let expected = "\
error[syntax]: wrong
--> file.yaml
 = help: do better
";
        assert_eq!(render(&[problem(1, 1)], &text, false), expected);
    }
}
