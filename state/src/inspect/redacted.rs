//! Hides secrets in a record: hashes of tokens are shortened, sealed values are replaced.

use serde_json::Value;

/// Digits of a token's hash that are shown: enough to distinguish tokens, too few to guess a token.
const SHOWN_DIGITS: usize = 8;

/// The record without its secrets.
pub(super) fn redacted(record: Value) -> Value {
    match record {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| {
                    let value = match name.as_str() {
                        "sealed" => Value::from("sealed"),
                        // Of a channel.
                        "secret" if value.is_object() => Value::from("sealed"),
                        // Of a person. With its hash, a weak password can be guessed.
                        "password" if value.is_string() => Value::from("hashed"),
                        "token" | "hash" | "made_with" => shortened(value),
                        _ => redacted(value),
                    };
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(redacted).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn shortened(value: Value) -> Value {
    match value {
        Value::String(hash) => {
            let shown: String = hash.chars().take(SHOWN_DIGITS).collect();
            Value::from(format!("{shown}…"))
        }
        other => redacted(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_are_shortened_and_sealed_values_are_replaced() {
        let record = json!({"body": {
            "session": {"token": "0123456789abcdef", "made_with": "0123456789abcdef"},
            "password": "$argon2id$v=19$x",
            "list": [{"hash": "fedcba9876543210"}],
            "secrets": {"KEY": {"sealed": {"nonce": "00"}, "bytes": 7}},
            "secret": {"nonce": "00"},
        }});
        let expected = json!({"body": {
            "session": {"token": "01234567…", "made_with": "01234567…"},
            "password": "hashed",
            "list": [{"hash": "fedcba98…"}],
            "secrets": {"KEY": {"sealed": "sealed", "bytes": 7}},
            "secret": "sealed",
        }});
        assert_eq!(redacted(record), expected);
    }
}
