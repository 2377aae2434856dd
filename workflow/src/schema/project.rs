//! The JSON Schema of `everscan.yaml`.

use serde_json::{Value, json};

use super::{choice, json_schema};
use crate::duration::format_duration;
use crate::limits::{
    LABEL_CHARS, RULE_AFTER, RULE_GROUP, RULE_PATTERNS, RULE_REPEAT, RULE_TEMPLATE_BYTES, RULES,
    VARIABLE_NAME_BYTES,
};
use crate::notify::{Content, EventName};

/// The schema, in draft 2020-12.
pub fn project_schema() -> Value {
    let own = EventName::ALL
        .iter()
        .filter(|event| !event.is_of_instance());
    let events: Vec<&str> = own.map(|event| event.name()).collect();
    let name = |description: &str| {
        let pattern = format!("^[A-Za-z0-9_-]{{1,{VARIABLE_NAME_BYTES}}}$");
        json!({ "description": description, "type": "string", "pattern": pattern })
    };
    let patterns = |description: &str| {
        json!({
            "description": description,
            "type": "array",
            "minItems": 1,
            "maxItems": RULE_PATTERNS,
            "uniqueItems": true,
            "items": { "type": "string", "minLength": 1, "maxLength": LABEL_CHARS },
        })
    };
    let time = |description: &str| {
        let pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$";
        json!({ "description": description, "type": "string", "pattern": pattern })
    };
    let duration =
        |description: String| json!({ "description": description, "$ref": "#/$defs/duration" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:everscan:schema:everscan.yaml",
        "title": "Everscan repository",
        "description": "What holds for all workflows of a repository.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "$schema": { "description": "The address of this schema, for editors.", "type": "string" },
            "notify": {
                "description": "Which events go to which channels.",
                "type": "array",
                "maxItems": RULES,
                "items": { "$ref": "#/$defs/rule" },
            },
        },
        "$defs": {
            "duration": json_schema().pointer("/$defs/duration"),
            "rule": {
                "description": "Which events go to one channel.",
                "type": "object",
                "additionalProperties": false,
                "required": ["channel"],
                "properties": {
                    "name": name("Its name, unique in the file; the channel's name unless given."),
                    "channel": name("The channel that gets the messages."),
                    "events": {
                        "description": "The end of a condition goes where its begin went. Unless given: failures, broken \
                                        expectations, and artifacts as their `notify_on` says.",
                        "type": "array",
                        "minItems": 1,
                        "uniqueItems": true,
                        "items": { "enum": events },
                    },
                    "workflows": patterns("Patterns of workflows, such as `nightly/*`; all unless given."),
                    "scans": patterns("Patterns of scans; all unless given."),
                    "callbacks": patterns("Patterns of callback servers; all unless given."),
                    "after": {
                        "description": "Failures in a row before a failing scan is reported.",
                        "type": "integer",
                        "minimum": 1,
                        "maximum": RULE_AFTER,
                        "default": 1,
                    },
                    "group": duration(format!(
                        "What follows a message within this time becomes one message; 0s to {}, 30s unless given.",
                        format_duration(RULE_GROUP),
                    )),
                    "repeat": duration(format!(
                        "How often an open condition is reported again, at least {}; never unless given.",
                        format_duration(RULE_REPEAT),
                    )),
                    "quiet": {
                        "description": "Hours in which messages are held. They may cross midnight.",
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["from", "to"],
                        "properties": {
                            "from": time("Their begin, such as 22:00."),
                            "to": time("Their end, such as 07:00."),
                            "timezone": {
                                "description": "The zone of both, by its IANA name.",
                                "enum": chrono_tz::TZ_VARIANTS.map(|zone| zone.name()).as_slice(),
                                "default": "UTC",
                            },
                        },
                    },
                    "template": {
                        "description": "The text of a message, with ${{ event.title }} and the like.",
                        "type": "string",
                        "minLength": 1,
                        "maxLength": RULE_TEMPLATE_BYTES,
                    },
                    "content": choice(
                        "What a message says about the new lines of an artifact: nothing, how many, or the lines.",
                        Content::ALL,
                        Content::name,
                        Content::default(),
                    ),
                },
            },
        },
    })
}
