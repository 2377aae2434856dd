//! Tests which changes affect a digest, with a file that has every key of the language.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::diff::diff;
use crate::parse::object::keys;
use crate::random::Random;
use crate::{TemplatePolicy, Workflow, parse};

/// A workflow with every key, as the tree of its YAML.
fn whole() -> Value {
    json!({
        "name": "nightly",
        "description": "Builds and reports.",
        "env": { "LEVEL": "${{ vars.LEVEL }}" },
        "scans": {
            "build": {
                "on": {
                    "dispatch": {
                        "inputs": {
                            "depth": { "type": "string", "required": true, "default": "1" },
                            "fast": { "type": "bool", "required": false, "default": "true" },
                            "calm": { "type": "bool", "default": "true" },
                        },
                    },
                },
                "artifacts": [
                    {
                        "name": "out",
                        "paths": ["out", "logs/all.txt"],
                        "if": "ok && inputs.fast",
                        "expires_in": "1d",
                        "notify_on": "diff",
                    },
                    { "name": "rest", "paths": ["rest"] },
                ],
                "env": { "DEPTH": "${{ inputs.depth }}", "A": "1" },
                "steps": [
                    {
                        "run": "echo \"$DEPTH\" > out\n\n  echo done: yes # no comment\n",
                        "shell": "bash -e 'a b'",
                        "if": "inputs.fast || vars.LEVEL == 'high'",
                        "allow_failure": true,
                        "timeout": "5m",
                    },
                    { "run": "make: it" },
                ],
                "timeout": "1h",
                "retry": { "attempts": 2, "backoff": "10s" },
                "runs_on": ["linux", "big"],
                "overlap": "queue",
                "pass_env": ["HTTPS_PROXY"],
            },
            "report": {
                "on": {
                    "cron": "0 3 * * *",
                    "timezone": "Europe/Berlin",
                    "catch_up": "none",
                    "expr": "scans.build.has_diff()",
                    "dispatch": {
                        "inputs": {
                            "rate": { "type": "number", "default": 1.5 },
                            "size": { "type": "choice", "options": ["a", "b"] },
                        },
                    },
                },
                "steps": [{ "run": "echo" }],
                "expect": {
                    "success_every": "1d",
                    "starts_within": "5m",
                    "at_least": "10s",
                    "at_most": "30m",
                },
            },
        },
    })
}

