//! The canonical digest of a scan. Fields are hashed with their name and length, and objects in the order of their keys. So two
//! texts have the same digest exactly if they mean the same, for any YAML spelling. Expressions and schedules are hashed as
//! written: treating `(ok)` as `ok` would change every digest in the state. After an expression was only rewritten, the scan's
//! scheduled jobs are checked once more. Each part of the model is destructured without `..`, so that a new member does not
//! compile until it is hashed here.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cron::Schedules;
use crate::definition::{
    Artifact, Expect, OnCallback, Retry, Scan, Step, Triggers, UploadOn, Variable,
};
use crate::dispatch::{Dispatch, Input, InputValue};
use crate::expression::Expression;
use crate::hex::hex;

/// SHA-256 over the meaning of a scan, in hexadecimal.
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

/// Defaults are hashed as if they were written, so that writing a default changes nothing.
pub(crate) fn of(scan: &Scan) -> ScanDigest {
    let Scan {
        name,
        on,
        artifacts,
        env,
        inherited_env,
        steps,
        timeout,
        log_limit,
        retry,
        runs_on,
        overlap,
        pass_env,
        permissions,
        checkout,
        callback,
        expect,
        renamed_from,
    } = scan;
    let mut feed = Feed(Sha256::new());
    feed.text("name", name.as_str());
    triggers(&mut feed, on);
    variables(&mut feed, "env", env);
    variables(&mut feed, "inherited_env", inherited_env);
    feed.count("steps", steps.len());
    steps.iter().for_each(|each| step(&mut feed, each));
    feed.count("artifacts", artifacts.len());
    artifacts.iter().for_each(|each| artifact(&mut feed, each));
    feed.seconds("timeout", *timeout);
    let (attempts, backoff) = retry
        .map(|Retry { attempts, backoff }| (attempts, backoff))
        .unzip();
    feed.number("retry.attempts", attempts.map_or(0, i64::from));
    feed.seconds("retry.backoff", backoff);
    feed.texts("runs_on", runs_on);
    feed.text("overlap", overlap.name());
    feed.texts("pass_env", pass_env);
    // A scan without this key keeps the digest from before the key existed.
    if let Some(bytes) = log_limit {
        feed.text("log_limit", &bytes.to_string());
    }
    // The same for a scan without this key. The order of permissions has no meaning.
    if let Some(permissions) = permissions {
        let mut permissions = permissions.clone();
        permissions.sort();
        feed.texts("permissions", &permissions);
    }
    // The same for a scan without this key. The order of paths has no meaning.
    if let Some(checkout) = checkout {
        let mut paths = checkout.paths().to_vec();
        paths.sort();
        feed.texts("checkout", &paths);
    }
    // The same for a scan without this key.
    if let Some(callback) = callback {
        feed.text("callback", callback.as_str());
    }
    let Expect {
        success_every,
        starts_within,
        at_least,
        at_most,
    } = expect;
    // The same for a scan without these keys.
    for (name, value) in [
        ("expect.success_every", success_every),
        ("expect.starts_within", starts_within),
        ("expect.at_least", at_least),
        ("expect.at_most", at_most),
    ] {
        if value.is_some() {
            feed.seconds(name, *value);
        }
    }
    // The same for a scan without this key.
    if let Some(former) = renamed_from {
        feed.text("renamed_from", former.as_str());
    }
    ScanDigest(hex(&feed.0.finalize()))
}

fn triggers(feed: &mut Feed, on: &Triggers) {
    let Triggers {
        cron,
        timezone,
        catch_up,
        expr,
        callback,
        dispatch,
    } = on;
    feed.optional("cron", cron.as_ref().map(Schedules::source));
    feed.text("timezone", timezone.name());
    feed.text("catch_up", catch_up.name());
    feed.optional("expr", expr.as_ref().map(Expression::source));
    // A scan without this key keeps the digest from before the key existed.
    if let Some(OnCallback {
        server,
        min_interval,
    }) = callback
    {
        feed.text("callback.server", server.as_str());
        feed.seconds("callback.min_interval", Some(*min_interval));
    }
    feed.number("dispatch", i64::from(dispatch.is_some()));
    let mut sorted: Vec<&Input> = dispatch
        .iter()
        .flat_map(|Dispatch { inputs }| inputs)
        .collect();
    sorted.sort_by(|one, other| one.key.cmp(&other.key));
    feed.count("inputs", sorted.len());
    for input in sorted {
        let Input {
            key,
            description,
            kind,
            options,
            required,
            default,
        } = input;
        feed.text("key", key);
        feed.text("type", kind.name());
        feed.number("required", i64::from(*required));
        match default {
            InputValue::Text(text) => feed.text("default", text),
            InputValue::Bool(value) => feed.number("default", i64::from(*value)),
            InputValue::Number(number) => feed.text("default", &number.to_string()),
        }
        // An input without one of these keys keeps the digest from before the key existed.
        if !options.is_empty() {
            feed.texts("options", options);
        }
        if let Some(description) = description {
            feed.text("description", description);
        }
    }
}

fn variables(feed: &mut Feed, name: &str, variables: &[Variable]) {
    let mut sorted: Vec<&Variable> = variables.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    feed.count(name, sorted.len());
    for Variable { name, value } in sorted {
        feed.text("name", name);
        feed.text("value", value.source());
    }
}

fn step(feed: &mut Feed, step: &Step) {
    let Step {
        name,
        run,
        shell,
        condition,
        allow_failure,
        timeout,
    } = step;
    feed.text("run", run.source());
    feed.number("has_shell", i64::from(shell.is_some()));
    feed.texts("shell", shell.as_deref().unwrap_or_default());
    feed.optional("if", condition.as_ref().map(Expression::source));
    feed.number("allow_failure", i64::from(*allow_failure));
    feed.seconds("timeout", *timeout);
    // A step without this key keeps the digest from before the key existed.
    if let Some(name) = name {
        feed.text("step.name", name);
    }
}

fn artifact(feed: &mut Feed, artifact: &Artifact) {
    let Artifact {
        name,
        paths,
        condition,
        expires_in,
        upload_on,
        strict,
        notify_on,
    } = artifact;
    feed.text("name", name);
    feed.texts("paths", paths);
    feed.optional("if", condition.as_ref().map(Expression::source));
    feed.seconds("expires_in", *expires_in);
    feed.text("notify_on", notify_on.name());
    // An artifact without these keys keeps the digest from before they existed.
    if *upload_on != UploadOn::default() {
        feed.text("upload_on", upload_on.name());
    }
    if *strict {
        feed.text("strict", "true");
    }
}

/// Hashes named, self-delimiting fields.
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
