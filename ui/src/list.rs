//! Cards, tables, and texts for empty lists.

use maud::{Markup, html};
use wire::{DamagedLines, Diagnostic, Excerpt, Severity};

use crate::links;
use crate::words::{condition, count, with_code};

/// A part of a page with a heading. `id` is the prefix of the heading's id.
pub(crate) fn card(id: &str, title: &str, side: &Markup, content: &Markup) -> Markup {
    html! {
        section.card aria-labelledby={ (id) "-title" } {
            header { h2 id={ (id) "-title" } { (title) } @if !side.0.is_empty() { div.side { (side) } } }
            (content)
        }
    }
}

/// A table that scrolls sideways in a narrow window. `label` names its content.
pub(crate) fn table(label: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label=(label) {
            table.rows {
                thead { tr {
                    @for head in heads {
                        @if head.is_empty() { td {} } @else { th scope="col" { (head) } }
                    }
                } }
                tbody { (rows) }
            }
        }
    }
}

/// The text that replaces an empty list.
pub(crate) fn empty(content: &Markup) -> Markup {
    html! { div.empty { (content) } }
}

/// The link to the next page of a list. `parameters` are the current filters.
pub(crate) fn more(path: &str, parameters: &[(&str, &str)], next: Option<&str>) -> Markup {
    let Some(next) = next else {
        return html! {};
    };
    let next = [parameters, &[("cursor", next)]].concat();
    html! {
        nav.more aria-label="Pages" {
            a.button rel="next" href=(links::with_query(path, &next)) { "Next page" }
        }
    }
}

/// Notes the unreadable lines of a list.
pub(crate) fn damaged(lines: &[DamagedLines]) -> Markup {
    html! {
        @if !lines.is_empty() {
            div.banner role="note" {
                p { b { "Some lines are missing, as they cannot be read:" } }
                ul.plain {
                    @for file in lines { li { code { (file.file) } ": " (count(file.lines, "line", "lines")) } }
                }
            }
        }
    }
}

/// Problems of a file with their places, errors first.
pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) -> Markup {
    let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics
        .iter()
        .partition(|diagnostic| diagnostic.severity == Severity::Error);
    html! {
        ul.diagnostics {
            @for diagnostic in errors.into_iter().chain(warnings) {
                li {
                    (match diagnostic.severity {
                        Severity::Error => condition("failed", "error"),
                        Severity::Warning => condition("scheduled", "warning"),
                    })
                    div {
                        p { (with_code(&diagnostic.message)) }
                        p.small.muted {
                            code { (diagnostic.file) ":" (diagnostic.line) ":" (diagnostic.column) }
                            " " code { (diagnostic.code) }
                        }
                        @if let Some(hint) = &diagnostic.hint { p.small { (with_code(hint)) } }
                    }
                }
            }
        }
    }
}

/// Numbered lines of a file. Lines with a problem are marked.
pub(crate) fn excerpt(excerpt: &Excerpt, problems: &[Diagnostic]) -> Markup {
    html! {
        div.source tabindex="0" role="group" aria-label="Lines of the file" {
            @for (number, line) in (excerpt.first..).zip(&excerpt.lines) {
                @let is_wrong = problems.iter().any(|problem| problem.line == number);
                div.line.wrong[is_wrong] { span.at { (number) } code.t { (line) } }
            }
        }
    }
}

/// Terms and their values.
pub(crate) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts { @for (term, value) in facts { div { dt { (term) } dd { (value) } } } }
    }
}
