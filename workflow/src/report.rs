//! Collects the problems of one file while it is read.

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::expression::Fault;
use crate::limits::DIAGNOSTICS;
use crate::position::{Lines, Span};
use crate::yaml::{Node, Places};

/// The problems found so far, and the data to find their lines and columns.
pub(crate) struct Report<'t> {
    file: &'t str,
    text: &'t str,
    lines: Lines,
    found: Vec<Diagnostic>,
    errors: usize,
    unread: usize,
    left_out: usize,
}

/// The place of a problem in the report.
enum Room {
    /// A free place.
    Free,
    /// The place of a warning, which an error may take.
    InsteadOf(usize),
}

/// A problem that was just reported. It can get a hint.
pub(crate) struct Reported<'r>(Option<&'r mut Diagnostic>);

impl Reported<'_> {
    pub(crate) fn hint(self, hint: impl Into<String>) {
        if let Some(diagnostic) = self.0 {
            diagnostic.hint = Some(hint.into());
        }
    }

    /// Adds a hint that takes time to compute. It is not computed if it would not be shown.
    pub(crate) fn suggest(self, hint: impl FnOnce() -> Option<String>) {
        if let Some(diagnostic) = self.0 {
            diagnostic.hint = hint();
        }
    }
}

impl<'t> Report<'t> {
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            lines: Lines::of(text),
            found: Vec::new(),
            errors: 0,
            unread: 0,
            left_out: 0,
        }
    }

    pub(crate) fn error(
        &mut self,
        span: Span,
        code: Code,
        message: impl Into<String>,
    ) -> Reported<'_> {
        self.add(span, Severity::Error, code, message.into())
    }

    pub(crate) fn warning(
        &mut self,
        span: Span,
        code: Code,
        message: impl Into<String>,
    ) -> Reported<'_> {
        self.add(span, Severity::Warning, code, message.into())
    }

    /// Reports a fault of an expression or template whose text is at `places`.
    pub(crate) fn fault(&mut self, places: &Places, fault: Fault) {
        let reported = self.error(places.locate(fault.range), fault.code, fault.message);
        if let Some(hint) = fault.hint {
            reported.hint(hint);
        }
    }

    /// Maps positions in the text of `node` to positions in the file.
    pub(crate) fn places(&self, node: &Node) -> Places {
        Places::of(node, self.text)
    }

    /// True if the report is full: further problems are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= DIAGNOSTICS
    }

    /// The line in which a span starts, from 1.
    pub(crate) fn line(&self, span: Span) -> u32 {
        self.lines.position(self.text, span.start).0
    }

    pub(crate) const fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors that hide a part of the file. A hidden part may contain anything, so warnings about missing parts are
    /// not given.
    pub(crate) const fn unread(&self) -> usize {
        self.unread
    }

    /// Records a part that is not read for an already reported reason.
    pub(crate) const fn leave_unread(&mut self) {
        self.unread += 1;
    }

    /// All problems, in the order of the file.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        self.found
            .sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        if self.left_out > 0 {
            let end = Span::new(self.text.len(), self.text.len());
            let severity = if self.errors > 0 {
                Severity::Error
            } else {
                Severity::Warning
            };
            let message = format!("{} more problems are not shown", self.left_out);
            let more = self.diagnostic(end, severity, Code::MoreProblems, message);
            self.found.push(more);
        }
        self.found
    }

    fn add(&mut self, span: Span, severity: Severity, code: Code, message: String) -> Reported<'_> {
        if severity == Severity::Error {
            self.errors += 1;
            self.unread += usize::from(code.leaves_unread());
        }
        let Some(room) = self.room_for(severity) else {
            self.left_out += 1;
            return Reported(None);
        };
        let diagnostic = self.diagnostic(span, severity, code, message);
        // With an alias, the same text is read twice, but its problem is reported once.
        if let Some(at) = self
            .found
            .iter()
            .position(|known| is_same(known, &diagnostic))
        {
            return Reported(self.found.get_mut(at));
        }
        if let Room::InsteadOf(at) = room {
            self.left_out += 1;
            self.found.remove(at);
        }
        self.found.push(diagnostic);
        Reported(self.found.last_mut())
    }

    /// The place for a further problem. Errors matter more, so an error may replace a warning.
    fn room_for(&self, severity: Severity) -> Option<Room> {
        if !self.is_full() {
            return Some(Room::Free);
        }
        let is_warning = |known: &Diagnostic| known.severity == Severity::Warning;
        match severity {
            Severity::Error => self.found.iter().rposition(is_warning).map(Room::InsteadOf),
            Severity::Warning => None,
        }
    }

    fn diagnostic(
        &self,
        span: Span,
        severity: Severity,
        code: Code,
        message: String,
    ) -> Diagnostic {
        let (line, column) = self.lines.position(self.text, span.start);
        let (end_line, end_column) = self.lines.position(self.text, span.end.max(span.start));
        Diagnostic {
            file: self.file.to_owned(),
            line,
            column,
            end_line,
            end_column,
            severity,
            code,
            message,
            hint: None,
        }
    }
}

fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.line, one.column, one.code) == (other.line, other.column, other.code)
        && one.message == other.message
}
