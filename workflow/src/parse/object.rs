//! An object of the file, which is read key by key.

use crate::diagnostic::Code;
use crate::position::Span;
use crate::report::Report;
use crate::suggestion::did_you_mean;
use crate::yaml::{Content, Entry, Node};

/// The keys of each object of a workflow file, for the parser and the schema.
pub(crate) mod keys {
    pub(crate) const WORKFLOW: [&str; 5] = ["$schema", "name", "description", "env", "scans"];
    pub(crate) const SCAN: [&str; 15] = [
        "on",
        "renamed_from",
        "artifacts",
        "env",
        "steps",
        "timeout",
        "log_limit",
        "retry",
        "runs_on",
        "overlap",
        "pass_env",
        "permissions",
        "checkout",
        "callback",
        "expect",
    ];
    pub(crate) const ON: [&str; 6] = [
        "cron", "expr", "callback", "dispatch", "timezone", "catch_up",
    ];
    pub(crate) const CALLBACK: [&str; 2] = ["server", "min_interval"];
    pub(crate) const DISPATCH: [&str; 1] = ["inputs"];
    pub(crate) const INPUT: [&str; 5] = ["description", "type", "options", "required", "default"];
    pub(crate) const ARTIFACT: [&str; 7] = [
        "name",
        "paths",
        "if",
        "expires_in",
        "upload_on",
        "strict",
        "notify_on",
    ];
    pub(crate) const STEP: [&str; 6] = ["name", "run", "shell", "if", "allow_failure", "timeout"];
    pub(crate) const EXPECT: [&str; 4] = ["success_every", "starts_within", "at_least", "at_most"];
    pub(crate) const RETRY: [&str; 2] = ["attempts", "backoff"];
    /// The keys of `everscan.yaml`.
    pub(crate) const PROJECT: [&str; 2] = ["$schema", "notify"];
    pub(crate) const RULE: [&str; 12] = [
        "name",
        "channel",
        "events",
        "workflows",
        "scans",
        "callbacks",
        "after",
        "group",
        "repeat",
        "quiet",
        "template",
        "content",
    ];
    pub(crate) const QUIET: [&str; 3] = ["from", "to", "timezone"];
}

pub(super) struct Object<'n> {
    /// The name of the object in messages.
    what: &'n str,
    span: Span,
    entries: &'n [Entry],
}

impl<'n> Object<'n> {
    /// The node as an object. Otherwise reports an error that shows the expected `form`.
    pub(super) fn of(
        node: &'n Node,
        what: &'n str,
        form: &str,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        match &node.content {
            Content::Map(entries) => Some(Self {
                what,
                span: node.span,
                entries,
            }),
            Content::Scalar(_) | Content::List(_) => {
                let message = format!("{what} must be an object, found {}", node.label());
                report
                    .error(node.span, Code::WrongType, message)
                    .hint(format!("write it like `{form}`"));
                None
            }
            Content::Invalid => None,
        }
    }

    /// Reports unknown keys.
    pub(super) fn check_keys(&self, known: &[&str], report: &mut Report<'_>) {
        for entry in self
            .entries
            .iter()
            .filter(|entry| !known.contains(&&*entry.key))
        {
            let message = format!("{} has no key `{}`", self.what, entry.shown_key());
            report
                .error(entry.key_span, Code::UnknownKey, message)
                .suggest(|| {
                    did_you_mean(&entry.key, known.iter().copied())
                        .or_else(|| Some(format!("known keys are {}", listed(known))))
                });
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Entry> {
        self.entries.iter().find(|entry| &*entry.key == key)
    }

    /// All entries in file order.
    pub(super) const fn entries(&self) -> &'n [Entry] {
        self.entries
    }

    /// Its first key, as the place for messages about the whole object.
    pub(super) fn head(&self) -> Span {
        self.entries
            .first()
            .map_or(self.span, |entry| entry.key_span)
    }
}

/// Names in backticks, for a message.
pub(super) fn listed(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
