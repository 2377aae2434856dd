//! The JSON Schema of workflow files, for editors. It checks what a schema can check; [`crate::parse`] checks the rest. Words and
//! limits come from the model. One test compares the keys with the keys of the parser. Another test reads every file of the
//! repository with both.

mod project;
#[cfg(test)]
mod tests;

pub use project::project_schema;
use serde_json::{Value, json};

use crate::definition::{CatchUp, NotifyOn, Overlap, PERMISSIONS, UploadOn};
use crate::dispatch::InputKind;
use crate::duration::format_duration;
use crate::limits::{
    ARTIFACT_NAME_BYTES, ARTIFACTS, CHECKOUT_PATH_BYTES, CHECKOUT_PATHS, INPUT_CHARS, INPUTS,
    JOB_TIMEOUT, LABEL_CHARS, LABELS, OPTIONS, RETRY_ATTEMPTS, RETRY_BACKOFF, RETRY_PAUSE,
    SCAN_NAME_BYTES, SCHEDULES, STEPS, TITLE_CHARS, VARIABLE_NAME_BYTES,
};
use crate::names::CEL_KEYWORDS;

/// The name of the schema. The address depends on the installation.
const ID: &str = "urn:everscan:schema:workflow";

/// The schema, in draft 2020-12.
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Everscan workflow",
        "description": "What runs, when, and which results are kept.",
        "type": "object",
        "additionalProperties": false,
        "required": ["scans"],
        "properties": {
            "$schema": {
                "description": "The address of this schema, for editors.",
                "type": "string",
            },
            "name": {
                "description": "A title for people.",
                "type": "string",
                "minLength": 1,
                "maxLength": TITLE_CHARS,
                // One line.
                "pattern": "^.*\\S.*$",
            },
            "description": { "description": "A text for people.", "type": "string" },
            "env": {
                "description": "Environment variables of every step of every scan; a scan's own `env` wins.",
                "$ref": "#/$defs/env",
            },
            "scans": {
                "description": "What can run, by name: letters, digits and `_`.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "pattern": format!("^[A-Za-z0-9_]{{1,{SCAN_NAME_BYTES}}}$") },
                "additionalProperties": { "$ref": "#/$defs/scan" },
            },
        },
        "$defs": {
            "duration": {
                "description": "Such as 90s, 30m, 1h, 1d, 2w, or a sum such as 1h30m.",
                "type": "string",
                "pattern": "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?\\s*$",
                "minLength": 2,
            },
            "schedule": {
                "description": "Five fields: minute, hour, day of month, month, day of week.",
                "type": "string",
                "pattern": cron_pattern(),
            },
            "condition": {
                "description": "A CEL expression that is true or false.",
                "type": ["string", "boolean"],
            },
            "env": {
                "description": "Strings by name; they may hold ${{ expressions }}.",
                "type": "object",
                "propertyNames": { "pattern": format!("^[A-Za-z_][A-Za-z0-9_]{{0,{}}}$", SCAN_NAME_BYTES - 1) },
                "additionalProperties": { "type": "string" },
            },
            "scan": scan(),
            "on": on(),
            "input": input(),
            "artifact": artifact(),
            "step": step(),
            "retry": retry(),
            "expect": expect(),
        },
    })
}

