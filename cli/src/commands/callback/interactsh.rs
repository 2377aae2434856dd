//! Interactions in the JSON of interactsh-client, so that scripts for it go on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::SecondsFormat;
use serde_json::json;
use wire::{Callback, Interaction, InteractionRequest};
use workflow::is_obeyed;

/// One JSON object.
pub(super) fn line(of: &Callback, it: &Interaction) -> String {
    let unique = match &it.tag {
        Some(tag) => format!("{}-{tag}", of.id),
        None => of.id.clone(),
    };
    let address = it.peer.parse::<std::net::SocketAddr>();
    let address = address.map_or_else(|_| it.peer.clone(), |peer| peer.ip().to_string());
    let mut object = json!({
        "protocol": it.request.kind(),
        "unique-id": unique,
        "full-id": full_id(of, &it.request).unwrap_or(unique),
        "raw-request": raw(it),
        "raw-response": it.answer,
        "remote-address": address,
        "timestamp": it.at.to_rfc3339_opts(SecondsFormat::Nanos, true),
    });
    if let InteractionRequest::Dns { qtype, .. } = &it.request {
        object["q-type"] = json!(qtype);
    }
    let json = object.to_string();
    // Characters that a terminal obeys are only in texts, where an escape has the same meaning.
    json.chars().fold(String::new(), |mut line, c| {
        match is_obeyed(c) {
            true => line.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => line.push(c),
        }
        line
    })
}

/// The name without its zone.
fn full_id(of: &Callback, request: &InteractionRequest) -> Option<String> {
    let name = match request {
        InteractionRequest::Dns { name, .. } => name.trim_end_matches('.'),
        InteractionRequest::Http { host, .. } => host.split(':').next().unwrap_or_default(),
    };
    let lower = name.to_ascii_lowercase();
    let zones = of.names.iter().filter_map(|name| name.split_once('.'));
    let without = zones.filter_map(|(_, zone)| Some(lower.strip_suffix(zone)?.len()));
    let length = without.max()?;
    let full = name.get(..length)?.trim_end_matches('.');
    (!full.is_empty()).then(|| full.to_owned())
}

fn raw(it: &Interaction) -> String {
    match &it.request {
        InteractionRequest::Dns { name, qtype, .. } => {
            format!(";; QUESTION SECTION:\n;{name}\tIN\t{qtype}\n")
        }
        InteractionRequest::Http { .. } => {
            let raw = STANDARD.decode(it.raw.as_deref().unwrap_or_default());
            String::from_utf8_lossy(&raw.unwrap_or_default()).into_owned()
        }
    }
}
