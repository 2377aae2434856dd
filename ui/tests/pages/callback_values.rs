//! Pages of callback servers.

use maud::Markup;
use ui::form::Refused;
use ui::pages::{self, CallbackPage, Heard};
use ui::shell::Visit;
use wire::{
    Callback, CallbackToken, Interaction, InteractionRequest, Page, PlantedPayload, PlantingJob,
};

use crate::values::*;

pub(crate) fn callback_server(texts: Texts) -> Callback {
    Callback {
        id: "k3v9aaaaaaaaaaq2".to_owned(),
        project: texts.text("infra"),
        name: texts.text("shop"),
        names: vec!["k3v9aaaaaaaaaaq2.oast.example.org".to_owned()],
        created_at: now(),
        created_by: texts.text("ann"),
        keep_days: Some(30),
        tokens: 2,
        interactions: 4_711,
        bytes: 1 << 20,
        left_out: 12,
        unknown_tags: 4,
        full: true,
    }
}

fn heard(texts: Texts, number: u64, request: InteractionRequest) -> Interaction {
    Interaction {
        number,
        at: now(),
        peer: "192.0.2.1:53".to_owned(),
        tag: Some("7dmraaaaaaaaaaaaaaxa".to_owned()),
        note: Some(texts.text("login form")),
        payload: Some(PlantedPayload {
            group: texts.text("xss"),
            name: texts.text("img.svg"),
            version: 3,
            target: Some(texts.text("shop.example")),
        }),
        job: Some(PlantingJob {
            id: id(7),
            scan: texts.text("probe"),
        }),
        request,
        answer: texts.text("200"),
        rule: Some(texts.text("redirect")),
        left_out: 3,
        repeats: 5,
        raw_bytes: 40,
        raw: None,
    }
}

pub(crate) fn callbacks(texts: Texts, visit: &Visit) -> Vec<(&'static str, Markup)> {
    let server = callback_server(texts);
    let dns = InteractionRequest::Dns {
        transport: "udp".to_owned(),
        name: texts.text("K3v9aaaaaaaaaaq2.oast.example.org"),
        qtype: "A".to_owned(),
        client_subnet: Some("198.51.100.0/24".to_owned()),
    };
    let head = texts.text("POST /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let http = InteractionRequest::Http {
        method: texts.text("POST"),
        target: texts.text("/x"),
        host: texts.text("a"),
        head_bytes: head.len() as u64,
        truncated: true,
        malformed: false,
        tls: true,
        sni: Some("k3v9aaaaaaaaaaq2.oast.example.org".to_owned()),
    };
    let dns = heard(texts, 1, dns);
    let http = heard(texts, 2, http);
    let bare = Interaction {
        note: None,
        payload: None,
        tag: None,
        job: None,
        left_out: 0,
        ..heard(texts, 3, http.request.clone())
    };
    let some = Page {
        next_cursor: Some("1".to_owned()),
        ..Page::all(vec![bare, http.clone(), dns.clone()])
    };
    let filter = Heard {
        tag: texts.text("7dmraaaaaaaaaaaaaaxa"),
        job: texts.text("00000000-0000-7000-8000-000000000007"),
        kind: "dns".to_owned(),
        address: texts.text("192.0.2.1"),
        payload: texts.text("xss/img.svg"),
        text: texts.text("cookie"),
    };
    let token = |tag: &str, expires_at| CallbackToken {
        tag: tag.to_owned(),
        names: vec!["k3v9aaaaaaaaaaq2-7dmraaaaaaaaaaaaaaxa.oast.example.org".to_owned()],
        note: texts.text("login form"),
        created_at: now(),
        created_by: texts.text("ann"),
        expires_at,
    };
    let tokens = [
        token("7dmraaaaaaaaaaaaaaxa", None),
        token("7dmraaaaaaaaaaaaaaxb", Some(now())),
    ];
    let rules = texts.text("{\"rules\": []}");
    let refused = Refused::default();
    let reader = reader(texts);
    let show = |visit, filter, interactions, is_later| {
        let callback = &server;
        pages::callback(
            visit,
            &CallbackPage {
                callback,
                filter,
                interactions,
                is_later,
                tokens: &tokens,
                rules: &rules,
                refused: &refused,
            },
        )
    };
    let raw = [head.as_bytes(), b"\0\x01binary"].concat();
    vec![
        ("callback", show(visit, &filter, &some, false)),
        (
            "callback-none",
            show(&reader, &Heard::default(), &Page::all(Vec::new()), true),
        ),
        (
            "interaction",
            pages::interaction(visit, &server, &http, &raw),
        ),
        (
            "interaction-dns",
            pages::interaction(visit, &server, &dns, b"\0\x01query"),
        ),
    ]
}
