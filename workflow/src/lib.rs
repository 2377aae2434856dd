//! The workflow language: the model of a workflow file, its diagnostics, and its expressions.
//!
//! Pure: it takes text and values and returns the model and diagnostics. It uses no files, no clock, no network and no async
//! runtime. Daemon, runner and command all use it, so they give the same answers.

mod checkout;
mod context;
pub mod cron;
mod definition;
mod diagnostic;
mod diff;
mod digest;
mod dispatch;
mod duration;
mod excerpt;
pub mod expression;
mod hex;
pub mod limits;
mod names;
pub mod notify;
mod number;
mod outputs;
mod parse;
mod path_pattern;
mod position;
#[cfg(test)]
mod random;
mod reading;
mod report;
mod schema;
mod size;
#[cfg(test)]
mod specification;
mod suggestion;
mod template;
mod timezone;
mod yaml;

pub use checkout::Checkout;
pub use context::{
    ArtifactSummary, CallbackSummary, Context, JobIdentity, JobSummary, News, Processed,
    ScanHistory, StepSummary,
};
pub use cron::{Cron, Schedules};
pub use definition::{
    Artifact, CatchUp, Expect, NotifyOn, OnCallback, Overlap, PERMISSIONS, Retry, Scan, Step,
    TOKEN_VARIABLE, Triggers, UploadOn, Variable, Workflow,
};
pub use diagnostic::{
    Code, Diagnostic, LinesOfFile, NotUtf8, SETTINGS_FILE, Severity, is_obeyed, render, utf8,
};
pub use diff::{
    Change, Difference, Edit, Fate, Hunk, LineDifference, Part, ScanDifference, diff, line_diff,
};
pub use digest::ScanDigest;
pub use dispatch::{Dispatch, Input, InputError, InputKind, InputProblem, InputValue};
pub use duration::{DurationError, format_duration, parse_duration};
pub use excerpt::excerpts;
pub use expression::{
    EngineError, EvaluationError, Explanation, Expression, ExpressionError, Operand, Reach,
    References, Sandbox, Site, Value, renamed, should_run,
};
pub use hex::{hex, sha256, unhex};
pub use names::{NameError, ScanName, check_artifact_name, check_variable_name};
pub use number::{Number, NumberError};
pub use outputs::{OutputError, Outputs, check_outputs, read_outputs, with_outputs};
pub use parse::{Parsed, TemplatePolicy, parse};
pub use path_pattern::PathPattern;
pub use reading::{How, Reading};
pub use schema::json_schema;
pub use size::{SizeError, format_size, parse_size};
pub use template::Template;
pub use timezone::{Timezone, TimezoneError, parse_timezone};