fn scan() -> Value {
    json!({
        "description": "Something to run.",
        "type": "object",
        "additionalProperties": false,
        "required": ["on", "steps"],
        "properties": {
            "on": { "$ref": "#/$defs/on" },
            "artifacts": {
                "description": "Files and folders that are kept of a job that succeeded.",
                "type": "array",
                "maxItems": ARTIFACTS,
                "items": { "$ref": "#/$defs/artifact" },
            },
            "env": {
                "description": "Environment variables of every step of this scan.",
                "$ref": "#/$defs/env",
            },
            "steps": {
                "description": "Scripts that run one after the other.",
                "type": "array",
                "minItems": 1,
                "maxItems": STEPS,
                "items": { "$ref": "#/$defs/step" },
            },
            "timeout": {
                "description": format!("A job that runs longer is stopped; at most {}.", format_duration(JOB_TIMEOUT)),
                "$ref": "#/$defs/duration",
            },
            "log_limit": {
                "description": "A longer log is cut, and the job continues; the daemon has a limit as well.",
                "anyOf": [
                    { "type": "integer", "minimum": 1 },
                    { "type": "string", "pattern": "^0*[1-9][0-9]*( *[KMGT]iB)?$" },
                ],
            },
            "retry": { "$ref": "#/$defs/retry" },
            "expect": { "$ref": "#/$defs/expect" },
            "runs_on": {
                "description": "Labels that a runner must have to take the job.",
                "type": "array",
                "maxItems": LABELS,
                "uniqueItems": true,
                "items": { "type": "string", "minLength": 1, "maxLength": LABEL_CHARS },
            },
            "overlap": choice(
                "What a trigger does while a job of the scan is scheduled or running: nothing, let one job wait, or \
                 cancel the older job.",
                Overlap::ALL,
                Overlap::name,
                Overlap::default(),
            ),
            "pass_env": {
                "description": "Variables of the runner's own environment that steps may see.",
                "type": "array",
                "maxItems": LABELS,
                "uniqueItems": true,
                "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            },
            "permissions": {
                "description": "What the token of a job may do, instead of reading jobs, reading and storing blobs, and dispatching.",
                "type": "array",
                "uniqueItems": true,
                "items": { "enum": PERMISSIONS },
            },
            "checkout": checkout(),
            "callback": {
                "description": "A callback server of the project. Each job gets a name of it in SERVICE_CALLBACK_HOST.",
                "type": "string",
                "pattern": format!("^[A-Za-z0-9_-]{{1,{VARIABLE_NAME_BYTES}}}$"),
            },
            "renamed_from": {
                "description": "The former name of the scan, whose results it keeps.",
                "type": "string",
                "pattern": format!("^[A-Za-z0-9_]{{1,{SCAN_NAME_BYTES}}}$"),
            },
        },
    })
}

fn checkout() -> Value {
    json!({
        "description": "Puts the repository, or these files and folders of it, into the folder `source` of the job.",
        "default": false,
        "anyOf": [
            { "type": "boolean" },
            {
                "type": "array",
                "minItems": 1,
                "maxItems": CHECKOUT_PATHS,
                "uniqueItems": true,
                "items": {
                    "type": "string",
                    "pattern": "^(\\./)?[^/~*?][^*?]*$",
                    "maxLength": CHECKOUT_PATH_BYTES,
                    "not": { "pattern": "^(\\./)?$|^\\.$|(^|/)\\.\\.(/|$)|//|/\\.(/|$)" },
                },
            },
        ],
    })
}

fn on() -> Value {
    json!({
        "description": "What starts the scan; the triggers work independently of each other.",
        "type": "object",
        "additionalProperties": false,
        "anyOf": [{ "required": ["cron"] }, { "required": ["expr"] }, { "required": ["callback"] }, { "required": ["dispatch"] }],
        "dependentRequired": { "timezone": ["cron"], "catch_up": ["cron"] },
        // A job without a dispatch gets no input values.
        "if": { "anyOf": [{ "required": ["cron"] }, { "required": ["expr"] }, { "required": ["callback"] }] },
        "then": { "properties": { "dispatch": { "properties": { "inputs": {
            "additionalProperties": { "properties": { "required": { "const": false } } },
        } } } } },
        "properties": {
            "cron": {
                "description": "A schedule, or a list of schedules: minute, hour, day of month, month, day of week.",
                "anyOf": [
                    { "$ref": "#/$defs/schedule" },
                    {
                        "type": "array",
                        "items": { "$ref": "#/$defs/schedule" },
                        "minItems": 1,
                        "maxItems": SCHEDULES,
                        "uniqueItems": true,
                    },
                ],
                "examples": ["30 3 * * *", "*/15 * * * *", ["0 9-17 * * 1-5", "0 12 * * 0,6"]],
            },
            "timezone": {
                "description": "The zone whose wall clock the schedule follows, by its IANA name.",
                "enum": chrono_tz::TZ_VARIANTS.map(|zone| zone.name()).as_slice(),
                "default": "UTC",
            },
            "catch_up": choice(
                "Which times of the schedule run late when nothing could start: the newest, none, or all, up to ten.",
                CatchUp::ALL,
                CatchUp::name,
                CatchUp::default(),
            ),
            "expr": {
                "description": "A CEL expression over the results of other scans; evaluated when one of them succeeds.",
                "$ref": "#/$defs/condition",
            },
            "callback": {
                "description": "Interactions of a callback server of the project start the scan.",
                "type": "object",
                "additionalProperties": false,
                "required": ["server"],
                "properties": {
                    "server": {
                        "description": "The name of the callback server.",
                        "type": "string",
                        "pattern": format!("^[A-Za-z0-9_-]{{1,{VARIABLE_NAME_BYTES}}}$"),
                    },
                    "min_interval": {
                        "description": "The shortest time between two starts, at least 1m; the interactions of this time start one job.",
                        "default": "1m",
                        "$ref": "#/$defs/duration",
                    },
                },
            },
            "dispatch": {
                "description": "Makes the scan startable by hand; {} for one without inputs.",
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "inputs": {
                        "description": "What a dispatcher may or must give, by name; read as `inputs.NAME`.",
                        "type": "object",
                        "maxProperties": INPUTS,
                        "propertyNames": {
                            "pattern": format!("^[A-Za-z_][A-Za-z0-9_]{{0,{}}}$", VARIABLE_NAME_BYTES - 1),
                            "not": { "enum": CEL_KEYWORDS },
                        },
                        "additionalProperties": { "$ref": "#/$defs/input" },
                    },
                },
            },
        },
    })
}

