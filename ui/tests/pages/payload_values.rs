//! Pages of payload groups.

use maud::Markup;
use ui::form::Refused;
use ui::pages::{self, Draft, PayloadPage, Previewed};
use ui::shell::Visit;
use uuid::Uuid;
use wire::{Payload, PayloadGroup, PayloadGroupDetail, PayloadVariable};

use crate::callback_values::callback_server;
use crate::more_values::refused;
use crate::values::*;

pub(crate) fn group(texts: Texts) -> PayloadGroup {
    let variable = |name: &str, placeholder: &str, default: Option<&str>| PayloadVariable {
        name: texts.text(name),
        placeholder: Some(texts.text(placeholder)),
        default: default.map(|text| texts.text(text)),
    };
    PayloadGroup {
        id: Uuid::from_u128(7),
        project: texts.text("infra"),
        name: texts.text("xss"),
        variables: vec![
            variable("CALLBACK", "%%CALLBACK%%", None),
            variable("ID", "{{id}}", Some("7")),
        ],
        serve: true,
        payloads: 1,
        bytes: 4_711,
        created_at: now(),
        created_by: texts.text("ann"),
    }
}

pub(crate) fn payloads(texts: Texts, visit: &Visit) -> Vec<(&'static str, Markup)> {
    let group = group(texts);
    let payload = Payload {
        name: texts.text("img.svg"),
        version: 3,
        media_type: texts.text("image/svg+xml"),
        size: 40,
        sha256: "ab".repeat(32),
        bytes: 120,
        updated_at: now(),
        updated_by: texts.text("ann"),
    };
    let detail = PayloadGroupDetail {
        group: group.clone(),
        payloads: vec![payload.clone()],
    };
    let bare = PayloadGroupDetail {
        group: PayloadGroup {
            variables: Vec::new(),
            serve: false,
            payloads: 0,
            ..group.clone()
        },
        payloads: Vec::new(),
    };
    let callbacks = [callback_server(texts)];
    let text = texts.text("<img src=//%%CALLBACK%%>\n");
    let shown = |version, body: &[u8]| {
        let page = PayloadPage {
            group: &group,
            payload: &payload,
            version,
            body,
            callbacks: &callbacks,
        };
        pages::payload(visit, &page)
    };
    let preview = [
        Previewed::Text(texts.text("<img src=//\u{202e}\u{1b}[2J\n")),
        Previewed::Filled(texts.text("name.callback.example")),
        Previewed::Open(texts.text("%%OTHER%%")),
    ];
    let previewed = Draft {
        text: &text,
        preview: &preview,
        refused: Refused::default(),
    };
    let refused = Draft {
        text: &text,
        preview: &[],
        refused: refused(texts, &["payload", "text"]),
    };
    let edited = |payload, draft| pages::edited_payload(visit, &group, payload, draft);
    vec![
        (
            "payload-group",
            pages::payload_group(visit, &detail, &callbacks),
        ),
        (
            "payload-group-empty",
            pages::payload_group(visit, &bare, &[]),
        ),
        ("payload", shown(3, text.as_bytes())),
        ("payload-old", shown(2, b"\0\x01binary")),
        ("payload-previewed", edited(Some(&payload), &previewed)),
        ("payload-refused", edited(None, &refused)),
    ]
}