/// One change of meaning for each key of each object: the object's keys, the place, and the new value.
fn changes() -> Vec<(&'static [&'static str], &'static str, Value)> {
    let (build, report) = ("/scans/build", "/scans/report");
    let at = |scan: &str, place: &str| -> &'static str { format!("{scan}{place}").leak() };
    vec![
        (&keys::SCAN, at(report, "/on"), json!({ "dispatch": {} })),
        (&keys::SCAN, at(build, "/artifacts"), json!([])),
        (
            &keys::SCAN,
            at(build, "/env"),
            json!({ "DEPTH": "${{ inputs.depth }}", "A": "2" }),
        ),
        (
            &keys::SCAN,
            at(report, "/steps"),
            json!([{ "run": "echo" }, { "run": "echo" }]),
        ),
        (&keys::SCAN, at(build, "/timeout"), json!("2h")),
        (&keys::SCAN, at(build, "/log_limit"), json!("2MiB")),
        (&keys::SCAN, at(build, "/renamed_from"), json!("former")),
        (&keys::SCAN, at(build, "/checkout"), json!(true)),
        (&keys::SCAN, at(build, "/checkout"), json!(["scripts"])),
        (&keys::SCAN, at(build, "/callback"), json!("shop")),
        (&keys::SCAN, at(build, "/permissions"), json!([])),
        (&keys::SCAN, at(build, "/permissions"), json!(["job:read"])),
        (&keys::SCAN, at(build, "/retry"), Value::Null),
        (&keys::SCAN, at(build, "/runs_on"), json!(["linux"])),
        (&keys::SCAN, at(build, "/overlap"), json!("skip")),
        (
            &keys::SCAN,
            at(build, "/pass_env"),
            json!(["HTTPS_PROXY", "NO_PROXY"]),
        ),
        (&keys::ON, at(report, "/on/cron"), json!("1 3 * * *")),
        (
            &keys::ON,
            at(report, "/on/cron"),
            json!(["0 3 * * *", "0 12 * * 6"]),
        ),
        (&keys::ON, at(report, "/on/timezone"), json!("UTC")),
        (&keys::ON, at(report, "/on/catch_up"), json!("all")),
        (
            &keys::ON,
            at(report, "/on/expr"),
            json!("!scans.build.has_diff()"),
        ),
        (
            &keys::ON,
            at(report, "/on/callback"),
            json!({ "server": "shop" }),
        ),
        (&keys::ON, at(report, "/on/dispatch"), json!({})),
        (
            &keys::DISPATCH,
            at(build, "/on/dispatch/inputs"),
            json!({ "depth": {}, "fast": { "type": "bool" } }),
        ),
        (
            &keys::INPUT,
            at(build, "/on/dispatch/inputs/depth/description"),
            json!("How deep to look"),
        ),
        (
            &keys::INPUT,
            at(build, "/on/dispatch/inputs/calm/type"),
            json!("string"),
        ),
        (
            &keys::INPUT,
            at(report, "/on/dispatch/inputs/size/options"),
            json!(["a", "c"]),
        ),
        (
            &keys::INPUT,
            at(report, "/on/dispatch/inputs/size/options"),
            json!(["b", "a"]),
        ),
        (
            &keys::INPUT,
            at(report, "/on/dispatch/inputs/rate/default"),
            json!(1),
        ),
        (
            &keys::INPUT,
            at(build, "/on/dispatch/inputs/depth/required"),
            json!(false),
        ),
        (
            &keys::INPUT,
            at(build, "/on/dispatch/inputs/depth/default"),
            json!("2"),
        ),
        (
            &keys::ARTIFACT,
            at(build, "/artifacts/0/name"),
            json!("other"),
        ),
        (
            &keys::ARTIFACT,
            at(build, "/artifacts/0/paths"),
            json!(["out"]),
        ),
        (&keys::ARTIFACT, at(build, "/artifacts/0/if"), json!("ok")),
        (
            &keys::ARTIFACT,
            at(build, "/artifacts/0/expires_in"),
            json!("2d"),
        ),
        (
            &keys::ARTIFACT,
            at(build, "/artifacts/0/upload_on"),
            json!("failure"),
        ),
        (
            &keys::ARTIFACT,
            at(build, "/artifacts/0/strict"),
            json!(true),
        ),
        (
            &keys::ARTIFACT,
            at(build, "/artifacts/0/notify_on"),
            json!("always"),
        ),
        (&keys::STEP, at(build, "/steps/0/name"), json!("first")),
        (&keys::STEP, at(build, "/steps/0/name"), json!("other")),
        (&keys::STEP, at(build, "/steps/0/run"), json!("echo other")),
        (
            &keys::STEP,
            at(build, "/steps/0/shell"),
            json!("bash -e a b"),
        ),
        (&keys::STEP, at(build, "/steps/0/if"), json!("inputs.fast")),
        (
            &keys::STEP,
            at(build, "/steps/0/allow_failure"),
            json!(false),
        ),
        (&keys::STEP, at(build, "/steps/0/timeout"), json!("6m")),
        (
            &keys::SCAN,
            at(build, "/expect"),
            json!({ "success_every": "1d" }),
        ),
        (
            &keys::EXPECT,
            at(report, "/expect/success_every"),
            json!("2d"),
        ),
        (
            &keys::EXPECT,
            at(report, "/expect/starts_within"),
            json!("6m"),
        ),
        (&keys::EXPECT, at(report, "/expect/at_least"), json!("11s")),
        (&keys::EXPECT, at(report, "/expect/at_most"), json!("31m")),
        (&keys::RETRY, at(build, "/retry/attempts"), json!(3)),
        (&keys::RETRY, at(build, "/retry/backoff"), json!("20s")),
        // Changes that do not belong to a key of these objects.
        (&[], "/env", json!({ "LEVEL": "low" })),
        (&[], "/artifacts of build turned around", json!("turn")),
    ]
}

