//! Diagnostics as text for a terminal: the line, a caret below it, and the hint.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::position::Lines;

/// Shows `diagnostics` with excerpts of `text`, the file they were made from. A problem that spans several lines is
/// shown by its first.
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
    let line = lines.range(text, diagnostic.line);
    let start = lines.offset(text, diagnostic.line, diagnostic.column);
    let end = lines.offset(text, diagnostic.end_line, diagnostic.end_column);
    let end = end.clamp(start, line.end.max(start));
    let snippet = Snippet::source(text.get(line.start..line.end).unwrap_or(""))
        .line_start(diagnostic.line as usize)
        .path(diagnostic.file.as_str())
        .annotation(AnnotationKind::Primary.span(start - line.start..end - line.start));
    let group = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.name())
        .element(snippet);
    let group = match &diagnostic.hint {
        Some(hint) => group.element(Level::HELP.message(hint.as_str())),
        None => group,
    };
    renderer.render(&[group])
}
