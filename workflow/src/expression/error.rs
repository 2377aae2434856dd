//! Errors of expressions: faults that are found when an expression is loaded, and errors of its evaluation.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use crate::diagnostic::Code;

/// One problem of an expression or template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The offending bytes of the source.
    pub range: Range<usize>,
    pub code: Code,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(range: Range<usize>, code: Code, message: impl Into<String>) -> Self {
        Self {
            range,
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Moves the fault into a text in which the source starts at byte `at`.
    pub(crate) fn shifted(mut self, at: usize) -> Self {
        self.range = self.range.start + at..self.range.end + at;
        self
    }
}

/// Why an expression or template is refused. There is at least one fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ExpressionError {
    faults: Vec<Fault>,
}

impl ExpressionError {
    pub(crate) const fn new(faults: Vec<Fault>) -> Self {
        Self { faults }
    }

    pub(crate) fn engine(source: &str, error: &EngineError) -> Self {
        Self::new(vec![Fault::new(
            0..source.len(),
            Code::EngineUnavailable,
            error.to_string(),
        )])
    }

    /// All faults, in the order of the source.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            f.write_str(&fault.message)?;
        }
        Ok(())
    }
}

/// The threads that run CEL have failed. The expression may be correct.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    #[error("cannot start a thread for expressions: {reason}")]
    Start {
        /// The system's answer.
        reason: String,
    },
    #[error("the expression engine failed on this text")]
    Broken,
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvaluationError {
    /// The expression failed on these values.
    #[error("expression `{expression}`: {message}")]
    Failed {
        expression: String,
        /// The problem. It contains types and names, but no values of secrets.
        message: String,
    },
    /// A name without a value.
    #[error("expression `{expression}`: there is no `{name}`{}", question(meant.as_deref()))]
    Missing {
        expression: String,
        /// The name, with the object in which it is missing.
        name: String,
        meant: Option<String>,
    },
    #[error("expression `{expression}` yields {found} where a boolean is needed")]
    NotBoolean {
        expression: String,
        found: &'static str,
    },
    #[error("expression `{expression}` yields {found}, which cannot be inserted into a text")]
    NotText {
        expression: String,
        found: &'static str,
    },
    #[error("expression `{expression}`")]
    Engine {
        expression: String,
        #[source]
        source: EngineError,
    },
}

fn question(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