fn changed(place: &str, value: &Value) -> Value {
    let mut tree = whole();
    if value == "turn" {
        let artifacts = tree.pointer_mut("/scans/build/artifacts").unwrap();
        artifacts.as_array_mut().unwrap().reverse();
        return tree;
    }
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = tree.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(key).unwrap();
    } else {
        parent.insert(key.to_owned(), value.clone());
    }
    tree
}

fn read(yaml: &str) -> Workflow {
    match parse("test.yaml", yaml, TemplatePolicy::Warn) {
        Ok(parsed) => parsed.workflow,
        Err(diagnostics) => panic!("{}\n{yaml}", crate::render(&diagnostics, yaml, false)),
    }
}

/// JSON is valid YAML.
fn of_tree(tree: &Value) -> Workflow {
    read(&tree.to_string())
}

fn digests(workflow: &Workflow) -> BTreeSet<String> {
    let digests = workflow.scans().map(|scan| scan.digest().to_string());
    digests.collect()
}

#[test]
fn every_change_of_meaning_changes_the_digest() {
    let original = of_tree(&whole());
    let mut seen = BTreeSet::from([digests(&original)]);
    for (_, place, value) in changes() {
        let other = of_tree(&changed(place, &value));
        assert!(
            seen.insert(digests(&other)),
            "{place} = {value} changes nothing"
        );
        let difference = diff(&original, &other);
        assert!(
            !difference.is_empty(),
            "{place} = {value} is not a difference"
        );
    }
    let mut renamed = whole();
    let scans = renamed["scans"].as_object_mut().unwrap();
    let report = scans.remove("report").unwrap();
    scans.insert("summary".to_owned(), report);
    assert!(seen.insert(digests(&of_tree(&renamed))), "the name");
}

/// Digests are stored in the state: if they changed, every scan would look changed after an upgrade.
#[test]
fn the_digest_of_a_scan_stays_what_it_was() {
    let digest = of_tree(&whole()).scan("build").unwrap().digest();
    assert_eq!(
        digest.as_str(),
        "25c92607924d13710a0365eca118ca643738cb1fd1e68c434bd61828aaf941af"
    );
}

#[test]
fn every_key_of_the_language_has_a_change_in_these_tests() {
    for known in [
        keys::SCAN.as_slice(),
        &keys::ON,
        &keys::DISPATCH,
        &keys::INPUT,
        &keys::ARTIFACT,
        &keys::STEP,
        &keys::EXPECT,
        &keys::RETRY,
    ] {
        let tried: BTreeSet<&str> = changes()
            .iter()
            .filter(|(keys, _, _)| *keys == known)
            .filter_map(|(_, place, _)| place.rsplit('/').next())
            .collect();
        assert_eq!(tried, known.iter().copied().collect());
    }
    // `$schema` has no meaning, `name` and `description` belong to no scan, and the other keys are above.
    assert_eq!(
        keys::WORKFLOW,
        ["$schema", "name", "description", "env", "scans"]
    );
}

#[test]
fn the_same_meaning_written_differently_has_the_same_digest() {
    let original = of_tree(&whole());
    let mut random = Random::new(41);
    for _ in 0..200 {
        let yaml = Writer {
            random: &mut random,
        }
        .document(&whole());
        let other = read(&yaml);
        assert_eq!(digests(&other), digests(&original), "{yaml}");
        assert!(diff(&original, &other).is_empty(), "{yaml}");
    }
}

#[test]
fn a_written_default_changes_nothing() {
    let short = "scans: {a: {on: {cron: 0 3 * * *, dispatch: {inputs: {i: {}}}}, steps: [{run: a}], \
                 artifacts: [{name: o, paths: [o]}], retry: {attempts: 1}, timeout: 1h}}";
    let long = "scans: {a: {on: {cron: ['0  3 * * *'], timezone: UTC, catch_up: latest, dispatch: {inputs: {i: \
                {type: string, required: false, default: ''}}}}, steps: [{run: a, allow_failure: false}], artifacts: \
                [{name: o, paths: [o], upload_on: success, strict: false, notify_on: never}], retry: {attempts: 1, backoff: 10s}, overlap: skip, env: {}, \
                runs_on: [], pass_env: [], timeout: 60m}}";
    assert_eq!(digests(&read(short)), digests(&read(long)));
    assert!(diff(&read(short), &read(long)).is_empty());
}

