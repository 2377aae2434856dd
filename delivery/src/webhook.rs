//! Webhooks, signed as Standard Webhooks defines it. A command gets the same JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue};
use model::SecretValue;
use model::channel::signing_keys;
use serde_json::json;
use sha2::Sha256;

use crate::text::{clean, line};
use crate::{Level, Message, Post};

/// One signature for each key, so that a receiver may have either while keys are rotated.
pub(crate) fn post(
    keys: &SecretValue,
    message: &Message,
    now: DateTime<Utc>,
) -> Result<Post, String> {
    let body = body(message);
    let id = message.id.to_string();
    let timestamp = now.timestamp().to_string();
    let signed = format!("{id}.{timestamp}.{body}");
    let keys = signing_keys(keys).ok_or("a key is not `whsec_` and base64")?;
    let signatures: Result<Vec<String>, String> =
        keys.iter().map(|key| sign(key, &signed)).collect();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("webhook-id", id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures?.join(" ")),
    ] {
        let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
        headers.insert(name, value);
    }
    Ok(Post { headers, body })
}

fn sign(key: &[u8], signed: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    mac.update(signed.as_bytes());
    Ok(format!(
        "v1,{}",
        STANDARD.encode(mac.finalize().into_bytes())
    ))
}

/// What programs get.
pub(crate) fn body(message: &Message) -> String {
    let level = match message.level {
        Level::Problem => "problem",
        Level::Recovered => "recovered",
        Level::Information => "information",
    };
    let body = json!({
        "type": level,
        "timestamp": message.at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "data": {
            "id": message.id,
            "title": line(&message.title),
            "text": clean(&message.text),
            "link": message.link,
            "is_repeated": message.is_repeated,
            "event": message.event,
        },
    });
    body.to_string()
}
