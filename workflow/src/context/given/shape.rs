//! The shape of a context: which values it may have, and where.

use crate::suggestion::did_you_mean;

/// The shape of one value.
pub(super) enum Shape {
    Text,
    Bool,
    /// How many of something.
    Count,
    /// A moment, written as text.
    Time,
    /// The value of an input.
    Input,
    /// A value that may also be `null`.
    Optional(&'static Self),
    /// An object with these keys, and its name in messages.
    Object(&'static str, &'static [(&'static str, Self)]),
    /// An object whose keys are names of a person's choice.
    Named(&'static Self),
    /// A list.
    List(&'static Self),
}

pub(super) const CONTEXT: Shape = Shape::Object(
    "a context",
    &[
        (
            "job",
            Shape::Optional(&Shape::Object(
                "a job",
                &[("id", Shape::Text), ("name", Shape::Text)],
            )),
        ),
        ("project", Shape::Text),
        ("workflow", Shape::Text),
        ("revision", Shape::Text),
        ("vars", Shape::Named(&Shape::Text)),
        ("inputs", Shape::Named(&Shape::Input)),
        ("scans", Shape::Named(&SCAN)),
        (
            "steps",
            Shape::Named(&Shape::Object(
                "a step",
                &[("outputs", Shape::Named(&Shape::Text))],
            )),
        ),
        ("ok", Shape::Bool),
    ],
);

const SCAN: Shape = Shape::Object(
    "a scan",
    &[
        ("size", Shape::Count),
        ("jobs", Shape::List(&JOB)),
        ("available", Shape::Bool),
        ("failed", Shape::Bool),
        ("successes", Shape::Count),
        ("newest_successes", Shape::List(&Shape::Named(&Shape::Text))),
        ("newest_success_ids", Shape::List(&Shape::Text)),
        (
            "news",
            Shape::Optional(&Shape::Object(
                "what is new in a scan",
                &[
                    ("processed", Shape::Optional(&PROCESSED)),
                    ("declared", Shape::List(&Shape::Text)),
                ],
            )),
        ),
    ],
);

const PROCESSED: Shape = Shape::Object(
    "what was processed",
    &[
        ("id", Shape::Text),
        ("artifacts", Shape::Named(&Shape::Text)),
    ],
);

const JOB: Shape = Shape::Object(
    "a job of a scan",
    &[
        ("id", Shape::Text),
        ("state", Shape::Text),
        ("trigger", Shape::Text),
        ("revision", Shape::Text),
        ("created_at", Shape::Time),
        ("started_at", Shape::Optional(&Shape::Time)),
        ("finished_at", Shape::Optional(&Shape::Time)),
        (
            "artifacts",
            Shape::Named(&Shape::Object(
                "an artifact",
                &[("checksum", Shape::Text), ("size", Shape::Count)],
            )),
        ),
        ("outputs", Shape::Named(&Shape::Text)),
    ],
);

impl Shape {
    /// How messages call it.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Count => "a whole number from 0",
            Self::Time => "a time such as `2026-11-20T10:00:00Z`",
            Self::Input => "a string, a boolean or a number of at most 15 digits",
            Self::Optional(shape) => shape.label(),
            Self::Object(..) | Self::Named(_) => "an object",
            Self::List(_) => "a list",
        }
    }

    /// The shape of a value that is not `null`.
    pub(super) const fn present(&self) -> &Self {
        match self {
            Self::Optional(shape) => shape,
            Self::Text | Self::Bool | Self::Count | Self::Time | Self::Input => self,
            Self::Object(..) | Self::Named(_) | Self::List(_) => self,
        }
    }

    /// The shape of the value of a key, or an error about the key.
    pub(super) fn member(&self, key: &str) -> Result<&Self, String> {
        let (what, members) = match self {
            Self::Named(shape) => return Ok(shape),
            Self::Object(what, members) => (*what, *members),
            Self::Text | Self::Bool | Self::Count | Self::Time | Self::Input => {
                ("a value", &[][..])
            }
            Self::Optional(_) | Self::List(_) => ("a value", &[][..]),
        };
        let known = members.iter().find(|(name, _)| *name == key);
        known.map(|(_, shape)| shape).ok_or_else(|| {
            let names = members.iter().map(|(name, _)| *name);
            let question = did_you_mean(key, names)
                .map_or_else(String::new, |question| format!(" ({question})"));
            format!("{what} has no `{key}`{question}")
        })
    }
}
