//! The types of the static check, and upper bounds for the size of values.

use std::fmt;

use crate::limits::{HISTORY_JOBS, HISTORY_SUCCESSES, INPUT_CHARS, OUTPUTS, OUTPUTS_BYTES};
use crate::notify::EVENT_MEMBERS;

/// The kind of an expression's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Known only at evaluation.
    Any,
    /// The element of an empty list.
    Nothing,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    /// An integer or a double. Known only at evaluation.
    Number,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Kind>),
    Map(Box<Kind>),
    /// `project`, `workflow`, `revision`.
    Identity,
    /// The history of one scan, with its name if that is a literal.
    History(Option<String>),
    /// A job of a history.
    Job,
    /// An artifact of a job of a history.
    Artifact,
    /// The success of another scan that the asking scan has processed.
    Processed,
    /// An artifact of a processed success.
    ProcessedArtifact,
    /// A step of the same job.
    Step,
    /// `scans` itself. Like the kinds below, it is not a value, but its members are.
    Scans,
    Vars,
    Secrets,
    Inputs,
    Steps,
    /// What a notification is about. Its members are texts.
    Event,
    /// The interactions that started the job.
    Callback,
}

pub(super) const JOB_MEMBERS: [&str; 9] = [
    "id",
    "state",
    "trigger",
    "revision",
    "created_at",
    "started_at",
    "finished_at",
    "artifacts",
    "outputs",
];

const CALLBACK_MEMBERS: [&str; 6] = ["server", "count", "first", "last", "types", "job"];

impl Kind {
    /// Whether the kind is not a value, but its members are.
    pub(super) const fn is_namespace(&self) -> bool {
        matches!(
            self,
            Self::Scans
                | Self::Vars
                | Self::Secrets
                | Self::Inputs
                | Self::Steps
                | Self::Event
                | Self::Callback
        )
    }

    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Any | Self::Nothing)
    }

    pub(super) const fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double | Self::Number)
    }

    /// Whether values of the two kinds can ever be equal.
    pub(super) fn is_comparable_with(&self, other: &Self) -> bool {
        match (self, other) {
            (a, b) if a.is_unknown() || b.is_unknown() => true,
            (Self::Null, _) | (_, Self::Null) => true,
            (a, b) if a.is_number() && b.is_number() => true,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => {
                a.is_comparable_with(b)
            }
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// Whether a comparison of the two kinds compares a boolean with a text.
    pub(super) fn mixes_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool, Self::Text) | (Self::Text, Self::Bool) => true,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => a.mixes_with(b),
            _ => false,
        }
    }

    /// The kind of a value that has one of two kinds.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Nothing, kind) | (kind, Self::Nothing) => kind,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.join(*b))),
            (Self::Map(a), Self::Map(b)) => Self::Map(Box::new(a.join(*b))),
            (Self::History(_), Self::History(_)) => Self::History(None),
            (a, b) if a.is_number() && b.is_number() => Self::Number,
            _ => Self::Any,
        }
    }

    /// The kind of its elements. `None` if it has no elements.
    pub(super) fn element(&self) -> Option<Self> {
        match self {
            Self::Any | Self::Nothing => Some(Self::Any),
            Self::List(element) => Some((**element).clone()),
            Self::Map(_) => Some(Self::Text),
            Self::History(_) => Some(Self::Job),
            _ => None,
        }
    }

    /// The kind of a member. `None` if there is no such member, `Err` if the kind has no members at all.
    pub(super) fn member(&self, name: &str) -> Result<Option<Self>, ()> {
        Ok(match (self, name) {
            (Self::Any | Self::Nothing, _) => Some(Self::Any),
            (Self::Map(value), _) => Some((**value).clone()),
            (Self::Identity, "id") => Some(Self::Text),
            (Self::Job, "id" | "state" | "trigger" | "revision") => Some(Self::Text),
            (Self::Job, "created_at" | "started_at" | "finished_at") => Some(Self::Timestamp),
            (Self::Job, "artifacts") => Some(Self::Map(Box::new(Self::Artifact))),
            (Self::Job | Self::Step, "outputs") => Some(Self::Map(Box::new(Self::Text))),
            (Self::Artifact, "checksum") => Some(Self::Text),
            (Self::Artifact, "size") => Some(Self::Int),
            (Self::Processed, "id") | (Self::ProcessedArtifact, "checksum") => Some(Self::Text),
            (Self::Processed, "artifacts") => Some(Self::Map(Box::new(Self::ProcessedArtifact))),
            (Self::Callback, "server" | "job") => Some(Self::Text),
            (Self::Callback, "count" | "first" | "last") => Some(Self::Int),
            (Self::Callback, "types") => Some(Self::List(Box::new(Self::Text))),
            (Self::Event, name) if EVENT_MEMBERS.contains(&name) => Some(Self::Text),
            (Self::Identity | Self::Job | Self::Artifact | Self::Step | Self::Event, _)
            | (Self::Processed | Self::ProcessedArtifact | Self::Callback, _) => None,
            _ => return Err(()),
        })
    }

    /// The names that [`Kind::member`] knows.
    pub(super) const fn members(&self) -> &'static [&'static str] {
        match self {
            Self::Identity => &["id"],
            Self::Job => &JOB_MEMBERS,
            Self::Artifact => &["checksum", "size"],
            Self::Processed => &["id", "artifacts"],
            Self::ProcessedArtifact => &["checksum"],
            Self::Step => &["outputs"],
            Self::Event => &EVENT_MEMBERS,
            Self::Callback => &CALLBACK_MEMBERS,
            _ => &[],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any | Self::Nothing => "a value",
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Int | Self::Uint | Self::Double | Self::Number => "a number",
            Self::Text => "a string",
            Self::Bytes => "bytes",
            Self::Timestamp => "a timestamp",
            Self::Duration => "a duration",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Identity => "an object",
            Self::History(_) => "a scan's list of jobs",
            Self::Job => "a job",
            Self::Artifact => "an artifact",
            Self::Processed => "what was processed",
            Self::ProcessedArtifact => "a processed artifact",
            Self::Step => "a step",
            Self::Steps => "`steps`",
            Self::Scans => "`scans`",
            Self::Vars => "`vars`",
            Self::Secrets => "`secrets`",
            Self::Inputs => "`inputs`",
            Self::Event => "`event`",
            Self::Callback => "`callback`",
        })
    }
}

