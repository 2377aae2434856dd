//! Problems of a text outside of a file, such as a schedule on a command line.

use crate::cron::{CronError, CronProblem};
use crate::diagnostic::{Code, Diagnostic, Severity, render};
use crate::expression::Fault;
use crate::position::Lines;

impl CronProblem {
    pub(crate) const fn code(&self) -> Code {
        match self {
            Self::NeverFires => Code::CronNeverFires,
            Self::FieldCount { .. }
            | Self::Modifier { .. }
            | Self::Malformed { .. }
            | Self::Misplaced { .. }
            | Self::EmptyEntry { .. }
            | Self::OutOfRange { .. }
            | Self::Backwards { .. }
            | Self::Step { .. } => Code::InvalidCron,
        }
    }
}

impl CronError {
    /// Converts the problem to a fault of an expression.
    pub fn fault(&self) -> Fault {
        Fault {
            range: self.range.clone(),
            code: self.problem.code(),
            message: self.problem.to_string(),
            hint: self.problem.hint(),
        }
    }
}

/// Shows `faults` with their places in `text`; `name` is the name of the text in messages.
pub fn excerpts(name: &str, text: &str, faults: &[Fault]) -> String {
    let lines = Lines::of(text);
    let diagnostics: Vec<Diagnostic> = faults
        .iter()
        .map(|fault| {
            let (line, column) = lines.position(text, fault.range.start);
            let (end_line, end_column) = lines.position(text, fault.range.end);
            Diagnostic {
                file: name.to_owned(),
                line,
                column,
                end_line,
                end_column,
                severity: Severity::Error,
                code: fault.code,
                message: fault.message.clone(),
                hint: fault.hint.clone(),
            }
        })
        .collect();
    render(&diagnostics, text, false)
}
