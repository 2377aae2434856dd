//! The JSON Schema of workflow files, for editors. It says what a schema can say; [`crate::parse`] says the rest. Both
//! take their keys from the same lists, and a test compares them.

use serde_json::{Value, json};

use crate::limits::{INPUTS, LABEL_CHARS, LABELS, RETRY_ATTEMPTS, TITLE_CHARS};

/// The name of the schema; where it is served differs from installation to installation.
const ID: &str = "urn:everscan:schema:workflow";

/// The schema, in draft 2020-12.
pub fn json_schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Everscan workflow",
        "type": "object",
        "additionalProperties": false,
        "required": ["scans"],
        "properties": {
            "$schema": text,
            "name": { "type": "string", "minLength": 1, "maxLength": TITLE_CHARS },
            "description": text,
            "env": { "$ref": "#/$defs/env" },
            "scans": {
                "description": "What can run, by name.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "pattern": "^[A-Za-z0-9_]+$" },
                "additionalProperties": { "$ref": "#/$defs/scan" },
            },
        },
        "$defs": {
            "duration": {
                "description": "Such as 90s, 30m, 1h, 1d, 2w, or a sum such as 1h30m.",
                "type": "string",
                "pattern": "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
                "minLength": 2,
            },
            "condition": {
                "description": "A CEL expression that is true or false.",
                "type": ["string", "boolean"],
            },
            "env": {
                "description": "Environment variables of the steps; values may hold ${{ expressions }}.",
                "type": "object",
                "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                "additionalProperties": text,
            },
            "scan": scan(),
            "on": on(),
            "input": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "type": { "enum": ["string", "bool"], "default": "string" },
                    "required": { "type": "boolean", "default": false },
                    "default": { "type": ["string", "boolean"] },
                },
            },
            "artifact": {
                "type": "object",
                "additionalProperties": false,
                "required": ["name", "paths"],
                "properties": {
                    "name": { "type": "string", "pattern": "^[A-Za-z0-9._-]+$" },
                    "paths": {
                        "description": "Files and folders, relative to the job's folder; no patterns.",
                        "type": "array",
                        "minItems": 1,
                        "items": text,
                    },
                    "if": { "$ref": "#/$defs/condition" },
                    "expires_in": { "$ref": "#/$defs/duration" },
                    "notify_on": { "enum": ["diff", "always", "never"], "default": "never" },
                },
            },
            "step": {
                "type": "object",
                "additionalProperties": false,
                "required": ["run"],
                "properties": {
                    "run": { "description": "The script; may hold ${{ expressions }}.", "type": "string" },
                    "shell": { "description": "The command line that gets the script's path.", "type": "string" },
                    "if": { "$ref": "#/$defs/condition" },
                    "allow_failure": { "type": "boolean", "default": false },
                    "timeout": { "$ref": "#/$defs/duration" },
                },
            },
            "retry": {
                "type": "object",
                "additionalProperties": false,
                "required": ["attempts"],
                "properties": {
                    "attempts": { "type": "integer", "minimum": 1, "maximum": RETRY_ATTEMPTS },
                    "backoff": { "$ref": "#/$defs/duration" },
                },
            },
        },
    })
}

fn scan() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["on", "steps"],
        "properties": {
            "on": { "$ref": "#/$defs/on" },
            "artifacts": { "type": "array", "items": { "$ref": "#/$defs/artifact" } },
            "env": { "$ref": "#/$defs/env" },
            "steps": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/step" } },
            "timeout": { "$ref": "#/$defs/duration" },
            "retry": { "$ref": "#/$defs/retry" },
            "runs_on": {
                "description": "Labels a runner must have.",
                "type": "array",
                "maxItems": LABELS,
                "uniqueItems": true,
                "items": { "type": "string", "minLength": 1, "maxLength": LABEL_CHARS },
            },
            "overlap": {
                "description": "What a trigger does while a job of the scan is scheduled or running.",
                "enum": ["skip", "queue", "replace"],
                "default": "skip",
            },
            "pass_env": {
                "description": "Variables of the runner's own environment that steps may see.",
                "type": "array",
                "maxItems": LABELS,
                "uniqueItems": true,
                "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            },
        },
    })
}

fn on() -> Value {
    json!({
        "description": "What starts the scan; the triggers work independently of each other.",
        "type": "object",
        "additionalProperties": false,
        "anyOf": [{ "required": ["cron"] }, { "required": ["expr"] }, { "required": ["dispatch"] }],
        "dependentRequired": { "timezone": ["cron"], "catch_up": ["cron"] },
        "properties": {
            "cron": {
                "description": "Minute, hour, day of month, month, day of week.",
                "type": "string",
                "pattern": "^[ \\t]*[0-9*,/-]+([ \\t]+[0-9*,/-]+){4}[ \\t]*$",
            },
            "timezone": { "description": "IANA name.", "type": "string", "default": "UTC" },
            "catch_up": {
                "description": "Which missed slots run.",
                "enum": ["latest", "none", "all"],
                "default": "latest",
            },
            "expr": { "$ref": "#/$defs/condition" },
            "dispatch": {
                "description": "Makes the scan startable by hand; {} for one without inputs.",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "inputs": {
                        "type": "object",
                        "maxProperties": INPUTS,
                        "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$" },
                        "additionalProperties": { "$ref": "#/$defs/input" },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::parse::keys;

    #[test]
    fn the_schema_knows_exactly_the_keys_the_parser_knows() {
        let schema = json_schema();
        for (place, known) in [
            ("", keys::WORKFLOW.as_slice()),
            ("/$defs/scan", &keys::SCAN),
            ("/$defs/on", &keys::ON),
            ("/$defs/on/properties/dispatch", &keys::DISPATCH),
            ("/$defs/input", &keys::INPUT),
            ("/$defs/artifact", &keys::ARTIFACT),
            ("/$defs/step", &keys::STEP),
            ("/$defs/retry", &keys::RETRY),
        ] {
            let properties = schema
                .pointer(&format!("{place}/properties"))
                .and_then(Value::as_object)
                .unwrap();
            let written: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            assert_eq!(written, known.iter().copied().collect(), "{place}");
        }
    }

    #[test]
    fn every_reference_in_the_schema_leads_somewhere() {
        fn walk(schema: &Value, part: &Value) {
            if let Some(target) = part.get("$ref").and_then(Value::as_str) {
                assert!(
                    schema.pointer(target.trim_start_matches('#')).is_some(),
                    "{target}"
                );
            }
            let children: Vec<&Value> = match part {
                Value::Object(members) => members.values().collect(),
                Value::Array(items) => items.iter().collect(),
                _ => Vec::new(),
            };
            children.into_iter().for_each(|child| walk(schema, child));
        }
        let schema = json_schema();
        walk(&schema, &schema);
    }
}