/// Five fields of numbers within their bounds.
fn cron_pattern() -> String {
    let numbers = [
        "[0-5]?[0-9]",
        "1?[0-9]|2[0-3]",
        "[1-9]|[12][0-9]|3[01]",
        "[1-9]|1[0-2]",
        "[0-7]",
    ];
    let fields = numbers.map(|numbers| {
        let number = format!("0*({numbers})");
        let part = format!("(\\*|{number}(-{number})?)(/0*[1-9][0-9]*)?");
        format!("{part}(,{part})*")
    });
    format!("^[ \\t]*{}\\s*$", fields.join("[ \\t]+"))
}

fn input() -> Value {
    json!({
        "description": "An input of a dispatch.",
        "type": "object",
        "additionalProperties": false,
        "allOf": [
            of_type(InputKind::Bool, &json!({
                "properties": { "default": { "enum": [true, false, "true", "false"] } },
            })),
            of_type(InputKind::Number, &json!({
                "properties": { "default": { "anyOf": [
                    { "type": "number" },
                    { "type": "string", "pattern": "^[-+]?[0-9]+(\\.[0-9]+)?$" },
                ] } },
            })),
            of_type(InputKind::Choice, &json!({
                "required": ["options"],
                "properties": { "default": { "type": "string" } },
            })),
            {
                "if": { "not": { "required": ["type"] } },
                "then": { "properties": { "default": { "type": "string" } } },
            },
            of_type(InputKind::Text, &json!({ "properties": { "default": { "type": "string" } } })),
            {
                "if": { "required": ["options"] },
                "then": {
                    "required": ["type"],
                    "properties": { "type": { "const": InputKind::Choice.name() } },
                },
            },
        ],
        "properties": {
            "description": { "description": "A text for people, shown in the form of a dispatch.", "type": "string" },
            "type": choice(
                "What its values are.",
                InputKind::ALL,
                InputKind::name,
                InputKind::Text,
            ),
            "options": {
                "description": "What a choice may be; the first is the default unless another one is.",
                "type": "array",
                "minItems": 1,
                "maxItems": OPTIONS,
                "uniqueItems": true,
                "items": { "type": "string", "minLength": 1, "maxLength": LABEL_CHARS },
            },
            "required": {
                "description": "Whether a dispatcher must give a value; the default does not count as one.",
                "type": "boolean",
                "default": false,
            },
            "default": {
                "description": "The value when none is given.",
                "type": ["string", "boolean", "number"],
                "maxLength": INPUT_CHARS,
            },
        },
    })
}

/// The rules for an input of this type.
fn of_type(kind: InputKind, then: &Value) -> Value {
    json!({
        "if": { "required": ["type"], "properties": { "type": { "const": kind.name() } } },
        "then": then,
    })
}

