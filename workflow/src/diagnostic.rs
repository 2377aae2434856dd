//! What is wrong with a workflow file, where, and what to do about it. Daemon, API and command show the same records;
//! their `code` is stable, their text is not.

mod render;

use serde::{Deserialize, Serialize};

pub use render::render;

/// One problem of one file. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The file, as its reader knows it.
    pub file: String,
    /// Where it starts.
    pub line: u32,
    /// Where it starts.
    pub column: u32,
    /// Where it ends.
    pub end_line: u32,
    /// Where it ends.
    pub end_column: u32,
    /// Whether the file can be used all the same.
    pub severity: Severity,
    /// The kind of problem, for programs.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it, when there is something to suggest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error about a file as a whole, for those who found the file and not its text.
    pub fn of_file(file: &str, code: Code, message: String, hint: Option<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 1,
            severity: Severity::Error,
            code,
            message,
            hint,
        }
    }
}

/// Whether a problem makes the file unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is used.
    Warning,
}

/// The kinds of problems. Names are stable: programs may match on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The file is larger than allowed.
    FileTooLarge,
    /// The file is there and cannot be read as text.
    UnreadableFile,
    /// The text is no YAML.
    Syntax,
    /// YAML that this format does not use: several documents, tags, keys that are no text.
    UnsupportedYaml,
    /// Nested too deeply.
    TooDeep,
    /// Aliases expand to too much.
    AliasBudget,
    /// A key twice in one object.
    DuplicateKey,
    /// A key this format does not have.
    UnknownKey,
    /// A key that had a meaning once.
    ReplacedKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of the wrong type.
    WrongType,
    /// A key without a value.
    NullValue,
    /// An object or list that needs an entry has none.
    Empty,
    /// A value outside its bounds or choices.
    InvalidValue,
    /// More entries than allowed.
    TooMany,
    /// A name that breaks its rule.
    InvalidName,
    /// A name used twice.
    DuplicateName,
    /// A legal name that expressions cannot write with a dot.
    AwkwardName,
    /// A scan that nothing starts.
    NoTrigger,
    /// A required input on a scan that also starts by itself.
    RequiredInput,
    /// A cron schedule that cannot be read.
    InvalidCron,
    /// A cron schedule without a time.
    CronNeverFires,
    /// A time zone that does not exist.
    UnknownTimezone,
    /// A duration that cannot be read.
    InvalidDuration,
    /// A `shell` that cannot be split into words.
    InvalidShell,
    /// A path that leaves the job's folder or means nothing in it.
    InvalidPath,
    /// An expression that is no CEL.
    ExpressionSyntax,
    /// An expression that is too long, deep or large.
    ExpressionTooLarge,
    /// An expression whose evaluation could take too long.
    ExpressionTooCostly,
    /// A name, scan, input, artifact, member or function that does not exist.
    UnknownReference,
    /// Operands or results of the wrong type.
    ExpressionType,
    /// A variable or secret whose name is not written out.
    DynamicName,
    /// A `${{` without an end.
    UnclosedTemplate,
    /// Free text pasted into a script.
    TaintedScript,
    /// The expression engine could not be started.
    EngineUnavailable,
    /// More problems than are reported.
    MoreProblems,
}

impl Code {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FileTooLarge => "file-too-large",
            Self::UnreadableFile => "unreadable-file",
            Self::Syntax => "syntax",
            Self::UnsupportedYaml => "unsupported-yaml",
            Self::TooDeep => "too-deep",
            Self::AliasBudget => "alias-budget",
            Self::DuplicateKey => "duplicate-key",
            Self::UnknownKey => "unknown-key",
            Self::ReplacedKey => "replaced-key",
            Self::MissingKey => "missing-key",
            Self::WrongType => "wrong-type",
            Self::NullValue => "null-value",
            Self::Empty => "empty",
            Self::InvalidValue => "invalid-value",
            Self::TooMany => "too-many",
            Self::InvalidName => "invalid-name",
            Self::DuplicateName => "duplicate-name",
            Self::AwkwardName => "awkward-name",
            Self::NoTrigger => "no-trigger",
            Self::RequiredInput => "required-input",
            Self::InvalidCron => "invalid-cron",
            Self::CronNeverFires => "cron-never-fires",
            Self::UnknownTimezone => "unknown-timezone",
            Self::InvalidDuration => "invalid-duration",
            Self::InvalidShell => "invalid-shell",
            Self::InvalidPath => "invalid-path",
            Self::ExpressionSyntax => "expression-syntax",
            Self::ExpressionTooLarge => "expression-too-large",
            Self::ExpressionTooCostly => "expression-too-costly",
            Self::UnknownReference => "unknown-reference",
            Self::ExpressionType => "expression-type",
            Self::DynamicName => "dynamic-name",
            Self::UnclosedTemplate => "unclosed-template",
            Self::TaintedScript => "tainted-script",
            Self::EngineUnavailable => "engine-unavailable",
            Self::MoreProblems => "more-problems",
        }
    }
}