/// Who can choose the text of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taint {
    /// Only the workflow and the service.
    Nobody,
    /// Whoever may set a var.
    OfVar,
    /// Whoever dispatches the scan, or writes what its steps read.
    Free,
}

/// A value in the static check.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) taint: Taint,
    /// An upper bound for its elements, if it can be iterated over.
    pub(super) length: u64,
    /// An upper bound for its bytes.
    pub(super) bytes: u64,
}

/// Assumed bytes of a text from outside: the largest input.
const FOREIGN_TEXT_BYTES: u64 = INPUT_CHARS as u64 * 4;
/// Assumed bytes of a text that the service makes: ids, states, digests.
const OWN_TEXT_BYTES: u64 = 64;
/// Elements of a history during an iteration.
const HISTORY_LENGTH: u64 = (HISTORY_JOBS + HISTORY_SUCCESSES) as u64;
/// Assumed artifacts of one job.
const ARTIFACTS: u64 = 100;

impl Shape {
    /// A value whose size follows from its kind.
    pub(super) fn of(kind: Kind) -> Self {
        let (length, bytes) = match &kind {
            Kind::Null
            | Kind::Bool
            | Kind::Int
            | Kind::Uint
            | Kind::Double
            | Kind::Number
            | Kind::Nothing => (0, 8),
            Kind::Timestamp | Kind::Duration => (0, 16),
            Kind::Text => (0, OWN_TEXT_BYTES),
            Kind::Bytes | Kind::Event => (0, FOREIGN_TEXT_BYTES),
            Kind::Identity | Kind::Job | Kind::Artifact | Kind::Step => (0, OWN_TEXT_BYTES),
            Kind::Processed | Kind::ProcessedArtifact | Kind::Callback => (0, OWN_TEXT_BYTES),
            Kind::History(_) => (HISTORY_LENGTH, OWN_TEXT_BYTES),
            Kind::List(_) | Kind::Map(_) => (ARTIFACTS, ARTIFACTS * OWN_TEXT_BYTES),
            Kind::Any | Kind::Scans | Kind::Vars | Kind::Secrets | Kind::Inputs | Kind::Steps => {
                (HISTORY_LENGTH, FOREIGN_TEXT_BYTES)
            }
        };
        Self {
            kind,
            taint: Taint::Nobody,
            length,
            bytes,
        }
    }

    /// A text from outside.
    pub(super) fn foreign_text() -> Self {
        Self {
            bytes: FOREIGN_TEXT_BYTES,
            ..Self::of(Kind::Text)
        }
    }

    /// The outputs of a job or step: free text from its scripts.
    pub(super) fn outputs(kind: Kind) -> Self {
        Self {
            taint: Taint::Free,
            length: OUTPUTS as u64,
            bytes: OUTPUTS_BYTES as u64,
            ..Self::of(kind)
        }
    }

    /// The shape of an element of a list or map of this shape.
    pub(super) fn part(&self, kind: Kind) -> Self {
        let bytes = Self::of(kind.clone())
            .bytes
            .max(if matches!(self.kind, Kind::History(_)) {
                0
            } else {
                self.bytes
            });
        Self {
            bytes,
            ..Self::of(kind)
        }
        .tainted(self.taint)
    }

    /// The shape of a value that has one of two shapes.
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            kind: self.kind.join(other.kind),
            taint: self.taint.max(other.taint),
            length: self.length.max(other.length),
            bytes: self.bytes.max(other.bytes),
        }
    }

    /// Taints the value if it can contain text.
    pub(super) fn tainted(mut self, taint: Taint) -> Self {
        if can_carry_text(&self.kind) {
            self.taint = taint;
        }
        self
    }
}

/// Whether the kind can bring a command into a script. Numbers, booleans and times cannot.
const fn can_carry_text(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Null
            | Kind::Bool
            | Kind::Int
            | Kind::Uint
            | Kind::Double
            | Kind::Number
            | Kind::Timestamp
            | Kind::Duration
    )
}
