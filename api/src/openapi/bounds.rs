//! Bounds of values that the types of `wire` do not express.

use model::limits::{
    CALLBACK_NOTE_CHARS, INTERACTION_DAYS_MOST, NAME_CHARS, PAYLOAD_DEFAULT_BYTES,
    PAYLOAD_NAME_BYTES, PAYLOAD_PLACEHOLDER_BYTES, PAYLOAD_VARIABLES, RENDERED_LINES,
    RUNNER_CAPACITY, RUNNER_LABELS, SESSION_DEVICE_CHARS, SUSPENSION_REASON_CHARS, TOKEN_OVERLAP,
    USER_NAME_CHARS,
};
use model::{AuditKind, Scopes};
use serde_json::{Map, Value, json};

use crate::limits::VALIDATED_FILE_CHARS;
use crate::routes::DURATION;

const BLOB_PATH: &str = r"^/?[^/\u0000-\u001F\u007F-\u009F]+(/[^/\u0000-\u001F\u007F-\u009F]+)*$";

const LINE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";

/// One line of text with a word in it.
const WORDS: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";

const USER_NAME: &str = "^[a-z0-9][a-z0-9._-]*$";

pub(super) fn add(schemas: &mut Map<String, Value>) {
    schemas.values_mut().for_each(bound_integers);
    for (name, member, bounds) in of_members() {
        let place = format!("/properties/{member}");
        let Some(Value::Object(schema)) = schemas
            .get_mut(name)
            .and_then(|schema| schema.pointer_mut(&place))
        else {
            continue;
        };
        if let Value::Object(bounds) = bounds {
            schema.extend(bounds);
        }
    }
}

/// By type and member.
fn of_members() -> Vec<(&'static str, &'static str, Value)> {
    let scopes: Vec<&str> = Scopes::names().collect();
    let path = || json!({ "pattern": BLOB_PATH });
    let duration = || json!({ "minLength": 2, "pattern": DURATION });
    let name = || json!({ "minLength": 1, "maxLength": NAME_CHARS });
    vec![
        ("AuditAction", "kind", json!({ "enum": AuditKind::NAMES })),
        ("CopyBlob", "from", path()),
        ("CopyBlob", "to", path()),
        ("CopyBlob", "expires_in", duration()),
        ("MoveBlob", "from", path()),
        ("MoveBlob", "to", path()),
        ("CreateBlobLink", "path", path()),
        ("CreateBlobLink", "expires_in", duration()),
        ("CreateToken", "name", name()),
        ("CreateToken", "scopes", json!({ "minItems": 1 })),
        ("CreateToken", "scopes/items", json!({ "enum": scopes })),
        ("CreateToken", "projects", json!({ "minItems": 1 })),
        ("CreateToken", "expires_in_seconds", json!({ "minimum": 1 })),
        (
            "RegenerateToken",
            "expires_in_seconds",
            json!({ "minimum": 1 }),
        ),
        (
            "RegenerateToken",
            "overlap_seconds",
            json!({ "maximum": TOKEN_OVERLAP.num_seconds() }),
        ),
        (
            "CreateCallback",
            "keep_days",
            json!({ "minimum": 1, "maximum": INTERACTION_DAYS_MOST }),
        ),
        (
            "CreateCallback",
            "name",
            json!({ "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$" }),
        ),
        (
            "CreateCallbackToken",
            "note",
            json!({ "maxLength": CALLBACK_NOTE_CHARS, "pattern": LINE }),
        ),
        (
            "CreateCallbackToken",
            "expires_in_seconds",
            json!({ "minimum": 1 }),
        ),
        (
            "CreatePayloadGroup",
            "name",
            json!({ "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$" }),
        ),
        (
            "CreatePayloadGroup",
            "variables",
            json!({ "maxItems": PAYLOAD_VARIABLES }),
        ),
        (
            "ChangePayloadGroup",
            "variables",
            json!({ "maxItems": PAYLOAD_VARIABLES }),
        ),
        (
            "PayloadVariable",
            "name",
            json!({ "minLength": 1, "maxLength": PAYLOAD_NAME_BYTES, "pattern": "^[A-Za-z0-9_]+$" }),
        ),
        (
            "PayloadVariable",
            "placeholder",
            json!({ "minLength": 2, "maxLength": PAYLOAD_PLACEHOLDER_BYTES, "pattern": r"^[^|\u0000-\u001F\u007F-\u009F]*$" }),
        ),
        (
            "PayloadVariable",
            "default",
            json!({ "maxLength": PAYLOAD_DEFAULT_BYTES }),
        ),
        (
            "RenderPayloads",
            "targets",
            json!({ "maxItems": RENDERED_LINES }),
        ),
        (
            "CreateRegistration",
            "labels",
            json!({ "maxItems": RUNNER_LABELS }),
        ),
        ("CreateRegistration", "labels/items", name()),
        ("CreateRegistration", "projects", json!({ "minItems": 1 })),
        (
            "CreateUser",
            "name",
            json!({ "maxLength": USER_NAME_CHARS, "pattern": USER_NAME }),
        ),
        (
            "CreateDeviceLogin",
            "device",
            json!({ "minLength": 1, "maxLength": SESSION_DEVICE_CHARS, "pattern": WORDS }),
        ),
        ("LimitRunner", "projects", json!({ "minItems": 1 })),
        ("RegisterRunner", "name", name()),
        (
            "RegisterRunner",
            "labels",
            json!({ "maxItems": RUNNER_LABELS }),
        ),
        ("RegisterRunner", "labels/items", name()),
        (
            "RegisterRunner",
            "capacity",
            json!({ "minimum": 1, "maximum": RUNNER_CAPACITY }),
        ),
        (
            "Resume",
            "reason",
            json!({ "maxLength": SUSPENSION_REASON_CHARS, "pattern": LINE }),
        ),
        (
            "Suspend",
            "reason",
            json!({ "maxLength": SUSPENSION_REASON_CHARS, "pattern": WORDS }),
        ),
        (
            "Validate",
            "file",
            json!({ "minLength": 1, "maxLength": VALIDATED_FILE_CHARS }),
        ),
    ]
}

/// Few readers know the integer formats, so the schemas also have the smallest and largest values.
fn bound_integers(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(bound_integers);
            let range = match members.get("format").and_then(Value::as_str) {
                Some("uint32") => (json!(0), json!(u32::MAX)),
                Some("uint64") => (json!(0), json!(u64::MAX)),
                Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
                Some("int64") => (json!(i64::MIN), json!(i64::MAX)),
                _ => return,
            };
            members.entry("minimum").or_insert(range.0);
            members.entry("maximum").or_insert(range.1);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::DOCUMENT;

    #[test]
    fn every_bound_is_of_an_existing_member() {
        for (name, member, bounds) in of_members() {
            let place = format!("/components/schemas/{name}/properties/{member}");
            let schema = DOCUMENT.pointer(&place).expect(&place);
            for (rule, value) in bounds.as_object().unwrap() {
                assert_eq!(&schema[rule], value, "{place}");
            }
        }
    }
}
