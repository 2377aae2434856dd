//! What is wrong in a workflow file, on one line for people.

use wire::{Diagnostic, Severity};

use crate::untrusted::clean;

/// `file:line:column: error[code]: message`, which editors know how to open, and the hint.
pub(crate) fn one_line(diagnostic: &Diagnostic) -> String {
    let Diagnostic {
        file,
        line,
        column,
        code,
        message,
        hint,
        ..
    } = diagnostic;
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{file}:{line}:{column}: {severity}[{code}]: {message}");
    if let Some(hint) = hint {
        text.push_str(&format!(" (hint: {hint})"));
    }
    clean(&text)
}