/// Writes a tree as YAML in a random spelling.
struct Writer<'r> {
    random: &'r mut Random,
}

impl Writer<'_> {
    fn document(mut self, tree: &Value) -> String {
        let head = self
            .random
            .pick(&["", "---\n", "# A comment.\n\n", "%YAML 1.2\n---\n"]);
        format!("{head}{}", self.block(tree, 0).trim_start_matches('\n'))
    }

    /// The text after a key or dash, with the line's end.
    fn block(&mut self, tree: &Value, indent: usize) -> String {
        match tree {
            Value::Object(members) if !members.is_empty() && self.chance(5, 6) => {
                let members = self.shuffled(members.iter().collect());
                let lines: String = members
                    .into_iter()
                    .map(|(key, value)| {
                        let key = self.key(key);
                        let between = self.between();
                        let value = self.block(value, indent + 1);
                        format!("{between}{}{key}:{value}", "  ".repeat(indent))
                    })
                    .collect();
                format!("{}\n{lines}", self.comment())
            }
            Value::Array(items) if !items.is_empty() && self.chance(5, 6) => {
                let lines: String = items
                    .iter()
                    .map(|item| {
                        let item = self.block(item, indent + 1);
                        format!("{}-{item}", "  ".repeat(indent))
                    })
                    .collect();
                format!("\n{lines}")
            }
            Value::String(text) if self.chance(1, 3) && literal_fits(text) => {
                let chomping = if text.ends_with('\n') { "" } else { "-" };
                let lines: String = text
                    .lines()
                    .map(|line| match line {
                        "" => "\n".to_owned(),
                        line => format!("{}{line}\n", "  ".repeat(indent.max(1))),
                    })
                    .collect();
                format!(" |{chomping}\n{lines}")
            }
            other => format!(" {}{}\n", self.flow(other), self.comment()),
        }
    }

    fn flow(&mut self, tree: &Value) -> String {
        match tree {
            Value::Object(members) => {
                let members = self.shuffled(members.iter().collect());
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| format!("{}: {}", self.key(key), self.flow(value)))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.flow(item)).collect();
                format!("[{}]", items.join(" , "))
            }
            Value::String(text) => self.scalar(text),
            other => other.to_string(),
        }
    }

    fn scalar(&mut self, text: &str) -> String {
        let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_./ ".contains(c))
            && text != "true";
        match self.random.below(3) {
            0 if is_plain => text.to_owned(),
            1 if !text.contains('\n') => format!("'{}'", text.replace('\'', "''")),
            _ => Value::String(text.to_owned()).to_string(),
        }
    }

    fn key(&mut self, key: &str) -> String {
        match self.random.below(4) {
            0 => format!("'{key}'"),
            1 => format!("\"{key}\""),
            _ => key.to_owned(),
        }
    }

    fn comment(&mut self) -> &'static str {
        self.random.pick(&["", "", " # why: because", "   "])
    }

    fn between(&mut self) -> &'static str {
        self.random.pick(&["", "", "\n", "# steps:\n", "#\n"])
    }

    fn shuffled<T>(&mut self, mut entries: Vec<T>) -> Vec<T> {
        for last in (1..entries.len()).rev() {
            let other = usize::try_from(self.random.below(last as u64 + 1)).unwrap();
            entries.swap(last, other);
        }
        entries
    }

    fn chance(&mut self, of: u64, in_all: u64) -> bool {
        self.random.below(in_all) < of
    }
}

/// Whether a block can contain the text, because its first line decides the indentation.
fn literal_fits(text: &str) -> bool {
    !text.is_empty() && !text.starts_with([' ', '\n']) && !text.ends_with("\n\n")
}
