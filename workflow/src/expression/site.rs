//! The place of an expression in a workflow, and the names that it may use there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kind::Kind;
use crate::diagnostic::Code;
use crate::dispatch::InputKind;

/// The place of an expression in a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// `on.expr`: decides whether a scan starts.
    Trigger,
    /// `if` of a step.
    Condition,
    /// `if` of an artifact.
    Artifact,
    /// `${{ … }}` in `run`.
    Script,
    /// `${{ … }}` in a value of `env`.
    Environment,
    /// An expression from a person, outside of any workflow.
    Question,
    /// `${{ … }}` in the template of a notification.
    Message,
}

/// How an expression's result is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It must be true or false.
    Decision,
    /// It is inserted into a text.
    Insertion,
    /// It is shown.
    Answer,
}

/// From when on a name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Even before there is a job.
    Trigger,
    /// When there is a job.
    Job,
    /// When a step may have run.
    Step,
    /// When a notification is sent.
    Message,
}

/// Every name, with its kind, and from when on it exists.
const ROOTS: [(&str, Kind, Since); 14] = [
    ("id", Kind::Text, Since::Job),
    ("name", Kind::Text, Since::Job),
    ("scans", Kind::Scans, Since::Trigger),
    ("project", Kind::Identity, Since::Trigger),
    ("workflow", Kind::Identity, Since::Trigger),
    ("revision", Kind::Identity, Since::Trigger),
    ("vars", Kind::Vars, Since::Trigger),
    ("secrets", Kind::Secrets, Since::Job),
    ("inputs", Kind::Inputs, Since::Job),
    ("steps", Kind::Steps, Since::Step),
    ("callback", Kind::Callback, Since::Job),
    ("ok", Kind::Bool, Since::Job),
    ("always", Kind::Bool, Since::Job),
    ("event", Kind::Event, Since::Message),
];

impl Site {
    /// Its name in messages.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Trigger => "`on.expr`",
            Self::Condition => "a step's `if`",
            Self::Artifact => "an artifact's `if`",
            Self::Script => "`run`",
            Self::Environment => "`env`",
            Self::Question => "a question",
            Self::Message => "the template of a notification",
        }
    }

    /// How the result is used.
    pub(super) const fn purpose(self) -> Purpose {
        match self {
            Self::Trigger | Self::Condition | Self::Artifact => Purpose::Decision,
            Self::Script | Self::Environment | Self::Message => Purpose::Insertion,
            Self::Question => Purpose::Answer,
        }
    }

    /// For a name that exists but not at this place: the problem, and what to do instead.
    pub(super) const fn unavailable(self, kind: &Kind) -> (Code, Option<&'static str>) {
        match kind {
            _ if matches!(self, Self::Message) => {
                (Code::UnavailableName, Some("it reads only `event`"))
            }
            Kind::Event => (
                Code::UnavailableName,
                Some("only the template of a notification has an event"),
            ),
            Kind::Secrets => (
                Code::SecretInTrigger,
                Some("read it in a step, or let a var decide when the scan starts"),
            ),
            Kind::Inputs => (
                Code::UnavailableName,
                Some(
                    "a job that an expression starts has the defaults; check the input in the `if` of a step",
                ),
            ),
            Kind::Steps if matches!(self, Self::Environment) => (
                Code::UnavailableName,
                Some("`env` is evaluated before the first step; ask in the `if` of a later step"),
            ),
            _ => (
                Code::UnavailableName,
                Some("there is no job yet; ask in the `if` of a step"),
            ),
        }
    }

    /// The names that are available at this place.
    pub(super) fn roots(self) -> impl Iterator<Item = &'static str> {
        ROOTS
            .iter()
            .filter(move |(_, _, since)| self.offers(*since))
            .map(|(name, _, _)| *name)
    }

    /// The kind of `name` here. `Err` with its kind if it exists only at other places.
    pub(super) fn root(self, name: &str) -> Option<Result<Kind, Kind>> {
        let (_, kind, since) = ROOTS.iter().find(|(root, _, _)| *root == name)?;
        Some(if self.offers(*since) {
            Ok(kind.clone())
        } else {
            Err(kind.clone())
        })
    }

    const fn offers(self, since: Since) -> bool {
        match self {
            Self::Trigger => matches!(since, Since::Trigger),
            Self::Environment => matches!(since, Since::Trigger | Since::Job),
            Self::Condition | Self::Artifact | Self::Script | Self::Question => {
                !matches!(since, Since::Message)
            }
            Self::Message => matches!(since, Since::Message),
        }
    }
}

/// The owner of an expression.
#[derive(Debug, Clone, Default)]
pub(crate) enum Holder {
    /// No scan, or an unknown scan.
    #[default]
    Unknown,
    /// Every scan of the workflow, through the workflow's `env`.
    EveryScan,
    /// This scan.
    Scan(String),
}

/// The names that an expression's workflow declares. An absent set is unknown, and is not checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Scans, with the names of their artifacts.
    pub(crate) scans: Option<Arc<BTreeMap<String, BTreeSet<String>>>>,
    /// The owner of the expression.
    pub(crate) holder: Holder,
    /// Inputs. The kind is absent if the declaration has an error.
    pub(crate) inputs: Option<BTreeMap<String, Option<InputKind>>>,
    /// Steps with their indexes.
    pub(crate) steps: Option<Arc<BTreeMap<String, usize>>>,
    /// How many steps have ended before the expression is evaluated.
    pub(crate) steps_before: usize,
    /// True if suggestions for unknown names would not be shown.
    pub(crate) is_terse: bool,
}
