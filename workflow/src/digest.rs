//! The canonical digest of a scan. Fields are fed with their name and length, objects in order of their keys, so that
//! two texts have the same digest exactly when they mean the same.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::definition::{Artifact, CatchUp, NotifyOn, Overlap, Scan, Step, Variable};
use crate::dispatch::{Input, InputKind, InputValue};
use crate::expression::Expression;
use crate::hex::hex;

/// SHA-256 over what a scan means, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScanDigest(String);

impl ScanDigest {
    /// 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Defaults are written out, so that stating one changes nothing.
pub(crate) fn of(scan: &Scan) -> ScanDigest {
    let mut feed = Feed(Sha256::new());
    feed.text("name", scan.name.as_str());
    triggers(&mut feed, scan);
    variables(&mut feed, "env", &scan.env);
    variables(&mut feed, "inherited_env", &scan.inherited_env);
    feed.count("steps", scan.steps.len());
    scan.steps.iter().for_each(|each| step(&mut feed, each));
    feed.count("artifacts", scan.artifacts.len());
    scan.artifacts
        .iter()
        .for_each(|each| artifact(&mut feed, each));
    feed.seconds("timeout", scan.timeout);
    feed.number(
        "retry.attempts",
        scan.retry.map_or(0, |retry| i64::from(retry.attempts)),
    );
    feed.seconds("retry.backoff", scan.retry.map(|retry| retry.backoff));
    feed.texts("runs_on", &scan.runs_on);
    feed.text(
        "overlap",
        match scan.overlap {
            Overlap::Skip => "skip",
            Overlap::Queue => "queue",
            Overlap::Replace => "replace",
        },
    );
    feed.texts("pass_env", &scan.pass_env);
    ScanDigest(hex(&feed.0.finalize()))
}

fn triggers(feed: &mut Feed, scan: &Scan) {
    let on = &scan.on;
    feed.optional("cron", on.cron.as_ref().map(|cron| cron.source()));
    feed.text("timezone", on.timezone.name());
    feed.text(
        "catch_up",
        match on.catch_up {
            CatchUp::Latest => "latest",
            CatchUp::None => "none",
            CatchUp::All => "all",
        },
    );
    feed.optional("expr", on.expr.as_ref().map(Expression::source));
    feed.number("dispatch", i64::from(on.dispatch.is_some()));
    let mut inputs: Vec<&Input> = on
        .dispatch
        .iter()
        .flat_map(|dispatch| &dispatch.inputs)
        .collect();
    inputs.sort_by(|one, other| one.key.cmp(&other.key));
    feed.count("inputs", inputs.len());
    for input in inputs {
        feed.text("key", &input.key);
        feed.text(
            "type",
            match input.kind {
                InputKind::Text => "string",
                InputKind::Bool => "bool",
            },
        );
        feed.number("required", i64::from(input.required));
        match &input.default {
            InputValue::Text(text) => feed.text("default", text),
            InputValue::Bool(value) => feed.number("default", i64::from(*value)),
        }
    }
}

fn variables(feed: &mut Feed, name: &str, variables: &[Variable]) {
    let mut sorted: Vec<&Variable> = variables.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    feed.count(name, sorted.len());
    for variable in sorted {
        feed.text("name", &variable.name);
        feed.text("value", variable.value.source());
    }
}

fn step(feed: &mut Feed, step: &Step) {
    feed.text("run", step.run.source());
    feed.number("has_shell", i64::from(step.shell.is_some()));
    feed.texts("shell", step.shell.as_deref().unwrap_or_default());
    feed.optional("if", step.condition.as_ref().map(Expression::source));
    feed.number("allow_failure", i64::from(step.allow_failure));
    feed.seconds("timeout", step.timeout);
}

fn artifact(feed: &mut Feed, artifact: &Artifact) {
    feed.text("name", &artifact.name);
    feed.texts("paths", &artifact.paths);
    feed.optional("if", artifact.condition.as_ref().map(Expression::source));
    feed.seconds("expires_in", artifact.expires_in);
    feed.text(
        "notify_on",
        match artifact.notify_on {
            NotifyOn::Diff => "diff",
            NotifyOn::Always => "always",
            NotifyOn::Never => "never",
        },
    );
}

/// Feeds named, self-delimiting fields.
struct Feed(Sha256);

impl Feed {
    fn text(&mut self, name: &str, value: &str) {
        for part in [name, value] {
            self.0.update(format!("{}:", part.len()));
            self.0.update(part);
        }
    }

    fn number(&mut self, name: &str, value: i64) {
        self.text(name, &value.to_string());
    }

    fn count(&mut self, name: &str, value: usize) {
        self.text(name, &value.to_string());
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        self.count(name, usize::from(value.is_some()));
        self.text("", value.unwrap_or_default());
    }

    fn seconds(&mut self, name: &str, value: Option<chrono::TimeDelta>) {
        self.optional(
            name,
            value
                .map(|value| value.num_seconds().to_string())
                .as_deref(),
        );
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        self.count(name, values.len());
        values.iter().for_each(|value| self.text("", value));
    }
}