fn artifact() -> Value {
    json!({
        "description": "Files and folders that are kept together, as one zip.",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "paths"],
        "properties": {
            "name": {
                "description": "Its name, unique in the scan: letters, digits, `.`, `_` and `-`.",
                "type": "string",
                "pattern": format!("^[A-Za-z0-9._-]{{1,{ARTIFACT_NAME_BYTES}}}$"),
                "not": { "enum": [".", ".."] },
            },
            "paths": {
                "description": "Files and folders, relative to the job's folder; `glob:` begins a pattern, such as \
                                `glob:out/**/*.txt`.",
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "string",
                    "pattern": "^(glob:[^/~].*|[^/~*?][^*?]*)$",
                    "not": { "pattern": "(^|/|^glob:)\\.\\.(/|$)" },
                },
            },
            "if": {
                "description": "It is kept only when this CEL expression is true.",
                "$ref": "#/$defs/condition",
            },
            "expires_in": {
                "description": "How long it is kept.",
                "$ref": "#/$defs/duration",
            },
            "upload_on": choice(
                "After which end of the steps it is kept: when none has failed the job, when one has, or both. Never after \
                 a cancel.",
                UploadOn::ALL,
                UploadOn::name,
                UploadOn::default(),
            ),
            "strict": {
                "description": "Whether a file that cannot be packed fails it. If not, such a file is left out, and the \
                                job says so.",
                "type": "boolean",
                "default": false,
            },
            "notify_on": choice(
                "When it makes a notification: when it differs from the one before, always, or never. Has no effect \
                 yet.",
                NotifyOn::ALL,
                NotifyOn::name,
                NotifyOn::default(),
            ),
        },
    })
}

fn step() -> Value {
    json!({
        "description": "A script.",
        "type": "object",
        "additionalProperties": false,
        "required": ["run"],
        "properties": {
            "name": {
                "description": "Its name, unique in the scan. Expressions of later steps read `steps.NAME.outputs.KEY`.",
                "type": "string",
                "pattern": format!("^[A-Za-z_][A-Za-z0-9_]{{0,{}}}$", VARIABLE_NAME_BYTES - 1),
                "not": { "enum": CEL_KEYWORDS },
            },
            "run": {
                "description": "The script; it may hold ${{ expressions }}.",
                "type": "string",
            },
            "shell": {
                "description": "The command line that gets the path of the script. The default is bash, or sh without bash.",
                "type": "string",
                "minLength": 1,
            },
            "if": {
                "description": "The step runs only when this CEL expression is true. Unless it names `ok` or `always`, it runs \
                                only when no step before has failed the job.",
                "$ref": "#/$defs/condition",
            },
            "allow_failure": {
                "description": "Whether the job continues when the step fails.",
                "type": "boolean",
                "default": false,
            },
            "timeout": {
                "description": format!("The step is stopped after this long; at most {}.", format_duration(JOB_TIMEOUT)),
                "$ref": "#/$defs/duration",
            },
        },
    })
}

fn retry() -> Value {
    json!({
        "description": "How a job is retried that fails or is lost.",
        "type": "object",
        "additionalProperties": false,
        "required": ["attempts"],
        "properties": {
            "attempts": {
                "description": "How many further jobs are made.",
                "type": "integer",
                "minimum": 1,
                "maximum": RETRY_ATTEMPTS,
            },
            "backoff": {
                "description": format!(
                    "How long to wait before the first of them; doubles with each, up to {}. {} unless given.",
                    format_duration(RETRY_PAUSE),
                    format_duration(RETRY_BACKOFF),
                ),
                "$ref": "#/$defs/duration",
            },
        },
    })
}

fn expect() -> Value {
    let duration =
        |description: &str| json!({ "description": description, "$ref": "#/$defs/duration" });
    json!({
        "description": "What people expect of the scan. A violation ends nothing: it opens a condition, which closes by itself.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "success_every": duration("A job succeeds at least this often."),
            "starts_within": duration("A runner takes each job this soon after it was due."),
            "at_least": duration("A successful job runs at least this long."),
            "at_most": duration("A job runs at most this long."),
        },
    })
}

/// One of several words.
fn choice<T: Copy>(description: &str, all: &[T], name: fn(T) -> &'static str, default: T) -> Value {
    let words: Vec<&str> = all.iter().copied().map(name).collect();
    json!({ "description": description, "enum": words, "default": name(default) })
}
